#!/usr/bin/env python3
"""Writes tiny random models in folders that say how the inputs of products are rounded (W8A8, W4A8, FP8) to data/activations/, and their logits.

Needs: pip install torch transformers gguf numpy safetensors ml_dtypes

The transformers model gets the numbers that the packed weights stand for, and computes in float64. Before each linear layer that is quantised
its inputs are rounded as compressed-tensors models it (calculate_qparams, fake_quantize): that is logits.f32. logits-plain.f32 has the logits
without this rounding.
"""
import json
import pathlib
import shutil
import zlib

import ml_dtypes
import numpy as np
import torch
from safetensors.numpy import save_file

from cases import gated
from make_folder_goldens import ROWS, round_weights
from make_quantised_folders import GROUP, compressed, fp8, fp8_whole, int8
from tiny_models import build, random_tokens

LLAMA = gated(48, 64, 2, 1, 128, layers=1, tie_word_embeddings=True)
LEAST = 2.0 ** -100


def round_int8(x, scale=None, zero=None, symmetric=True):
    """Rounds each row. compressed-tensors also has -128, which only the most negative numbers of a row become; tessera has -127 there."""
    if symmetric:
        s = scale if scale is not None else x.abs().amax(-1, keepdim=True) / 127.5
        return torch.round(x / s).clamp(-127, 127) * s
    low, high = x.amin(-1, keepdim=True).clamp(max=0), x.amax(-1, keepdim=True).clamp(min=0)
    s = scale if scale is not None else (high - low) / 255
    z = zero if zero is not None else torch.round((-128 - low / s).clamp(-128, 127))
    return (torch.round((x / s + z).clamp(-128, 127)) - z) * s


def round_fp8(x, scale=None, group=None):
    rows = x if group is None else x.unflatten(-1, (-1, group))
    s = scale if scale is not None else rows.abs().amax(-1, keepdim=True) / 448
    y = (rows / s).clamp(-448, 448)
    return (y.float().to(torch.float8_e4m3fn).double() * s).reshape(x.shape)


def pack_quantized(bits, activations, **weights):
    return {"quant_method": "compressed-tensors", "format": "pack-quantized" if bits == 4 else "int-quantized", "config_groups": {"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": bits, "type": "int", "symmetric": True} | weights, "input_activations": activations}}}


def token(**more):
    return {"num_bits": 8, "type": "int", "symmetric": True, "dynamic": True, "strategy": "token"} | more


def tensor(**more):
    return token(dynamic=False, strategy="tensor") | more


FP8_TENSOR = {"quant_method": "modelopt", "quant_algo": "FP8"}
FORMATS = {
    "w8a8-token": (int8, pack_quantized(8, token(), strategy="channel"), lambda x, s, z: round_int8(x), None),
    "w8a8-tensor": (int8, pack_quantized(8, tensor(), strategy="channel"), lambda x, s, z: round_int8(x, s), "int8"),
    "w8a8-zero": (int8, pack_quantized(8, token(symmetric=False), strategy="channel"), lambda x, s, z: round_int8(x, symmetric=False), None),
    "w8a8-zero-tensor": (int8, pack_quantized(8, tensor(symmetric=False), strategy="channel"), lambda x, s, z: round_int8(x, s, z, False), "zero"),
    "w4a8": (compressed, pack_quantized(4, token(), group_size=GROUP, strategy="group"), lambda x, s, z: round_int8(x), None),
    "w4a8-fp8": (compressed, pack_quantized(4, token(type="float"), group_size=GROUP, strategy="group"), lambda x, s, z: round_fp8(x), None),
    "fp8-token": (fp8_whole, {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": {
        "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"}, "input_activations": token(type="float")}}}, lambda x, s, z: round_fp8(x), None),
    "fp8-tensor": (fp8_whole, FP8_TENSOR, lambda x, s, z: round_fp8(x, s), "fp8"),
    "fp8-group": (fp8, {"quant_method": "fp8", "weight_block_size": [GROUP, GROUP], "activation_scheme": "dynamic"}, lambda x, s, z: round_fp8(x, group=GROUP), None),
}


def static_range(kind, top):
    """The scale, and the zero, that a folder has for inputs up to `top`."""
    scale = np.float32(top) / np.float32(448 if kind == "fp8" else 120)
    return scale, np.int8(-5)


def main():
    folder = pathlib.Path(__file__).parent / "data" / "activations"
    shutil.rmtree(folder, ignore_errors=True)
    for name, (quantise, how, round_inputs, static) in FORMATS.items():
        seed = zlib.crc32(name.encode()) % 1000
        model = build("llama", LLAMA, seed)
        round_weights(model)
        tensors, linear = {}, {}
        for key, weight in model.named_parameters():
            if key.endswith("_proj.weight"):
                parts, values = quantise(weight.detach().numpy())
                weight.data.copy_(torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)))
                linear[key.removesuffix(".weight")] = {part: np.ascontiguousarray(data) for part, data in parts.items()}
            else:
                tensors[key] = weight.detach().numpy().astype(ml_dtypes.bfloat16)
        model = model.double().eval()
        tokens = random_tokens(24, model.config.vocab_size, seed)
        tops = {}

        def compute(hook):
            handles = [module.register_forward_pre_hook(lambda m, args, key=key: hook(key, args[0])) for key, module in model.named_modules() if key in linear]
            with torch.no_grad():
                logits = model(torch.tensor([tokens])).logits[0]
            for handle in handles:
                handle.remove()
            return logits[-ROWS:].numpy().astype("<f4")

        plain = compute(lambda key, x: tops.update({key: float(x.abs().max())}))
        scales = {}
        for key, parts in linear.items():
            if static:
                scale, zero = static_range(static, tops[key])
                parts["input_scale"] = np.array([scale])
                if static == "zero":
                    parts["input_zero_point"] = np.array([zero])
                scales[key] = (float(scale), float(zero))
            tensors |= {f"{key}.{part}": data for part, data in parts.items()}
        rounded = compute(lambda key, x: (round_inputs(x, *scales.get(key, (None, None))),))
        out = folder / name
        out.mkdir(parents=True)
        save_file(tensors, out / "model.safetensors")
        config = model.config.to_dict() | {"quantization_config": how}
        (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        (out / "tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
        rounded.tofile(out / "logits.f32")
        plain.tofile(out / "logits-plain.f32")
        print(f"{name}: rounding changes logits by {np.abs(rounded - plain).max():.4f}, spread {plain.std():.3f}")


if __name__ == "__main__":
    main()
