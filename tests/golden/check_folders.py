#!/usr/bin/env python3
"""Compares models in folders, as transformers saves them, with transformers and with the same models in GGUF.

Needs: pip install torch transformers gguf numpy

    check_folders.py --generate PATH [--count N] [--seed S] [--arch NAME]

Each model is random (check_random.py draws it). Prints the largest absolute difference from transformers, and whether the bits are those of
the GGUF file. Exits with 1 if a difference is above the tolerance, or the program fails.
"""
import argparse
import pathlib
import sys
import tempfile

import numpy as np

from architectures import ARCHITECTURES
from check_random import TOLERANCE, pick, random_case, run_program
from gguf_out import write_gguf
from tiny_models import build, random_tokens, run


def check(index, options, folder):
    rng = np.random.Generator(np.random.PCG64([options.seed, index]))
    arch = options.arch or pick(rng, *ARCHITECTURES)
    config, count = random_case(rng, arch)
    model = build(arch, config, [options.seed, index])
    tokens = random_tokens(count, config["vocab_size"], index)
    expected, _ = run(model, tokens)
    model.save_pretrained(folder / f"{index}")
    write_gguf(folder / f"{index}.gguf", ARCHITECTURES[arch], model, f"{index}")
    ours, problem = run_program(options.generate, [], folder / f"{index}", tokens, config["vocab_size"], folder / "ours.f32")
    if ours is None:
        print(f"{index}: {arch}: FAILED, {problem}\n  {config}", flush=True)
        return False, False
    gguf, problem = run_program(options.generate, [], folder / f"{index}.gguf", tokens, config["vocab_size"], folder / "gguf.f32")
    same = gguf is not None and np.array_equal(ours, gguf)
    difference = np.abs(ours - expected).max()
    good = bool(difference <= TOLERANCE)
    print(f"{index}: {arch}, {count} tokens: {'' if good else 'FAILED, '}{difference:.2e} from transformers; "
          f"{'the bits of GGUF' if same else problem or f'{np.abs(ours - gguf).max():.1e} from GGUF'}", flush=True)
    if not good:
        print(f"  {config}", flush=True)
    return good, same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generate", required=True, help="path of the command-line program")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", choices=ARCHITECTURES, help="only this architecture")
    parser.add_argument("--keep", type=pathlib.Path, help="write the models here and keep them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = [check(index, options, folder) for index in range(options.first, options.first + options.count)]
    good, same = (sum(result[i] for result in results) for i in range(2))
    print(f"{good} of {options.count} within {TOLERANCE:g} of transformers, {same} with the bits of GGUF")
    return good < options.count


if __name__ == "__main__":
    sys.exit(main())
