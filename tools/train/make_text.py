#!/usr/bin/env python3
"""Writes the training text: an endless, seeded stream of documents, as JSON lines.

    make_text.py --documents 5 --show            # read some
    make_text.py --documents 120000 --out build/train/text.jsonl

A line is {"kind": ..., "text": ..., "quiet": [[from, to], ...]}. The model reads quiet
characters but does not learn to write them (see train.py). A document that is not a story
has a quiet beginning. So a model that starts without a prompt tells a story, but after a
prompt like `{"name":` or `12 + 7 =` it continues in kind.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from random import Random

import extra_text
import story_plots_1
import story_plots_2
import story_plots_3
from story_grammar import make_story

PLOTS = story_plots_1.PLOTS + story_plots_2.PLOTS + story_plots_3.PLOTS
EXTRAS = {"sums": extra_text.sums, "json": extra_text.json_record, "dialogue": extra_text.dialogue}
SHARES = {"story": 0.86, "sums": 0.05, "json": 0.04, "dialogue": 0.05}


def document(seed: int, index: int) -> dict:
    # Each document has its own generator, so any document can be made without the others.
    rng = Random(seed * 1_000_003 + index)
    kind = rng.choices(list(SHARES), weights=list(SHARES.values()))[0]
    if kind == "story":
        text, quiet = make_story(PLOTS, rng)
    else:
        text = EXTRAS[kind](rng)
        quiet = [[0, min(len(text), 3)]]
    return {"kind": kind, "text": text, "quiet": quiet}


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--documents", type=int, default=120000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--out", default="build/train/text.jsonl")
    ap.add_argument("--show", action="store_true", help="print the documents instead of writing them")
    args = ap.parse_args()
    if args.show:
        for i in range(args.documents):
            print(document(args.seed, i)["text"], end="\n----\n")
        return
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    partial = args.out + ".part"
    with open(partial, "w", encoding="utf-8") as f:
        for i in range(args.documents):
            f.write(json.dumps(document(args.seed, i), ensure_ascii=False) + "\n")
    os.replace(partial, args.out)
    print(f"{args.documents} documents, {os.path.getsize(args.out) / 1e6:.1f} MB in {args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
