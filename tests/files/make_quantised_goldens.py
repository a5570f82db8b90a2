#!/usr/bin/env python3
"""Writes data/quantised.safetensors: small linear layers as quantised folders have them, each with the weights that they stand for.

    pip install safetensors numpy ml_dtypes; python tests/files/make_quantised_goldens.py

The layouts are written here as the packages write them (AutoGPTQ's and AutoAWQ's packing loops, compressed-tensors' pack_to_int32,
bitsandbytes' kernels), not as our decoders read them: `NAME.expected` is computed from the integers before they are packed, in float32.
"""

import pathlib

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

DATA = pathlib.Path(__file__).parent / "data"
random = np.random.default_rng(47)
tensors: dict[str, np.ndarray] = {}


def add(layer: str, **parts: np.ndarray) -> None:
    for part, values in parts.items():
        tensors[f"{layer}.{part}"] = np.ascontiguousarray(values)


def as_i32(words: np.ndarray) -> np.ndarray:
    return words.astype(np.uint32).view(np.int32)


def pack_rows(q: np.ndarray, bits: int) -> np.ndarray:
    """AutoGPTQ's loop over rows: q [n, columns] -> [n * bits / 32, columns]."""
    q = q.astype(np.uint64)
    out = np.zeros((q.shape[0] * bits // 32, q.shape[1]), np.uint64)
    i = row = 0
    while row < out.shape[0]:
        if bits in (2, 4, 8):
            for j in range(i, i + 32 // bits):
                out[row] |= q[j] << np.uint64(bits * (j - i))
            i += 32 // bits
            row += 1
            continue
        for j in range(i, i + 10):  # 3 bits: 32 integers in 3 words
            out[row] |= q[j] << np.uint64(3 * (j - i))
        i += 10
        out[row] |= (q[i] << np.uint64(30)) & np.uint64(0xFFFFFFFF)
        row += 1
        out[row] |= (q[i] >> np.uint64(2)) & np.uint64(1)
        i += 1
        for j in range(i, i + 10):
            out[row] |= q[j] << np.uint64(3 * (j - i) + 1)
        i += 10
        out[row] |= (q[i] << np.uint64(31)) & np.uint64(0xFFFFFFFF)
        row += 1
        out[row] |= (q[i] >> np.uint64(1)) & np.uint64(3)
        i += 1
        for j in range(i, i + 10):
            out[row] |= q[j] << np.uint64(3 * (j - i) + 2)
        i += 10
        row += 1
    return as_i32(out)


def gptq(layer: str, bits: int, version: int, symmetric: bool, act_order: bool = False) -> None:
    outputs, inputs, group = 32, 64, 32
    groups = inputs // group
    q = random.integers(0, 1 << bits, (inputs, outputs))
    scales = (random.standard_normal((groups, outputs)) * 0.02).astype(np.float16)
    zeros = np.full((groups, outputs), 1 << (bits - 1)) if symmetric else random.integers(0, 1 << bits, (groups, outputs))
    g_idx = np.arange(inputs) // group
    if act_order:
        g_idx = random.permutation(g_idx)
    stored = (zeros - 1) % (1 << bits) if version == 1 else zeros
    w = (q - zeros[g_idx]).astype(np.float32) * scales[g_idx].astype(np.float32)
    add(layer, qweight=pack_rows(q, bits), qzeros=pack_rows(stored.T, bits).T, scales=scales, g_idx=g_idx.astype(np.int32), expected=w.T)


def awq() -> None:
    outputs, inputs, group = 16, 64, 32
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def pack(q: np.ndarray) -> np.ndarray:
        out = np.zeros((q.shape[0], q.shape[1] // 8), np.uint64)
        for column in range(out.shape[1]):
            for i in range(8):
                out[:, column] |= q[:, column * 8 + order[i]].astype(np.uint64) << np.uint64(4 * i)
        return as_i32(out)

    q = random.integers(0, 16, (inputs, outputs))
    zeros = random.integers(0, 16, (inputs // group, outputs))
    scales = (random.standard_normal((inputs // group, outputs)) * 0.02).astype(np.float16)
    g = np.arange(inputs) // group
    w = (q - zeros[g]).astype(np.float32) * scales[g].astype(np.float32)
    add("awq", qweight=pack(q), qzeros=pack(zeros), scales=scales, expected=w.T)


def pack_to_int32(values: np.ndarray, bits: int, axis: int = 1) -> np.ndarray:
    """compressed-tensors: values + 2^(bits - 1), padded to whole words."""
    u = (values + (1 << (bits - 1))).astype(np.uint64)
    if axis == 0:
        u = u.T
    a_word = 32 // bits
    u = np.pad(u, ((0, 0), (0, -u.shape[1] % a_word)))
    out = np.zeros((u.shape[0], u.shape[1] // a_word), np.uint64)
    for i in range(a_word):
        out |= u[:, i::a_word] << np.uint64(bits * i)
    return as_i32(out if axis == 1 else out.T)


def compressed(layer: str, bits: int, symmetric: bool, scale_type, inputs: int = 64, group: int = 32, packed: bool = True,
               reordered: bool = False) -> None:
    outputs, half = 6, 1 << (bits - 1)
    groups = -(-inputs // group)
    q = random.integers(-half, half, (outputs, inputs))
    zeros = np.zeros((outputs, groups), np.int64) if symmetric else random.integers(-half, half, (outputs, groups))
    scales = (random.standard_normal((outputs, groups)) * 0.02).astype(scale_type)
    g = np.arange(inputs) // group
    if reordered:
        g = random.permutation(g)
    w = (q - zeros[:, g]).astype(np.float32) * scales[:, g].astype(np.float32)
    if scale_type == ml_dtypes.bfloat16:
        scales = scales.view(np.uint16)
    add(layer, weight=pack_to_int32(q, bits) if packed else q.astype(np.int8), scales=scales, expected=w)
    if not symmetric:
        add(layer, zeros=pack_to_int32(zeros, bits, axis=0) if packed else zeros.astype(np.int8))
    if reordered:
        add(layer, g_idx=g.astype(np.int32))


def fp8(layer: str, float_type, scale_type, block: tuple[int, int]) -> None:
    outputs, inputs = 5, 40
    w = random.integers(0, 256, (outputs, inputs)).astype(np.uint8).view(float_type)
    w = np.where(np.isfinite(w.astype(np.float32)), w, np.array(1, float_type))
    w[0, 0] = np.nan
    grid = (-(-outputs // block[0]), -(-inputs // block[1]))
    if scale_type == "e8m0":
        exponents = random.integers(110, 130, grid).astype(np.uint8)
        scales, values = exponents, np.exp2(exponents.astype(np.float64) - 127).astype(np.float32)
    else:
        scales = (random.random(grid) * 0.01 + 1e-4).astype(scale_type)
        values = scales.astype(np.float32)
        if scale_type == ml_dtypes.bfloat16:
            scales = scales.view(np.uint16)
    full = np.repeat(np.repeat(values, block[0], 0), block[1], 1)[:outputs, :inputs]
    expected = w.astype(np.float32) * full
    add(layer, weight=w.view(np.uint8), scales=scales, expected=expected, bf16=expected.astype(ml_dtypes.bfloat16).view(np.uint16))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def fp4(layer: str, a_scale: int) -> None:
    rows, inputs = 4, 128
    q = random.integers(0, 16, (rows, inputs)).astype(np.uint8)
    weights = q[:, 0::2] | (q[:, 1::2] << 4)
    if a_scale == 32:
        scales = random.integers(100, 140, (rows, inputs // 32)).astype(np.uint8)
        scales[0, 0], scales[1, 0] = 0, 1
        values = np.exp2(scales.astype(np.float64) - 127).astype(np.float32)
    else:
        scales = random.integers(0, 127, (rows, inputs // 16)).astype(np.uint8)
        values = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    add(layer, weights=weights, scales=scales, expected=E2M1[q] * np.repeat(values, a_scale, 1))


NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0], np.float32)


def nf4(layer: str, nested: bool) -> None:
    outputs, inputs, block, nested_block = 6, 80, 64, 4
    q = random.integers(0, 16, outputs * inputs).astype(np.uint8)
    blocks = -(-q.size // block)
    if nested:
        absmax = random.integers(0, 256, blocks).astype(np.uint8)
        nested_map = np.sort(random.standard_normal(256)).astype(np.float32)
        nested_absmax = random.random(-(-blocks // nested_block)).astype(np.float32)
        offset = np.float32(0.0375)
        scales = nested_map[absmax] * np.repeat(nested_absmax, nested_block)[:blocks] + offset
        add(layer, nested_absmax=nested_absmax, nested_table=nested_map, offset=np.array([offset]))
    else:
        absmax = scales = random.random(blocks).astype(np.float32)
    expected = (NF4[q] * np.repeat(scales, block)[: q.size]).reshape(outputs, inputs)
    add(layer, weight=((q[0::2] << 4) | q[1::2]).reshape(-1, 1), table=NF4, absmax=absmax, expected=expected)


def int8() -> None:
    outputs, inputs = 3, 40
    q = random.integers(-128, 128, (outputs, inputs)).astype(np.int8)
    scb = (random.random(outputs) * 3).astype(np.float32)
    # bitsandbytes' int8_vectorwise_dequant(): A * stats.view(-1, 1) * 7.874015718698502e-3
    add("bnb8", weight=q, scb=scb, expected=q.astype(np.float32) * scb[:, None] * np.float32(7.874015718698502e-3))


def main() -> None:
    gptq("gptq2", 2, 1, True)
    gptq("gptq3", 3, 1, False)
    gptq("gptq3v2", 3, 2, True)
    gptq("gptq4", 4, 1, True)
    gptq("gptq4zero", 4, 1, False)
    gptq("gptq4v2", 4, 2, False)
    gptq("gptq8", 8, 2, True)
    gptq("gptq8zero", 8, 1, False)
    gptq("gptq4order", 4, 1, True, act_order=True)
    awq()
    compressed("packed4", 4, True, ml_dtypes.bfloat16)
    compressed("packed4zero", 4, False, np.float16)
    compressed("packed4row", 4, True, np.float16, group=64)
    compressed("packed4odd", 4, False, ml_dtypes.bfloat16, inputs=52, group=20)
    compressed("packed4order", 4, True, np.float16, reordered=True)
    compressed("packed8", 8, True, ml_dtypes.bfloat16)
    compressed("packed8zero", 8, False, np.float16)
    compressed("int8", 8, True, ml_dtypes.bfloat16, group=64, packed=False)
    compressed("int8zero", 8, False, np.float32, group=64, packed=False)
    fp8("fp8tensor", ml_dtypes.float8_e4m3fn, np.float32, (5, 40))
    fp8("fp8row", ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16, (1, 40))
    fp8("fp8block", ml_dtypes.float8_e4m3fn, np.float32, (2, 16))
    fp8("fp8e8m0", ml_dtypes.float8_e4m3fn, "e8m0", (2, 16))
    fp8("fp8e5m2", ml_dtypes.float8_e5m2, np.float16, (2, 16))
    fp4("mxfp4", 32)
    fp4("nvfp4", 16)
    nf4("nf4", False)
    nf4("nf4nested", True)
    int8()
    save_file(tensors, DATA / "quantised.safetensors")


main()
