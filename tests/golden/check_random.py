#!/usr/bin/env python3
"""Compares the command-line program with transformers on random models and prompts.

Needs: pip install torch transformers gguf numpy

    check_random.py --generate PATH [--count N] [--seed S] [--arch NAME] [--extra "ARGS"]

Case I of seed S is the same model and prompt whatever the count, so that a failure can be
had again alone: --seed S --first I --count 1 --keep DIR. Prints each case's largest
absolute difference; exits with 1 if one is above the tolerance or the program fails.
"""
import argparse
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

from architectures import ARCHITECTURES
from cases import falcon, gated, gemma3, gpt2, rope
from gguf_out import write_gguf
from tiny_models import build, random_tokens, run

# Random shapes are now and then less well conditioned than the committed cases.
TOLERANCE = 1e-3


def pick(rng, *options):
    return options[int(rng.integers(len(options)))]


def random_heads(rng):
    """(heads, KV heads): from one to all, 1 to 4 query heads for each KV head."""
    kv_heads = int(rng.integers(1, 4))
    return kv_heads * int(rng.integers(1, 5)), kv_heads


def random_rope(rng, arch):
    theta = pick(rng, 100.0, 10000.0, 500000.0, 1e6)
    kind = pick(rng, "default", "linear", "llama3") if arch == "llama" else "default"
    if kind == "linear":
        return rope(theta, kind, factor=float(rng.uniform(1.5, 8)))
    if kind == "llama3":
        return rope(theta, kind, factor=float(rng.uniform(2, 32)), low_freq_factor=1.0,
                    high_freq_factor=float(rng.uniform(1.5, 8)),
                    original_max_position_embeddings=int(rng.integers(16, 300)))
    return rope(theta)


def random_case(rng, arch):
    """(configuration, tokens in the prompt) within what the architecture allows."""
    heads, kv_heads = random_heads(rng)
    head_dim = 2 * int(rng.integers(2, 33))
    d = heads * (head_dim if arch in ("falcon", "gpt2") else 2 * int(rng.integers(2, 17)))
    vocab = int(rng.integers(33, 400))
    tokens = pick(rng, 1, 2, int(rng.integers(3, 60)), int(rng.integers(60, 400)))
    shape = {"tie_word_embeddings": bool(rng.integers(2))}
    eps = pick(rng, 1e-6, 1e-5, 1e-2)
    ffn = int(rng.integers(5, 200))
    layers = int(rng.integers(1, 5))
    if arch == "gpt2":
        config = gpt2(vocab, d, heads, layers, n_inner=pick(rng, None, ffn))
        return config | shape | {"layer_norm_epsilon": eps, "n_positions": 512}, tokens
    shape["max_position_embeddings"] = 512
    if arch == "falcon":
        config = falcon(vocab, d, heads, layers, ffn_hidden_size=pick(rng, None, ffn))
        shape |= {"layer_norm_epsilon": eps, "num_kv_heads": kv_heads} | random_rope(rng, arch)
        if rng.integers(2):
            shape |= {"new_decoder_architecture": True,
                      "num_ln_in_parallel_attn": pick(rng, None, 1, 2)}
        return config | shape, tokens
    if arch == "gemma3":
        return gemma3(vocab, d, heads, kv_heads, ffn, layers, head_dim, int(rng.integers(1, 200)),
                      period=int(rng.integers(1, layers + 1)), theta=pick(rng, 1e4, 1e6),
                      windowed_theta=pick(rng, 1e4, 500.0), context=512, eps=eps,
                      full=pick(rng, "default", "linear")), tokens
    if arch == "qwen3" or rng.integers(2):
        shape["head_dim"] = head_dim
    if arch == "llama":
        shape |= {"attention_bias": bool(rng.integers(2)), "mlp_bias": bool(rng.integers(2))}
    if arch == "granite":
        shape |= {"attention_multiplier": float(rng.uniform(0.1, 0.4)), "embedding_multiplier": float(rng.uniform(0.5, 4)),
                  "residual_multiplier": float(rng.uniform(0.2, 1)), "logits_scaling": float(rng.uniform(0.5, 2))}
    if arch == "mistral":
        shape["sliding_window"] = int(rng.integers(1, 200))
    shape |= random_rope(rng, arch)
    return gated(vocab, d, heads, kv_heads, ffn, layers, eps) | shape, tokens


def run_program(program, extra, model_path, tokens, vocab, out):
    ids = " ".join(map(str, tokens))
    command = [program, "-m", str(model_path), "--prompt-ids", ids, "--logits", str(out),
               "--kv-dtype", "f32", *extra]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()[-500:]}"
    logits = np.fromfile(out, dtype="<f4")
    if logits.size != len(tokens) * vocab:
        return None, f"{logits.size} logits instead of {len(tokens)} x {vocab}"
    return logits.reshape(len(tokens), vocab), ""


def check_one(index, options, folder):
    rng = np.random.Generator(np.random.PCG64([options.seed, index]))
    arch = options.arch or pick(rng, *ARCHITECTURES)
    config, count = random_case(rng, arch)
    model = build(arch, config, [options.seed, index])
    tokens = random_tokens(count, config["vocab_size"], index)
    expected, _ = run(model, tokens)
    path = folder / f"case-{index}.gguf"
    write_gguf(path, ARCHITECTURES[arch], model, path.stem)
    (folder / f"case-{index}.tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
    actual, problem = run_program(options.generate, shlex.split(options.extra), path, tokens,
                                  config["vocab_size"], folder / f"case-{index}.logits.f32")
    if actual is not None:
        difference = np.abs(actual - expected).max()
        if difference <= TOLERANCE:  # false for NaN too
            print(f"{index}: {arch}, {count} tokens: {difference:.2e}", flush=True)
            return True
        row = int(np.argmax(np.abs(np.nan_to_num(actual, nan=np.inf) - expected).max(axis=1)))
        problem = f"differs by {difference:.2e}, most after token {row}"
    print(f"{index}: {arch}, {count} tokens: FAILED, {problem}\n  {config}", flush=True)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generate", required=True, help="path of the command-line program")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", choices=ARCHITECTURES, help="only this architecture")
    parser.add_argument("--extra", default="", help="more arguments for the program")
    parser.add_argument("--keep", type=pathlib.Path, help="write the files here and keep them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        indices = range(options.first, options.first + options.count)
        failures = sum(not check_one(index, options, folder) for index in indices)
    print(f"{options.count - failures} of {options.count} within {TOLERANCE:g}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
