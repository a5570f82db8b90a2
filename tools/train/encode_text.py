#!/usr/bin/env python3
"""Turns the text into token files for training: uint16, a document after another.

    encode_text.py --text build/train/text.jsonl --tokenizer build/train/tokenizer.json

Each document begins with <|endoftext|>. A token that touches a quiet span of its document
(see make_text.py) has the high bit set: the model reads the token but does not learn it.
The last documents go to a file of their own, for measurements.
"""
from __future__ import annotations

import argparse
import json
import os

import numpy as np
from tokenizers import Tokenizer

QUIET = 0x8000
BATCH = 2000


def encode(tok: Tokenizer, docs: list[dict]) -> np.ndarray:
    out = []
    for doc, enc in zip(docs, tok.encode_batch([d["text"] for d in docs])):
        ids = np.array([0] + enc.ids, dtype=np.uint16)
        for start, end in doc["quiet"]:
            for i, (a, b) in enumerate(enc.offsets):
                if a < end and b > start:
                    ids[i + 1] |= QUIET
        out.append(ids)
    return np.concatenate(out)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--text", default="build/train/text.jsonl")
    ap.add_argument("--tokenizer", default="build/train/tokenizer.json")
    ap.add_argument("--out", default="build/train", help="folder for train.bin and val.bin")
    ap.add_argument("--val", type=int, default=1000, help="documents kept apart for measuring")
    args = ap.parse_args()

    tok = Tokenizer.from_file(args.tokenizer)
    with open(args.text, encoding="utf-8") as f:
        docs = [json.loads(line) for line in f]
    for name, part in (("val", docs[-args.val:]), ("train", docs[:-args.val])):
        path = os.path.join(args.out, name + ".bin")
        n = 0
        with open(path + ".part", "wb") as f:
            for i in range(0, len(part), BATCH):
                ids = encode(tok, part[i:i + BATCH])
                ids.tofile(f)
                n += len(ids)
        os.replace(path + ".part", path)
        print(f"{path}: {len(part)} documents, {n / 1e6:.2f} M tokens")


if __name__ == "__main__":
    main()
