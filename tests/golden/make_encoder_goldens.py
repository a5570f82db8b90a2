#!/usr/bin/env python3
"""Writes tiny random encoders as transformers saves them (folders) to data/encoders/, with vectors and scores by transformers.

Needs: pip install torch transformers tokenizers safetensors numpy

    make_encoder_goldens.py [NAME...]    only these

A folder of an embedder has texts as token ids (tokens.txt, a text a line) and the mean of each text's rows (vectors.f32). A folder of a
model that ranks also has a tokenizer, pairs of texts (pairs.txt: query, tab, document) and their scores (scores.f32).
"""
import json
import pathlib
import shutil
import sys

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LENGTHS = [1, 2, 7, 16, 33, 40, 5]
LONG = [256, 257, 700]  # of models that read so many tokens
WORDS = """the a cat dog house river mountain bread small large old new runs sleeps eats sees under over near red blue green quickly slowly and or
not with without bird fish tree stone water fire""".split()
PAIRS = [("cat house", "the small cat sleeps near the house"), ("cat house", "a large river runs slowly under the old stone"),
         ("red bird", "the red bird eats bread and fish"), ("red bird", "water"), ("Not KNOWN words: zebra!", "the green tree, without water; a fire?")]

BERT = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=48,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
ROBERTA = dict(BERT, max_position_embeddings=50, type_vocab_size=1, pad_token_id=1, bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5)
CASES = {
    "bert": (transformers.BertModel, transformers.BertConfig(**BERT)),
    "bert-wide": (transformers.BertModel, transformers.BertConfig(**dict(BERT, hidden_size=64, num_attention_heads=2, num_hidden_layers=3, type_vocab_size=3))),
    "xlm-roberta": (transformers.XLMRobertaModel, transformers.XLMRobertaConfig(**ROBERTA)),
    "roberta-masked": (transformers.RobertaForMaskedLM, transformers.RobertaConfig(**ROBERTA)),
    "nomic": (transformers.NomicBertModel, transformers.NomicBertConfig(**dict({k: v for k, v in BERT.items() if "dropout" not in k}, max_position_embeddings=1024))),
    "modernbert": (transformers.ModernBertModel, transformers.ModernBertConfig(
        vocab_size=96, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=48, max_position_embeddings=1024, local_attention=8,
        pad_token_id=0, bos_token_id=1, cls_token_id=1, eos_token_id=2, sep_token_id=2)),
    "embedding-gemma": (transformers.Gemma3TextModel, transformers.Gemma3TextConfig(
        vocab_size=96, hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=48,
        max_position_embeddings=1024, sliding_window=540, use_bidirectional_attention=True, query_pre_attn_scalar=8,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"])),
    "jina3": (transformers.JinaEmbeddingsV3Model, transformers.JinaEmbeddingsV3Config(
        **dict(ROBERTA, max_position_embeddings=1024, intermediate_size=48), rope_parameters={"rope_type": "default", "rope_theta": 20000.0})),
    "gte": (transformers.GteModel, transformers.GteConfig(
        **dict({k: v for k, v in BERT.items() if "dropout" not in k}, max_position_embeddings=1024), rope_parameters={"rope_type": "default", "rope_theta": 500.0})),
    "eurobert": (transformers.EuroBertModel, transformers.EuroBertConfig(
        vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, max_position_embeddings=1024,
        pad_token_id=0, bos_token_id=1, eos_token_id=2)),
    "embedding-gemma-dense": (transformers.Gemma3TextModel, transformers.Gemma3TextConfig(
        vocab_size=96, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=48,
        max_position_embeddings=64, sliding_window=540, use_bidirectional_attention=True, query_pre_attn_scalar=8, layer_types=["full_attention"])),
    "bert-rank": (transformers.BertForSequenceClassification, transformers.BertConfig(**BERT, num_labels=1)),
    "xlm-roberta-rank": (transformers.XLMRobertaForSequenceClassification, transformers.XLMRobertaConfig(**ROBERTA, num_labels=1)),
}


def build(cls, config, seed):
    torch.manual_seed(seed)
    model = cls(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn_like(weight)
            weight.copy_(1.0 + 0.1 * noise if "LayerNorm.weight" in name or "norm.weight" in name else 0.3 * noise)
    return model


def add_dense(folder):
    """Writes sentence-transformers' files with two products behind the model, as EmbeddingGemma has them. Returns the products' matrix."""
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"), ("Dense", "3_Dense"), ("Normalize", "4_Normalize")]
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (kind, path) in enumerate(modules)]))
    for _, path in modules[1:4]:
        (folder / path).mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}))
    whole = torch.eye(32)
    for path, inputs, outputs in (("2_Dense", 32, 64), ("3_Dense", 64, 24)):
        weight = torch.randn(outputs, inputs) * inputs ** -0.5
        save_file({"linear.weight": weight}, folder / path / "model.safetensors", {"format": "pt"})
        (folder / path / "config.json").write_text(json.dumps(
            {"in_features": inputs, "out_features": outputs, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}))
        whole = weight @ whole
    return whole


def base_of(model):
    return getattr(model, model.base_model_prefix, model)


def tokenizer_of(config):
    """A WordPiece tokenizer of the words; the special tokens have the ids that the configuration has."""
    is_bert = config.model_type == "bert"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] if is_bert else ["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"]
    vocab = {token: i for i, token in enumerate(special + list(dict.fromkeys(WORDS)) + [",", ".", ";", "!", "?", ":"])}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(special)
    cls, sep = ("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])
    if is_bert:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[cls, sep])
    else:
        tokenizer.post_processor = processors.RobertaProcessing(sep, cls)
    return tokenizer


def main():
    folder = pathlib.Path(__file__).parent / "data" / "encoders"
    for seed, (name, (cls, config)) in enumerate(CASES.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        shutil.rmtree(folder / name, ignore_errors=True)
        model = build(cls, config, seed)
        out = folder / name
        model.save_pretrained(out)
        generator = torch.Generator().manual_seed(seed)
        lengths = LENGTHS + (LONG if config.max_position_embeddings >= 1024 else [])
        texts = [torch.randint(5, config.vocab_size, (length,), generator=generator) for length in lengths]
        with torch.no_grad():
            rows = [base_of(model)(tokens[None]).last_hidden_state[0].mean(0) for tokens in texts]
        (out / "tokens.txt").write_text("".join(" ".join(map(str, tokens.tolist())) + "\n" for tokens in texts))
        if name.endswith("-dense"):
            whole = add_dense(out)
            rows = [whole @ row for row in rows]
        torch.stack(rows).numpy().astype("<f4").tofile(out / "vectors.f32")
        if not name.endswith("-rank"):
            continue
        tokenizer = tokenizer_of(config)
        tokenizer.save(str(out / "tokenizer.json"))
        scores = []
        for pair in PAIRS:
            encoded = tokenizer.encode(*pair)
            inputs = {"input_ids": torch.tensor([encoded.ids])}
            if config.type_vocab_size > 1:
                inputs["token_type_ids"] = torch.tensor([encoded.type_ids])
            with torch.no_grad():
                scores.append(model(**inputs).logits[0, -1])
        (out / "pairs.txt").write_text("".join(f"{query}\t{document}\n" for query, document in PAIRS))
        torch.stack(scores).numpy().astype("<f4").tofile(out / "scores.f32")


if __name__ == "__main__":
    main()
