#!/usr/bin/env python3
"""Compares models in folders, as transformers saves them, with transformers and with the same models in GGUF.

Needs: pip install torch transformers gguf numpy

    check_folders.py --generate PATH [--count N] [--seed S] [--arch NAME ...] [--each] [--odd] [--bare]

Each model is random (check_random.py draws it). Prints the largest absolute difference from transformers, and whether the bits are those of
the GGUF file. Exits with 1 if a difference is above the tolerance, or the program fails.

--odd changes each configuration to something that GGUF converters lose (odd_folders.py), and compares with transformers only.
--bare removes the keys from config.json whose values are the defaults of transformers' class, as people do who write it by hand.
--each draws N cases of every architecture, instead of N cases in all.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

from architectures import ARCHITECTURES
from check_random import TOLERANCE, pick, random_case, run_program
from gguf_out import write_gguf
from odd_folders import ODD, defaults
from tiny_models import build, random_tokens, run


def make_bare(folder, config_class):
    """Removes the keys from config.json whose values are the class's defaults."""
    path = folder / "config.json"
    usual = defaults(config_class)
    config = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in config.items() if key not in usual or usual[key] != value}))


def draw(index, options, arch):
    """A random model: (architecture, configuration, tokens)."""
    rng = np.random.Generator(np.random.PCG64([options.seed, index]))
    arch = arch or pick(rng, *(ODD if options.odd else ARCHITECTURES))
    config, count = random_case(rng, arch)
    if options.odd:
        config |= ODD[arch](rng, config)
    if options.bare:
        usual = defaults(ARCHITECTURES[arch].config_class)
        for key in [key for key in config if "size" not in key and "num" not in key and key in usual and rng.integers(2)]:
            del config[key]  # the model is made with the default
    return arch, config, random_tokens(count, config["vocab_size"], index)


def check(index, options, folder, arch=None):
    """(whether the logits are transformers', whether the bits are those of GGUF)"""
    arch, config, tokens = draw(index, options, arch)
    model = build(arch, config, [options.seed, index])
    expected, _ = run(model, tokens)
    path = folder / f"{arch}-{index}"
    model.save_pretrained(path)
    if options.bare:
        make_bare(path, type(model.config))
    ours, problem = run_program(options.generate, [], path, tokens, config["vocab_size"], folder / "ours.f32")
    if ours is None:
        print(f"{index}: {arch}: FAILED, {problem}\n  {config}", flush=True)
        return False, False
    difference = np.abs(ours - expected).max()
    good = bool(difference <= TOLERANCE)
    text = f"{index}: {arch}, {len(tokens)} tokens: {'' if good else 'FAILED, '}{difference:.2e} from transformers"
    same = False
    if not options.odd:
        gguf_path = folder / f"{arch}-{index}.gguf"
        write_gguf(gguf_path, ARCHITECTURES[arch], model, f"{index}")
        gguf, problem = run_program(options.generate, [], gguf_path, tokens, config["vocab_size"], folder / "gguf.f32")
        same = gguf is not None and np.array_equal(ours, gguf)
        text += f"; {'the bits of GGUF' if same else problem or f'{np.abs(ours - gguf).max():.1e} from GGUF'}"
    print(text if good else f"{text}\n  {config}", flush=True)
    return good, same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generate", required=True, help="path of the command-line program")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", choices=ARCHITECTURES, nargs="+", help="only these architectures, COUNT cases of each")
    parser.add_argument("--each", action="store_true", help="COUNT cases of each architecture")
    parser.add_argument("--odd", action="store_true", help="configurations that GGUF converters lose")
    parser.add_argument("--bare", action="store_true", help="without the keys whose values are the defaults")
    parser.add_argument("--keep", type=pathlib.Path, help="write the models here and keep them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        wanted = options.arch or ([None] if not options.each else [name for name in ARCHITECTURES if not options.odd or name in ODD])
        results = []
        for arch in wanted:
            own = [check(index, options, folder, arch) for index in range(options.first, options.first + options.count)]
            if len(wanted) > 1:
                print(f"{arch}: {sum(good for good, _ in own)} of {len(own)}")
            results += own
    good, same = (sum(result[i] for result in results) for i in range(2))
    print(f"{good} of {len(results)} within {TOLERANCE:g} of transformers, {same} with the bits of GGUF")
    return good < len(results)


if __name__ == "__main__":
    sys.exit(main())
