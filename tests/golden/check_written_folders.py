#!/usr/bin/env python3
"""Compares folders that tessera-convert writes of GGUF files with transformers, which must load them and give the same logits.

Needs: pip install torch transformers numpy

    check_written_folders.py --convert PATH [NAME ...]

Without names: all models of data/manifest.txt, whose stored logits are transformers' own, in float32. A name may also be the path of a GGUF
file; then --generate PATH is needed, and the logits are compared with those of that program (numerics = reference). Prints the largest
absolute difference. Exits with 1 if one is above the tolerance, or a program fails. Types that transformers has no class for are named.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from check_random import run_program

TOLERANCE = 1e-3
DATA = pathlib.Path(__file__).parent / "data"


def manifest():
    """{name: (number of tokens, size of the vocabulary, first row with logits)}"""
    cases = {}
    for line in (DATA / "manifest.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, tokens, vocab, first = line.split()[:4]
            cases[name] = int(tokens), int(vocab), int(first)
    return cases


def logits_of(folder, tokens):
    """The logits that transformers' class computes, in float32."""
    import torch
    from transformers import AutoModelForCausalLM

    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    lost = info["missing_keys"]  # tensors that the class does not know are draft heads
    with torch.no_grad():
        return model.eval()(torch.tensor([tokens]), use_cache=False).logits[0].numpy(), lost


def check(name, options, place):
    """Whether the folder of a stored model gives its logits."""
    _, vocab, first = manifest()[name]
    tokens = [int(token) for token in (DATA / f"{name}.tokens.txt").read_text().split()]
    expected = np.fromfile(DATA / f"{name}.logits.f32", dtype="<f4").reshape(-1, vocab)
    return compare(name, DATA / f"{name}.gguf", tokens, expected, first, options, place)


def check_file(path, options, place):
    """Whether the folder of a GGUF file gives transformers the logits that it gives `generate`, from the same numbers: in float32."""
    tokens = [5, 300, 1200, 77, 42, 9, 801, 23]
    again = place / "again"
    subprocess.run([options.convert, path, again, "--to", "safetensors", "--type", "F32"], check=True, capture_output=True)
    vocab = json.loads((again / "config.json").read_text())["vocab_size"]
    expected, problem = run_program(options.generate, ["--numerics", "reference"], again, tokens, vocab, place / "ours.f32")
    if expected is None:
        print(f"{path}: FAILED, {problem}", flush=True)
        return False
    return compare(path, path, tokens, expected, 0, options, place)


def compare(name, gguf, tokens, expected, first, options, place):
    folder = place / pathlib.Path(name).stem
    done = subprocess.run([options.convert, gguf, folder, "--to", "safetensors", "--type", "F32"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{name}: FAILED, {done.stderr.strip()}", flush=True)
        return False
    try:
        ours, lost = logits_of(folder, tokens)
    except Exception as error:  # transformers raises errors of many kinds
        kind = json.loads((folder / "config.json").read_text())["model_type"]
        missing = "does not recognize this architecture" in str(error)
        print(f"{name}: {'no class' if missing else 'FAILED'} for {kind}: {str(error)[:300]}", flush=True)
        return missing
    difference = float(np.abs(ours[first:] - expected).max())
    good = difference <= TOLERANCE and not lost
    print(f"{name}: {'' if good else 'FAILED, '}{difference:.1e} from transformers{f', {lost}' if lost else ''}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="models of data/manifest.txt, or GGUF files")
    parser.add_argument("--convert", required=True, type=pathlib.Path, help="the program tessera-convert")
    parser.add_argument("--generate", type=pathlib.Path, help="the program generate, for GGUF files")
    options = parser.parse_args()
    good = True
    for name in options.names or manifest():
        with tempfile.TemporaryDirectory() as place:
            is_file = name.endswith(".gguf")
            good = (check_file if is_file else check)(name, options, pathlib.Path(place)) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
