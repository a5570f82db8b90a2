"""Writes a transformers model as GGUF v3, with a tokenizer just large enough to load."""
import gguf

from architectures import gguf_tensors

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def llama_tokenizer(writer, size):
    """SentencePiece-style: controls, characters, then words with a leading space."""
    tokens = ["<unk>", "<s>", "</s>", "\u2581"] + list(ALPHABET) + list(ALPHABET.upper())
    tokens += list("0123456789.,!?'-:;()") + ["\u2581" + letter for letter in ALPHABET]
    tokens += [a + b for a in ALPHABET for b in ALPHABET]
    tokens = tokens[:size]
    types = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2
    types += [gguf.TokenType.NORMAL] * (size - 3)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * 3 + [-float(i) for i in range(size - 3)])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def bpe_tokenizer(writer, size, pre):
    """GPT-2-style: one control (last), characters in its byte alphabet, merged pairs."""
    space = "\u0120"  # how the byte alphabet writes 0x20
    tokens = [space, "\u010a"] + [chr(c) for c in range(ord("!"), ord("~") + 1)]
    pairs = [(space, a) for a in ALPHABET] + [(a, b) for a in ALPHABET for b in ALPHABET]
    pairs = pairs[: max(1, size - 1 - len(tokens))]
    tokens = (tokens + [a + b for a, b in pairs])[: size - 1] + ["<|endoftext|>"]
    merges = [f"{a} {b}" for a, b in pairs if {a, b, a + b} <= set(tokens)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * (size - 1) + [gguf.TokenType.CONTROL])
    writer.add_token_merges(merges or [f"{space} a"])  # an array of none has no GGUF form
    writer.add_bos_token_id(size - 1)
    writer.add_eos_token_id(size - 1)


def gemma4_tokenizer(writer, size):
    """Gemma 4's: controls, characters and pairs of them, merged by rank; U+2581 is a space."""
    space = "\u2581"
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", space, "\n"] + list(ALPHABET) + list(ALPHABET.upper())
    pairs = [(space, a) for a in ALPHABET] + [(a, b) for a in ALPHABET for b in ALPHABET]
    tokens = (tokens + [a + b for a, b in pairs])[:size]
    writer.add_tokenizer_model("gemma4")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * size)
    writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.UNKNOWN] + [gguf.TokenType.NORMAL] * (size - 4))
    writer.add_token_merges([f"{a} {b}" for a, b in pairs if a + b in tokens] or [f"{space} a"])
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_add_space_prefix(False)
    writer.add_add_bos_token(True)


def add_tokenizer(writer, kind, size):
    """kind: as in Architecture.tokenizer."""
    if kind == "llama":
        llama_tokenizer(writer, size)
    elif kind == "gemma4":
        gemma4_tokenizer(writer, size)
    else:
        bpe_tokenizer(writer, size, kind)


def count_head(writer, architecture, model):
    """Of a file with an MTP head: its layer is one of the blocks, whatever the metadata says so far."""
    keys, arch = writer.kv_data[0], gguf.MODEL_ARCH_NAMES[architecture.gguf_arch]
    keys[f"{arch}.block_count"].value = model.config.num_hidden_layers + 1
    keys.pop(f"{arch}.nextn_predict_layers", None)
    writer.add_nextn_predict_layers(1)


def write_gguf(path, architecture, model, name, tokenizer=None, head=None):
    """tokenizer: another than the architecture's own, as in Architecture.tokenizer. head: an MtpModel of the model's."""
    config = model.config
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture.gguf_arch])
    writer.add_type(gguf.GGUFType.MODEL)
    writer.add_name(name)
    architecture.metadata(config, writer)
    if head:
        count_head(writer, architecture, model)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    add_tokenizer(writer, tokenizer or architecture.tokenizer, config.vocab_size)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    for tensor_name, data in gguf_tensors(architecture, model, head).items():
        writer.add_tensor(tensor_name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
