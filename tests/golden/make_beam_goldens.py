#!/usr/bin/env python3
"""Writes data/beams.txt: beam searches by transformers in float32 on the models of data/ up to LAST, two of each.

Needs: pip install torch transformers gguf numpy

A search is a line of settings, one of the prompt's tokens, one of the tokens that end a sequence, and one a sequence: its
score and its tokens, the best first. A search is left out where float64 finds other sequences.
"""
import argparse
import pathlib
import re

from beam_reference import agree, ends_for, search, settings
from cases import CASES
from tiny_models import build

OUT = pathlib.Path(__file__).resolve().parent / "data" / "beams.txt"
PER_MODEL = 2
# The search sees logits alone: these models are many enough.
LAST = "granitemoe"
# LongRoPE: transformers takes the short factors while a sequence is short, a file has those of its context (architectures.py).
LEFT_OUT = ("phi3-long",)


def lines_of(case, seed, model):
    for turn in range(PER_MODEL):
        how = settings(1000 * seed + turn, case.config["vocab_size"])
        how["ends"] = ends_for(model, how, 1000 * seed + turn)
        sequences = search(model, **how)
        if not agree(model, how, sequences):
            print(f"{case.name} {turn}: float64 finds others", flush=True)
            continue
        yield (f"search {case.name} {how['beams']} {how['results']} {how['max_tokens']} "
               f"{how['length_penalty']:g} {how['early']}")
        yield " ".join(["prompt", *map(str, how["prompt"])])
        yield " ".join(["ends", *map(str, how["ends"])])
        for score, tokens in sequences:
            yield " ".join(["beam", f"{score:.7g}", *map(str, tokens)])


def lines_by_model(text):
    models = {}
    for line in text.splitlines():
        if line.startswith("search "):
            lines = models.setdefault(line.split()[1], [])
        if not line.startswith("#"):
            lines.append(line)
    return models


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=OUT)
    parser.add_argument("--only", help="a regular expression: make these models' searches alone, and keep the others'")
    options = parser.parse_args()
    before = lines_by_model(options.out.read_text()) if options.only else {}
    lines = ["# search: model beams results max_tokens length_penalty early_stopping"]
    for index, case in enumerate(CASES):
        if case.name in LEFT_OUT:
            continue
        if options.only and not re.fullmatch(options.only, case.name):
            lines += before.get(case.name, [])
        else:
            lines += lines_of(case, 7000 + index, build(case.arch, case.config, 7000 + index))
            print(case.name, flush=True)
        if case.name == LAST:
            break
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
