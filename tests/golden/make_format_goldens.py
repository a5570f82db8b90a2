#!/usr/bin/env python3
"""Writes data/formats/: weight-format blocks and what they decode to.

Needs: pip install gguf numpy

gguf-py's numpy code is an implementation of the formats independent of ours. For each
format FMT:
  FMT.bin      raw blocks, every bit of quants and scales random (scales finite)
  FMT.f32      their decoded values, float32 little endian
and where gguf-py can encode:
  FMT.src.f32  float32 values
  FMT.enc.bin  the blocks they encode to
Running it twice writes the same bytes.
"""
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as T, quants

OUT = pathlib.Path(__file__).resolve().parent / "data" / "formats"

# Offsets of the fp16 numbers in a block: those bytes cannot be arbitrary, because an
# infinite or NaN scale decodes to NaNs that no two implementations agree on bitwise.
SCALES_AT = {
    T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2],
    T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.IQ4_NL: [0], T.IQ4_XS: [0], T.MXFP4: [], T.NVFP4: [],
    T.IQ3_XXS: [0], T.IQ3_S: [0], T.IQ2_XXS: [0], T.IQ2_XS: [0], T.IQ2_S: [0], T.IQ1_S: [0], T.IQ1_M: [],
    T.TQ1_0: [52], T.TQ2_0: [64],
}
K_QUANTS = tuple(fmt for fmt in SCALES_AT if GGML_QUANT_SIZES[fmt][0] == 256)
CAN_ENCODE = (T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.MXFP4)

# 1, -1, the smallest and largest denormals of both signs, the smallest normal, zeros of
# both signs, the largest finite values.
HALF_EDGES = np.array([0x3C00, 0xBC00, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x0000,
                       0x8000, 0x7BFF, 0xFBFF], dtype=np.uint16)
BF16_EDGES = np.array([0x3F80, 0xBF80, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080, 0x0000,
                       0x8000, 0x7F7F, 0xFF7F], dtype=np.uint16)


def random_16bit(rng, n, exponent_mask, edges):
    """n random finite 16-bit floats, the edge values among them (first, then all random)."""
    x = rng.integers(0, 1 << 16, size=n, dtype=np.uint16)
    not_finite = (x & exponent_mask) == exponent_mask
    x = np.where(not_finite, x ^ np.uint16(0x4000), x).astype(np.uint16)
    x[: min(n, len(edges))] = edges[:n]
    return x


def random_blocks(rng, fmt):
    if fmt == T.F16:
        return random_16bit(rng, 2048, np.uint16(0x7C00), HALF_EDGES).view(np.uint8)
    if fmt == T.BF16:
        return random_16bit(rng, 2048, np.uint16(0x7F80), BF16_EDGES).view(np.uint8)
    _, size = GGML_QUANT_SIZES[fmt]
    n = 24 if fmt in K_QUANTS else 64
    blocks = rng.integers(0, 256, size=(n, size), dtype=np.uint8)
    # All bits clear and all bits set, under ordinary scales (below).
    blocks[0] = 0x00
    blocks[1] = 0xFF
    for which, at in enumerate(SCALES_AT[fmt]):
        # Rolled, so that d and m do not take the same edge value in one block.
        scales = random_16bit(rng, n, np.uint16(0x7C00), np.roll(HALF_EDGES, 3 * which))
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(n, 2)
    # Half of the blocks have scales as real weights do: a random exponent is mostly so
    # large or so small that d dwarfs m or the reverse, which would hide m's mistakes.
    ordinary = np.arange(n) >= n // 2
    for at in SCALES_AT[fmt]:
        near = (rng.uniform(0.01, 0.1, n) * rng.choice([-1.0, 1.0], n)).astype(np.float16)
        blocks[ordinary, at:at + 2] = near.view(np.uint8).reshape(n, 2)[ordinary]
    if fmt == T.MXFP4:
        # A power of two by which 12 is finite; both denormals.
        blocks[:, 0] %= 250
        blocks[:4, 0] = [128, 127, 0, 1]
        blocks[ordinary, 0] = rng.integers(118, 128, ordinary.sum())
    if fmt == T.IQ1_M:
        # The scale's 16 bits lie in the high four of each of the last four words.
        d = random_16bit(rng, n, np.uint16(0x7C00), HALF_EDGES)
        near = (rng.uniform(0.01, 0.1, n) * rng.choice([-1.0, 1.0], n)).astype(np.float16)
        d[ordinary] = near.view(np.uint16)[ordinary]
        for word in range(4):
            at = 49 + 2 * word
            blocks[:, at] = (blocks[:, at] & 15) | ((d >> (4 * word) & 15) << 4)
    return blocks


def source_values(rng, fmt):
    """Values to encode: ordinary rows and the rows that encoders get wrong."""
    rows = 40
    x = (rng.standard_normal((rows, 32)) * np.exp(rng.uniform(-6, 3, (rows, 1)))).astype(np.float32)
    x[0] = 0.0                                    # scale 0: must not divide by it
    x[1] = 0.75                                   # constant: max == min
    x[2] = -0.75
    x[3] = np.where(np.arange(32) % 2, 1.5, -1.5)  # |max| tied between both signs
    x[4] = np.where(np.arange(32) % 2, -1.5, 1.5)
    x[5] = rng.standard_normal(32) * 1e-6         # scale is a denormal half
    x[6] = rng.standard_normal(32) * 1e-9         # scale is 0 as a half, not as a float
    x[7, :] = 0.01
    x[7, 17] = -9.0                               # one outlier
    x[8] = np.arange(32)                          # all positive
    x[9] = -np.arange(32)
    x[10] = np.arange(32) - 16                    # exact ties in rounding
    x[11] = (np.arange(32) - 16) * 0.5
    x[12] = (np.arange(32) * 8 - 127) * 0.5
    if fmt in (T.F16, T.BF16):
        # Halfway between neighbours (to even, both ways), denormals, the largest finite.
        x[13, :8] = [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8,
                     65519.0, -65519.0, 2**-24, 2**-25]
        x[13, 8:16] = [3 * 2**-25, -(2**-25), 5 * 2**-26, 6.1e-5, 1e-7, -1e-7, 0.1, -0.1]
        x[13, 16:18] = [-0.0, np.nextafter(np.float32(2**-25), np.float32(1))]
    return x


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    formats = (T.F16, T.BF16, *SCALES_AT)
    for fmt in formats:
        rng = np.random.Generator(np.random.PCG64(1000 + int(fmt)))
        blocks = random_blocks(rng, fmt)
        values = quants.dequantize(blocks, fmt).astype("<f4").ravel()
        assert np.isfinite(values).all(), fmt
        (OUT / f"{fmt.name}.bin").write_bytes(blocks.tobytes())
        (OUT / f"{fmt.name}.f32").write_bytes(values.tobytes())
        line = f"{fmt.name}: {blocks.size} bytes -> {values.size} values"
        if fmt in CAN_ENCODE:
            source = source_values(rng, fmt)
            encoded = quants.quantize(source, fmt)
            decoded = quants.dequantize(encoded, fmt)
            assert np.isfinite(decoded).all(), fmt
            (OUT / f"{fmt.name}.src.f32").write_bytes(source.astype("<f4").tobytes())
            (OUT / f"{fmt.name}.enc.bin").write_bytes(encoded.tobytes())
            line += f"; {source.size} values -> {encoded.nbytes} bytes"
        print(line)


if __name__ == "__main__":
    main()
