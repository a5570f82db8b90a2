#!/usr/bin/env python3
"""Writes tiny random models in quantised folders to data/quantised/, and their logits by transformers.

Needs: pip install torch transformers gguf numpy safetensors ml_dtypes

Each linear layer is drawn as integers (or small floats) and scales. The folder gets them packed as the format's own package packs them; the
transformers model gets the numbers that they stand for, in float32, and computes the logits. The packing loops are those of
tests/files/make_quantised_goldens.py.
"""
import itertools
import json
import pathlib
import shutil
import sys

import ml_dtypes
import numpy as np
import torch
from safetensors.numpy import save_file

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "files"))
from cases import gated, rope
from make_folder_goldens import ROWS, round_weights
from make_quantised_goldens import E2M1, NF4, as_i32, pack_rows, pack_to_int32
from tiny_models import build, random_tokens, run

GROUP = 32
random = np.random.default_rng(20261127)


def scales_of(shape, like):
    """F16 numbers that make weights of the usual size."""
    return (like * random.uniform(0.7, 1.3, shape)).astype(np.float16)


def gptq(w, symmetric=True, act_order=False, bits=4):
    outputs, inputs = w.shape
    groups = inputs // GROUP
    count = 2 ** bits
    q = random.integers(0, count, (inputs, outputs))
    scales = scales_of((groups, outputs), inputs ** -0.5 / (4.6 * count / 16))
    zeros = np.full((groups, outputs), count // 2) if symmetric else random.integers(count // 4, count * 3 // 4, (groups, outputs))
    order = np.arange(inputs) // GROUP
    if act_order:
        order = random.permutation(order)
    parts = {"qweight": pack_rows(q, bits), "qzeros": pack_rows((zeros - 1).T % count, bits).T, "scales": scales, "g_idx": order.astype(np.int32)}
    values = ((q - zeros[order]).astype(np.float32) * scales[order].astype(np.float32)).T
    return parts, values.astype(np.float16).astype(np.float32) if act_order else values  # in another order: numbers of F16


def awq(w):
    outputs, inputs = w.shape

    def pack(q):
        out = np.zeros((q.shape[0], q.shape[1] // 8), np.uint64)
        for i, column in enumerate([0, 2, 4, 6, 1, 3, 5, 7]):
            out |= q[:, column::8].astype(np.uint64) << np.uint64(4 * i)
        return as_i32(out)

    q = random.integers(0, 16, (inputs, outputs))
    zeros = random.integers(4, 12, (inputs // GROUP, outputs))
    scales = scales_of((inputs // GROUP, outputs), inputs ** -0.5 / 4.6)
    g = np.arange(inputs) // GROUP
    return ({"qweight": pack(q), "qzeros": pack(zeros), "scales": scales},
            ((q - zeros[g]).astype(np.float32) * scales[g].astype(np.float32)).T)


def awq_gemv(w):
    outputs, inputs = w.shape
    groups = inputs // GROUP
    width = -(-groups // 8 // 4) * 4 or 4  # words of zero points, for groups of 32
    q, zeros = random.integers(0, 16, w.shape), random.integers(4, 12, (outputs, groups))
    scales = scales_of((outputs, groups), inputs ** -0.5 / 4.6)
    padded_zeros, padded_scales = np.zeros((outputs, width * 8), np.int64), np.zeros((outputs, width * 8), np.float16)
    padded_zeros[:, :groups], padded_scales[:, :groups] = zeros, scales
    g = np.arange(inputs) // GROUP
    return ({"qweight": pack_rows(q.T, 4).T, "qzeros": pack_rows(padded_zeros.T, 4).T, "scales": padded_scales},
            (q - zeros[:, g]).astype(np.float32) * scales[:, g].astype(np.float32))


def squeezellm(w):
    """Each output has a table of its own."""
    outputs, inputs = w.shape
    table = (random.standard_normal((outputs, 16)) * inputs ** -0.5).astype(np.float16)
    q = random.integers(0, 16, w.shape)
    return {"qweight": pack_rows(q.T, 4), "lookup_table": table}, np.take_along_axis(table, q, 1).astype(np.float32)


def compressed(w):
    outputs, inputs = w.shape
    q, zeros = random.integers(-8, 8, w.shape), random.integers(-4, 4, (outputs, inputs // GROUP))
    scales = scales_of((outputs, inputs // GROUP), inputs ** -0.5 / 4.6)
    g = np.arange(inputs) // GROUP
    parts = {"weight_packed": pack_to_int32(q, 4), "weight_scale": scales, "weight_zero_point": pack_to_int32(zeros, 4, axis=0),
             "weight_shape": np.array(w.shape, np.int64)}
    return parts, (q - zeros[:, g]).astype(np.float32) * scales[:, g].astype(np.float32)


def int8(w):
    q, scales = random.integers(-127, 128, w.shape), scales_of((w.shape[0], 1), w.shape[1] ** -0.5 / 73)
    return {"weight": q.astype(np.int8), "weight_scale": scales}, q.astype(np.float32) * scales.astype(np.float32)


def fp8(w):
    """Scales are powers of two, so that BF16 holds the weights."""
    q = (random.standard_normal(w.shape) * 64).astype(ml_dtypes.float8_e4m3fn)
    grid = tuple(-(-size // GROUP) for size in w.shape)
    scales = np.exp2(random.integers(-10, -8, grid)).astype(np.float32)
    full = np.repeat(np.repeat(scales, GROUP, 0), GROUP, 1)[:w.shape[0], :w.shape[1]]
    return {"weight": q, "weight_scale_inv": scales}, q.astype(np.float32) * full


def nvfp4(w):
    q = random.integers(0, 16, w.shape).astype(np.uint8)
    scales = random.uniform(1.0, 4.0, (w.shape[0], w.shape[1] // 16)).astype(ml_dtypes.float8_e4m3fn)
    whole = np.float32(w.shape[1] ** 0.5 * 8)
    return ({"weight_packed": q[:, 0::2] | (q[:, 1::2] << 4), "weight_scale": scales, "weight_global_scale": np.array([whole])},
            E2M1[q] * np.repeat(scales.astype(np.float32), 16, 1) * (np.float32(1) / whole))


def nf4(w):
    q = random.integers(0, 16, w.size).astype(np.uint8)
    absmax = random.uniform(1.5, 3.0, w.size // 64).astype(np.float32) * np.float32(w.shape[1] ** -0.5)
    state = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": list(w.shape)}).encode()
    parts = {"weight": ((q[0::2] << 4) | q[1::2]).reshape(-1, 1), "weight.absmax": absmax, "weight.quant_map": NF4,
             "weight.quant_state.bitsandbytes__nf4": np.frombuffer(state, np.uint8)}
    values = (NF4[q] * np.repeat(absmax, 64)).reshape(w.shape)
    return parts, values.astype(ml_dtypes.bfloat16).astype(np.float32)  # bitsandbytes decodes to "dtype"


def fp8_whole(w, beside=()):
    """One scale, a power of two."""
    q = (random.standard_normal(w.shape) * 64).astype(ml_dtypes.float8_e4m3fn)
    scale = np.float32(2.0 ** -9)
    return {"weight": q, "weight_scale": np.array(scale)} | {name: np.array(np.float32(0.5)) for name in beside}, q.astype(np.float32) * scale


def nvfp4_modelopt(w):
    parts, values = nvfp4(w)
    whole = parts["weight_global_scale"]
    return {"weight": parts["weight_packed"], "weight_scale": parts["weight_scale"], "weight_scale_2": 1 / whole[0], "input_scale": np.float32(0.5)}, values


def in_turn(*ways):
    """Another way for each layer."""
    turns = itertools.cycle(ways)
    return lambda w: next(turns)(w)


def bnb8(w):
    q = random.integers(-127, 128, w.shape).astype(np.int8)
    scb = (random.uniform(1.5, 3.0, w.shape[0]) * w.shape[1] ** -0.5).astype(np.float32)
    return {"weight": q, "SCB": scb}, q.astype(np.float32) * scb[:, None] * np.float32(7.874015718698502e-3)


def mxfp4(w):
    """Experts of gpt-oss: [experts, inputs, outputs] in memory, [experts, outputs, inputs] in the folder."""
    experts, inputs, outputs = w.shape
    q = random.integers(0, 16, (experts, outputs, inputs)).astype(np.uint8)
    scales = random.integers(122, 125, (experts, outputs, inputs // 32)).astype(np.uint8)
    values = E2M1[q] * np.repeat(np.exp2(scales.astype(np.float32) - 127), 32, 2)
    return {"_blocks": (q[..., 0::2] | (q[..., 1::2] << 4)).reshape(experts, outputs, inputs // 32, 16), "_scales": scales}, values.swapaxes(1, 2)


SHAPE = dict(layers=1, tie_word_embeddings=True)
LLAMA = gated(48, 64, 2, 1, 128, **SHAPE)
GPT_OSS = gated(48, 64, 2, 1, 32, layers=2) | {
    "head_dim": 32, "num_local_experts": 3, "num_experts_per_tok": 2, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"],
    **rope(1e4)}
FORMATS = {
    "gptq": ("llama", LLAMA, gptq, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": True, "desc_act": False}),
    "gptq-zeros": ("qwen2", LLAMA, lambda w: gptq(w, symmetric=False),
                   {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": False, "desc_act": False}),
    "gptq-act-order": ("llama", LLAMA, lambda w: gptq(w, act_order=True),
                       {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": True, "desc_act": True}),
    "awq": ("llama", LLAMA, awq, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm", "zero_point": True}),
    "compressed-tensors": ("llama", LLAMA, compressed,
                           {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {
                               "group_0": {"weights": {"num_bits": 4, "group_size": GROUP, "strategy": "group", "symmetric": False}}}}),
    "int-quantized": ("llama", LLAMA, int8, {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {
        "group_0": {"weights": {"num_bits": 8, "strategy": "channel", "symmetric": True}}}}),
    "fp8": ("qwen3", LLAMA | {"head_dim": 32}, fp8, {"quant_method": "fp8", "weight_block_size": [GROUP, GROUP], "activation_scheme": "dynamic"}),
    "nvfp4": ("qwen2", LLAMA, nvfp4, {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {
        "group_0": {"weights": {"num_bits": 4, "group_size": 16, "type": "float"}}}}),
    "nf4": ("llama", LLAMA, nf4, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}),
    "bnb8": ("llama", LLAMA, bnb8, {"quant_method": "bitsandbytes", "load_in_8bit": True}),
    "mxfp4": ("gpt-oss", GPT_OSS, mxfp4, {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}),
    "awq-gemv": ("llama", LLAMA, awq_gemv, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemv", "zero_point": True}),
    "squeezellm": ("llama", LLAMA, squeezellm, {"quant_method": "squeezellm", "wbits": 4}),
    "gptq-dynamic": ("llama", LLAMA, in_turn(gptq, lambda w: gptq(w, bits=8), lambda w: gptq(w, symmetric=False)),
                     {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": True, "desc_act": False, "meta": {"quantizer": ["gptqmodel:7.7.0"]},
                      "dynamic": {"+:.*k_proj": {"bits": 8}, "+:.*v_proj": {"sym": False}, "-:.*embed.*": {}}}),
    "several-groups": ("llama", LLAMA, in_turn(compressed, int8, lambda w: fp8_whole(w, ["k_scale", "input_scale"]), nvfp4),
                       {"quant_method": "compressed-tensors", "format": "mixed-precision", "kv_cache_scheme": {"num_bits": 8, "type": "float"}, "config_groups": {
                           "group_0": {"targets": ["re:.*q_proj"], "weights": {"num_bits": 4, "group_size": GROUP, "symmetric": False}},
                           "group_1": {"targets": ["re:.*k_proj"], "weights": {"num_bits": 8, "strategy": "channel"}},
                           "group_2": {"targets": ["re:.*v_proj"], "weights": {"num_bits": 8, "strategy": "tensor", "type": "float"}}}}),
    "modelopt": ("qwen2", LLAMA, in_turn(nvfp4_modelopt, lambda w: fp8_whole(w, ["input_scale"])),
                 {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", "*router*"]}}),
}


def quantised_parts(name, model, quantise):
    """The folder's tensors; the model's layers get the values that the packed numbers stand for."""
    tensors = {}
    kept = {"self_attn.o_proj"} if name == "gptq" else set()  # a layer that stays as it is, as folders have them
    for key, weight in model.named_parameters():
        is_expert = key.endswith(("experts.gate_up_proj", "experts.down_proj"))
        is_linear = key.endswith("_proj.weight") and ".layers." in key and not any(end in key for end in kept)
        if is_expert if name == "mxfp4" else is_linear:
            parts, values = quantise(weight.detach().numpy())
            weight.data.copy_(torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)))
            stem = key if is_expert else key.removesuffix("weight")
            tensors |= {stem + part: np.ascontiguousarray(data) for part, data in parts.items()}
        else:
            tensors[key] = weight.detach().numpy().astype(ml_dtypes.bfloat16)
    return tensors


def main():
    folder = pathlib.Path(__file__).parent / "data" / "quantised"
    shutil.rmtree(folder, ignore_errors=True)
    for seed, (name, (arch, config, quantise, how)) in enumerate(FORMATS.items()):
        model = build(arch, config, seed)
        round_weights(model)
        out = folder / name
        out.mkdir(parents=True)
        save_file(quantised_parts(name, model, quantise), out / "model.safetensors")
        tokens = random_tokens(24, model.config.vocab_size, seed)
        logits, _ = run(model, tokens)
        config = model.config.to_dict()
        if "producer" in how:  # ModelOpt's own file
            (out / "hf_quant_config.json").write_text(json.dumps(how, indent=1) + "\n")
        else:
            config["quantization_config"] = how
        (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        (out / "tokens.txt").write_text(" ".join(map(str, tokens)) + "\n")
        logits[-ROWS:].astype("<f4").tofile(out / "logits.f32")


if __name__ == "__main__":
    main()
