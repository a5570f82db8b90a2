#!/usr/bin/env python3
"""Writes unigram-*.gguf and unigram.txt, for test_unigram.cpp: small unigram models that SentencePiece (made with 0.2.3)
trains on this repository's documents, in the form that llama.cpp's converter gives them, and what SentencePiece makes of
texts. Lines "model NAME", then "text HEX DECODED-HEX ID..." ("-": not decoded: SentencePiece writes something for unknown
tokens, and takes all spaces off the front, which only a U+2581 of the text itself can put there). Texts that can be cut in
two ways with one sum are left out: SentencePiece's sums are floats, whose rounding decides.

Their normalisers are short lists of rules, which SentencePiece compiles as it does Unicode's.
"""
import pathlib
import random
import tempfile

import gguf
import numpy as np
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as pb2

here = pathlib.Path(__file__).parent
random.seed(8)
documents = [line for page in sorted((here / "../../../docs").glob("*.md"))[:6]
             for line in page.read_text().splitlines()]

# Wide letters, ligatures, spaces of other kinds, "e" + U+0301; U+200B and U+00AD become nothing, "..." one character and "½" three.
rules = {0x3000: " ", 0xA0: " ", 0x09: " ", 0x0A: " ", 0x200B: "", 0xAD: "", 0xFB01: "fi", 0x2126: "Ω", 0xBD: "1/2"}
rules.update({0xFF21 + i: chr(ord("A") + i) for i in range(26)})
rules.update({0xFF41 + i: chr(ord("a") + i) for i in range(26)})
sequences = {"e\u0301": "é", "a\u0308": "ä", "...": "…", "..": "‥", "\u1112\u1161\u11ab": "한"}


def rules_file(folder):
    path = pathlib.Path(folder) / "rules.tsv"
    lines = [(chr(c), text) for c, text in rules.items()] + list(sequences.items())
    hexes = lambda text: " ".join(f"{ord(c):X}" for c in text)
    path.write_text("".join(f"{hexes(a)}\t{hexes(b)}\n" for a, b in lines))
    return str(path)


def train(name, **options):
    with tempfile.TemporaryDirectory() as folder:
        corpus = pathlib.Path(folder) / "corpus.txt"
        corpus.write_text("\n".join(documents))
        if options.pop("with_rules", False):
            options["normalization_rule_tsv"] = rules_file(folder)
        else:
            options["normalization_rule_name"] = "identity"
        spm.SentencePieceTrainer.train(input=str(corpus), model_prefix=f"{folder}/m", model_type="unigram",
                                       minloglevel=2, **options)
        return name, spm.SentencePieceProcessor(model_file=f"{folder}/m.model")


def write_gguf(name, sp):
    proto = pb2.ModelProto()
    proto.ParseFromString(sp.serialized_model_proto())
    writer = gguf.GGUFWriter(here / f"unigram-{name}.gguf", "t5")
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([p.piece.encode() for p in proto.pieces])
    writer.add_token_scores([p.score for p in proto.pieces])
    writer.add_token_types([p.type for p in proto.pieces])  # the numbers are the same
    spec = proto.normalizer_spec
    writer.add_add_space_prefix(spec.add_dummy_prefix)
    writer.add_remove_extra_whitespaces(spec.remove_extra_whitespaces)
    if spec.precompiled_charsmap:
        writer.add_precompiled_charsmap(spec.precompiled_charsmap)
    writer.add_unk_token_id(sp.unk_id())
    writer.add_bos_token_id(sp.bos_id())
    writer.add_eos_token_id(sp.eos_id())
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def random_text():
    pools = [" ".join(documents).split(), list("  \t\u3000\u00a0\n"), list(rules), list(sequences), list("é中文字🦙ßΩ▁"),
             list("abcdefgh.,x"), [".", "..", "...."]]
    parts = []
    for _ in range(random.randint(1, 14)):
        part = random.choice(random.choice(pools))
        parts.append(chr(part) if isinstance(part, int) else part)
        parts.append(random.choice([" ", " ", "", "  "]))
    return "".join(parts)


if __name__ == "__main__":
    models = [
        train("rules", with_rules=True, vocab_size=400, character_coverage=0.995),
        train("bytes", vocab_size=520, byte_fallback=True, remove_extra_whitespaces=False, character_coverage=0.99),
        train("spaces", with_rules=True, vocab_size=300, add_dummy_prefix=False, split_by_whitespace=False,
              treat_whitespace_as_suffix=False, character_coverage=0.98),
    ]
    texts = ["", " ", "   ", "the engine", " the  engine ", "\u3000", "\u200b", "a\u200bb", "▁", "a▁▁b", "▁a▁", "e\u0301",
             "ｆｕｌｌ　ｗｉｄｔｈ", "ﬁle", ". .. ... ....", "\n\n", "中文", "中 文🦙", "½", "<s>", "</s>", "<unk>", "<0x41>"]
    texts += [random_text() for _ in range(60)] + random.sample([d for d in documents if d], 12)
    with open(here / "unigram.txt", "w") as file:
        for name, sp in models:
            write_gguf(name, sp)
            file.write(f"model {name}\n")
            for text in texts:
                ids = sp.encode(text)
                best = sp.nbest_encode(text, nbest_size=2, return_type="proto").nbests
                if len(best) == 2 and best[0].score - best[1].score < 1e-3:
                    continue
                decoded = "-" if sp.unk_id() in ids or "▁" in text else "x" + sp.decode(ids).encode().hex()
                file.write(" ".join(["text", "x" + text.encode().hex(), decoded] + [str(i) for i in ids]) + "\n")
