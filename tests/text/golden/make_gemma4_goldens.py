#!/usr/bin/env python3
"""Writes gemma4.txt, for test_tokenizer_gemma4.cpp: a made-up vocabulary with merges, and what the `tokenizers` package
(made with 0.23.3) makes of texts with Gemma 4's pipeline: spaces become U+2581, then BPE with byte fallback. Lines "token
HEX", "merge HEX HEX" by rank, then "text HEX ID...".
"""
import pathlib
import random

from tokenizers import Tokenizer, decoders, models, normalizers

here = pathlib.Path(__file__).parent
random.seed(4)
SPACE = "\u2581"
ALPHABET = list("abcdehlorst") + [SPACE, "\n", ".", "é", "ß", "日", "本", "😀"]

tokens = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)] + ALPHABET
merges = []
parts = list(ALPHABET)
while len(merges) < 150:
    left, right = random.choice(parts), random.choice(parts)
    joined = left + right
    # Newlines join newlines alone. A token may come about in several ways.
    if ("\n" in joined) != (set(joined) == {"\n"}) or len(joined) > 6 or (left, right) in merges:
        continue
    merges.append((left, right))
    if joined not in tokens:
        tokens.append(joined)
        parts.append(joined)
for run in (2, 3, 4):  # of spaces and newlines, as the real vocabulary has them
    for c in (SPACE, "\n"):
        if c * run not in tokens:
            tokens.append(c * run)
        if (c * (run - 1), c) not in merges:
            merges.insert(random.randrange(len(merges)), (c * (run - 1), c))

tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges, unk_token="<unk>",
                                 fuse_unk=True, byte_fallback=True))
tokenizer.normalizer = normalizers.Replace(" ", SPACE)
tokenizer.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])

texts = ["hello world", " two  spaces   and four    ", "\n", "a\n\nb\n\n\n c", "日本 é ß 😀", "xyz", "é\u0301", "▁literal ▁", "\u00a0 \t q"]
pool = list("abcdehlorst    \n\n.éß日本😀xq▁漢")
texts += ["".join(random.choice(pool) for _ in range(random.randrange(1, 60))) for _ in range(200)]

lines = [f"token {token.encode().hex()}" for token in tokens]
lines += [f"merge {left.encode().hex()} {right.encode().hex()}" for left, right in merges]
for text in texts:
    encoded = tokenizer.encode(text)
    assert tokenizer.decode(encoded.ids) == text.replace(SPACE, " "), text
    lines.append(f"text {text.encode().hex()} " + " ".join(map(str, encoded.ids)))
(here / "gemma4.txt").write_text("\n".join(lines) + "\n")
