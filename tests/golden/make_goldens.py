#!/usr/bin/env python3
"""Writes data/: tiny random models as GGUF and their logits by transformers in float32.

Needs: pip install torch transformers gguf numpy

  data/NAME.gguf          the model, F32
  data/NAME.tokens.txt    the token ids, one line
  data/NAME.logits.f32    logits after each token from FIRST_ROW on, [rows, vocab],
                          float32 little endian
  data/manifest.txt       a line for each case: NAME TOKENS VOCAB FIRST_ROW TOLERANCE
Every model is checked for being worth comparing with (see check_case). Running it twice
on one machine writes the same bytes; elsewhere the logits' last bits may differ.
"""
import argparse
import math
import pathlib
import re

import numpy as np
import torch

from architectures import ARCHITECTURES, named_weights
from cases import CASES
from gguf_out import write_gguf
from tiny_models import adds_one, build, random_tokens, run

DATA = pathlib.Path(__file__).resolve().parent / "data"
# transformers' float32 is itself within 1e-5 of its float64 (check_case). More than 1e-4
# would be blind: the exact GELU instead of GPT-2's tanh one, or the reverse in Falcon,
# changes the logits by 5e-4.
TOLERANCE = 1e-4
# What a mistake must change at least, so that a reader that makes it fails.
VISIBLE = 4 * TOLERANCE


def attention_entropy(attentions):
    """Mean entropy as a share of the uniform one's, over queries with 8 or more keys."""
    shares = []
    for layer in attentions:
        for p in layer.reshape(-1, layer.shape[-1]):
            keys = np.count_nonzero(p)
            if keys >= 8:
                p = p[p > 0].astype(np.float64)
                shares.append(-(p * np.log(p)).sum() / math.log(keys))
    return float(np.mean(shares))


def neutral(config, name, parameter):
    """The parameter as a reader sees it that skips it: a norm's weight and a scale one, a sink of no weight, the rest zero.
    Some norms add the one themselves."""
    if name.endswith("sinks"):
        return torch.full_like(parameter, -1e9)
    skipped_norm = parameter.dim() == 1 and name.endswith((".weight", "scale", "scalar")) and not adds_one(config, name)
    return torch.ones_like(parameter) if skipped_norm else torch.zeros_like(parameter)


def check_case(case, seed, model, tokens, logits, attentions):
    """Everything in the model matters: each parameter and each key under test."""
    rows = slice(case.first_row, None)
    std = logits[rows].std()
    entropy = attention_entropy(attentions)
    assert np.isfinite(logits).all() and 0.3 < std < 3, (case.name, std)
    assert 0.2 < entropy < 0.9, (case.name, entropy)

    weakest = math.inf
    for name, parameter in named_weights(model):
        original = parameter.detach().clone()
        with torch.no_grad():
            parameter.copy_(neutral(model.config, name, parameter))
            change = np.abs(run(model, tokens)[0] - logits)[rows].max()
            parameter.copy_(original)
        assert change > VISIBLE, (case.name, name, change)
        weakest = min(weakest, change)
    for changes in case.must_matter:
        other = build(case.arch, {**case.config, **changes}, seed)
        change = np.abs(run(other, tokens)[0] - logits)[rows].max()
        assert change > VISIBLE, (case.name, changes, change)
        weakest = min(weakest, change)

    divisors = ARCHITECTURES[case.arch].extra_tensors(model.config).get("rope_freqs.weight")
    if divisors is not None and case.arch != "gemma4":  # kept, interpolated and divided frequencies: all three
        assert len(set(divisors)) >= 3 and min(divisors) == 1, (case.name, divisors)

    # How far float32 itself is from the truth: what is left of the tolerance for a reader.
    error = np.abs(run(model.double(), tokens)[0] - logits)[rows].max()
    assert error < TOLERANCE / 10, (case.name, error)
    return f"std {std:.2f} entropy {entropy:.2f} weakest {weakest:.1e} f32 error {error:.1e}"


def make_case(case, seed, out):
    vocab = case.config["vocab_size"]
    model = build(case.arch, case.config, seed)
    tokens = random_tokens(case.tokens, vocab, seed)
    logits, attentions = run(model, tokens)
    write_gguf(out / f"{case.name}.gguf", ARCHITECTURES[case.arch], model, case.name,
               case.tokenizer)
    (out / f"{case.name}.tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
    (out / f"{case.name}.logits.f32").write_bytes(logits[case.first_row:].astype("<f4").tobytes())
    print(f"{case.name}: {check_case(case, seed, model, tokens, logits, attentions)}", flush=True)
    return f"{case.name} {case.tokens} {vocab} {case.first_row} {TOLERANCE:g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=DATA)
    parser.add_argument("--only", help="a regular expression: make these alone, and keep the other lines of the manifest")
    options = parser.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    manifest = out / "manifest.txt"
    before = {line.split()[0]: line for line in manifest.read_text().splitlines()} if options.only else {}
    lines = ["# name tokens vocab first_row tolerance"]
    for index, case in enumerate(CASES):
        if options.only and not re.fullmatch(options.only, case.name):
            lines += [before[case.name]] if case.name in before else []
            continue
        lines.append(make_case(case, 7000 + index, out))
    manifest.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
