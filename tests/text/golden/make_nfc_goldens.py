#!/usr/bin/env python3
"""Writes nfc.txt and nfc_tokens.txt, for test_nfc.cpp.

nfc.txt: a line "SOURCE NORMAL" of UTF-8 in hex for each case, as Python's unicodedata normalises to NFC (made with
Unicode 14): every character that changes, every character that is put together of others, and random sequences.

nfc_tokens.txt: a small byte-level vocabulary with Qwen2's normaliser and pre-tokenizer, and the ids that Hugging Face's
tokenizers (made with 0.23) gives. Lines "token TEXT", "merge LEFT RIGHT", "text HEX ID...". Texts are of Unicode 3.2:
tokenizers 0.23 orders marks as of Unicode 9, and those that came later not at all.
"""
import pathlib
import random
import unicodedata

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

here = pathlib.Path(__file__).parent
random.seed(15)


def nfc(text):
    return unicodedata.normalize("NFC", text)


def nfd(text):
    return unicodedata.normalize("NFD", text)


def is_hangul(c):
    return 0xAC00 <= c <= 0xD7A3


points = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and not is_hangul(c)]
changing = [c for c in points if nfc(c) != c]
composed = [c for c in points if nfc(c) == c and nfd(c) != c]
marks = [c for c in points if unicodedata.combining(c)]
pools = [marks, marks, [nfd(c)[0] for c in composed], [nfd(c)[-1] for c in composed], composed, changing,
         [chr(c) for c in (0x1100, 0x1112, 0x1161, 0x1175, 0x11A7, 0x11A8, 0x11C2, 0xAC00, 0xAC01, 0xD7A3)],
         list("aeiouAcIıE \n"), list("̧̄̈́̀́̓͝͠ᅡ়゙゚ാ")]
cases = changing + [nfd(c) for c in composed]
for _ in range(700):
    chosen = random.sample(pools, random.randint(1, 4))
    cases.append("".join(random.choice(random.choice(chosen)) for _ in range(random.randint(2, 9))))
with open(here / "nfc.txt", "w") as file:
    for text in cases:
        file.write(f"{text.encode().hex()} {nfc(text).encode().hex()}\n")

words = ("caf\u00e9 r\u00e9sum\u00e9 na\u00efve \u00e9t\u00e9 \u00fcber M\u00e4dchen gr\u00f6\u00dfer ni\u00f1o a\u00f1o "
         "\u0111\u01b0\u1eddng ti\u1ebfng Vi\u1ec7t \u03ac\u03bd\u03b8\u03c1\u03c9\u03c0\u03bf\u03c2 \u0439\u043e\u0433 "
         "\u304c\u304e\u3050 \ud55c\uad6d\uc5b4 the thing and then it's 12").split()
text = [" ".join(random.choice(words) for _ in range(12)) for _ in range(300)]
qwen2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
tok = Tokenizer(models.BPE())
tok.normalizer = normalizers.NFC()
tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(qwen2), "isolated"),
                                             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
tok.decoder = decoders.ByteLevel()
tok.train_from_iterator(text, trainers.BpeTrainer(vocab_size=330, show_progress=False,
                                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
end = tok.get_vocab_size()
tok.add_special_tokens(["<|end|>"])
model = __import__("json").loads(tok.to_str())["model"]
with open(here / "nfc_tokens.txt", "w") as file:
    for token in sorted(model["vocab"], key=model["vocab"].get):
        file.write(f"token {token}\n")
    for left, right in model["merges"]:
        file.write(f"merge {left} {right}\n")
    old = [t for t in cases if all(unicodedata.ucd_3_2_0.category(c) != "Cn" for c in t)]
    for line in text[:10] + old[-40:] + ["e\u0301", "\u212b<|end|>\u0301x", "a<|end|>e\u0301", "\u1112\u1161\u11ab"]:
        for source in {line: 0, nfd(line): 0}:
            ids = tok.encode(source).ids
            file.write(" ".join(["text", source.encode().hex()] + [str(i) for i in ids]) + "\n")
