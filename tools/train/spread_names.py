#!/usr/bin/env python3
"""Sets the names of a checkpoint further apart, so that it can learn to copy them.

    spread_names.py --checkpoint build/train/default.pt --factor 4

Names occur in the same contexts, so their embeddings stay close to each other, and the
deeper blocks can hardly tell them apart. The script enlarges the differences between the
names' embeddings and keeps their mean. A run that began with model.py's present initial
values does not need it; the shipped default model began with smaller ones (see
README.md).
"""
from __future__ import annotations

import argparse

import torch

from train import name_ids, save


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--checkpoint", default="build/train/default.pt")
    ap.add_argument("--tokenizer", default="build/train/tokenizer.json")
    ap.add_argument("--factor", type=float, default=4.0)
    args = ap.parse_args()
    state = torch.load(args.checkpoint, map_location="cpu", weights_only=True)
    table = state["model"]["token_embd.weight"]
    ids = name_ids(args.tokenizer)
    mean = table[ids].mean(0)
    table[ids] = mean + args.factor * (table[ids] - mean)
    save(args.checkpoint, **state)


if __name__ == "__main__":
    main()
