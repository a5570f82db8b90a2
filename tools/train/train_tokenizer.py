#!/usr/bin/env python3
"""Trains the byte-level BPE tokenizer: GPT-2's pre-tokenizer, a vocabulary of 2048.

    train_tokenizer.py --text build/train/text.jsonl --out build/train/tokenizer.json

Token 0, <|endoftext|>, begins a document and ends it. Each of the 256 bytes has a token,
so any text can be written. Every name gets a token of its own (with its leading space),
so keeping a hero's name through a story only needs copying one token.
"""
from __future__ import annotations

import argparse
import json
import os
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import story_words as words

END_OF_TEXT = "<|endoftext|>"
NAME_WEIGHT = 4000


def texts(path: str, limit: int):
    with open(path, encoding="utf-8") as f:
        for i, line in enumerate(f):
            if i >= limit:
                break
            yield json.loads(line)["text"]
    # Repeats the names, so that rare names also occur often enough to get tokens of their own.
    for _ in range(NAME_WEIGHT // 100):
        yield (" " + " ".join(words.NAMES)) * 100


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--text", default="build/train/text.jsonl")
    ap.add_argument("--documents", type=int, default=30000, help="how many documents to learn from")
    ap.add_argument("--vocab", type=int, default=2048)
    ap.add_argument("--out", default="build/train/tokenizer.json")
    args = ap.parse_args()

    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=args.vocab, special_tokens=[END_OF_TEXT], show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tok.train_from_iterator(texts(args.text, args.documents), trainer)

    if tok.get_vocab_size() != args.vocab:
        sys.exit(f"the text gives only {tok.get_vocab_size()} tokens")
    split = [n for n in words.NAMES if len(tok.encode(" " + n).ids) != 1]
    if split:
        sys.exit(f"names of more than one token: {split}")
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    tok.save(args.out)
    sample = next(texts(args.text, 1))
    ids = tok.encode(sample).ids
    assert tok.decode(ids) == sample
    print(f"{args.vocab} tokens in {args.out}; {len(sample) / len(ids):.2f} characters a token")


if __name__ == "__main__":
    main()
