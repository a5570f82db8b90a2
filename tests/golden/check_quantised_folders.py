#!/usr/bin/env python3
"""Checks folders that the packages write that publish quantised models: tiny random models are quantised, packed and saved by each package.

Needs: pip install torch transformers gguf numpy safetensors compressed-tensors bitsandbytes; the sources of AutoAWQ, AutoGPTQ and GPTQModel
(pip download --no-deps autoawq auto-gptq gptqmodel, unpacked; their packers run on any CPU; gptqmodel needs threadpoolctl, device-smi,
tokenicer, logbar and pypcre). What is not there is SKIPPED.

    check_quantised_folders.py --programs DIR [--sources DIR] [--only NAME] [--keep DIR]

Compares each decoded weight (by tessera-convert and gguf) with what the package decodes, in the package's number type: they must be equal.
Compares the logits with those of transformers in float64 with the decoded weights, before they are rounded to the package's number type. Exits
with 1 if any differ.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

import package_folders
from tiny_models import random_tokens

TOLERANCE = 1e-4  # of logits, with the numerics "reference"


def decoded_by_us(programs, folder, out):
    """The matrices of a folder by their names in it, in float32; None and the problem."""
    import gguf
    done = subprocess.run([programs / "tessera-convert", folder, out], capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr.strip()
    values = {tensor.name: (tensor.data if tensor.tensor_type.name in ("F32", "F16") else gguf.dequantize(tensor.data, tensor.tensor_type)).astype(np.float32)
              for tensor in gguf.GGUFReader(out).tensors}
    for name in [name for name in values if name.endswith(".scale")]:  # NVFP4: a factor of the whole matrix
        values[name.removesuffix("scale") + "weight"] *= values.pop(name).reshape(-1, 1)
    return values, ""


NAMES = {"model.embed_tokens": "token_embd", "lm_head": "output", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def our_name(name):
    for theirs, ours in NAMES.items():
        if name == theirs + ".weight":
            return ours + ".weight"
        if name.startswith("model.layers.") and name.endswith(theirs + ".weight"):
            return f"blk.{name.split('.')[2]}.{ours}.weight"
    return None


def rows_as_folder(name, weight, config):
    """Files in GGUF have the rows of Llama's queries and keys in another order."""
    kind = name.split(".")[-2]
    if config.model_type != "llama" or kind not in ("q_proj", "k_proj"):
        return weight
    heads = config.num_attention_heads if kind == "q_proj" else config.num_key_value_heads
    return weight.reshape(heads, weight.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape)


def different_weights(ours, decoded):
    """Names of the matrices that differ, with the count of numbers that do."""
    wrong = []
    for name, theirs in decoded.items():
        own = ours[name].to(theirs.dtype)
        if own.shape != theirs.shape or not torch.equal(own, theirs):
            wrong.append(f"{name}: {int((own != theirs).sum()) if own.shape == theirs.shape else tuple(own.shape)} of {theirs.numel()}")
    return wrong


def logits_of(model, weights, tokens):
    """By float64 with other weights. A new model has rope's frequencies in float32; those of `model` may be rounded."""
    exact = type(model)(model.config).eval()
    exact.load_state_dict({name: tensor.float() for name, tensor in model.state_dict().items()} | weights)
    with torch.no_grad():
        return exact.to(torch.float64)(torch.tensor([tokens])).logits[0].numpy()


def check(case, options, folder):
    """Whether the case is good; None if its package is not there."""
    try:
        model, decoded = case.write(folder / case.name, options.sources)
    except ImportError as problem:
        print(f"{case.name}: SKIPPED, {problem}", flush=True)
        return None
    ours, problem = decoded_by_us(options.programs, folder / case.name, folder / "out.gguf")
    if ours is None:
        print(f"{case.name}: FAILED: {problem}", flush=True)
        return False
    ours = {name: torch.from_numpy(rows_as_folder(name, ours[our_name(name)], model.config).copy()) for name in decoded}
    wrong = different_weights(ours, decoded)
    tokens = random_tokens(24, model.config.vocab_size, 1)
    expected = logits_of(model, ours, tokens)
    done = subprocess.run([options.programs / "generate", "-m", folder / case.name, "--prompt-ids", " ".join(map(str, tokens)), "--logits", folder / "logits.f32",
                           "--kv-dtype", "f32", "--numerics", "reference"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{case.name}: FAILED: {done.stderr.strip()}", flush=True)
        return False
    logits = np.fromfile(folder / "logits.f32", "<f4").reshape(expected.shape)
    difference = np.abs(logits - expected).max()
    good = not wrong and difference <= TOLERANCE
    print(f"{case.name}: {'' if good else 'FAILED, '}{len(decoded) - len(wrong)} of {len(decoded)} matrices equal, logits within {difference:.1e}", flush=True)
    for line in wrong[:4]:
        print("  " + line, flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path, help="the folder of generate and tessera-convert")
    parser.add_argument("--sources", type=pathlib.Path, help="the folder of the unpacked sources of AutoAWQ, AutoGPTQ and GPTQModel")
    parser.add_argument("--only", help="a part of the cases' names")
    parser.add_argument("--keep", type=pathlib.Path, help="write the folders here and keep them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = [check(case, options, folder) for case in package_folders.CASES if not options.only or options.only in case.name]
    skipped = results.count(None)
    print(f"{results.count(True)} of {len(results) - skipped} good{f', {skipped} skipped' if skipped else ''}")
    return False in results or True not in results


if __name__ == "__main__":
    sys.exit(main())
