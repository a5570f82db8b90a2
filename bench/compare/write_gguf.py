#!/usr/bin/env python3
"""Writes a made-up Llama as GGUF in F16: a real model's shape, weights of a plausible size, no vocabulary.

    write_gguf.py --shape llama-1b --out build/compare/llama-1b-F16.gguf
"""
from __future__ import annotations

import argparse
import os

import gguf
import numpy as np

from shapes import SHAPES, Shape

POOL = 1 << 22  # number of random values; each matrix starts elsewhere in them, which does not change a kernel's speed


class Values:
    def __init__(self, seed: int = 1):
        self.rng = np.random.default_rng(seed)
        self.pool = self.rng.standard_normal(POOL, dtype=np.float32) * 0.02

    def matrix(self, rows: int, columns: int) -> np.ndarray:
        start = int(self.rng.integers(POOL))
        return np.resize(np.roll(self.pool, start).astype(np.float16), (rows, columns))


def write(shape: Shape, name: str, path: str, context: int) -> None:
    writer = gguf.GGUFWriter(path + ".part", "llama")
    writer.add_name(name + ", made up")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_context_length(max(shape.context, context))
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.ffn)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.rms_epsilon)
    writer.add_vocab_size(shape.vocab)
    writer.add_tokenizer_model("no_vocab")

    values = Values()
    tensors: list[tuple[str, tuple[int, ...]]] = [("token_embd", (shape.vocab, shape.width))]
    for layer in range(shape.layers):
        tensors += [(f"blk.{layer}.attn_norm", (shape.width,)), (f"blk.{layer}.ffn_norm", (shape.width,))]
        tensors += [(f"blk.{layer}.{part}", dims) for part, dims in shape.layer_matrices().items()]
    tensors += [("output_norm", (shape.width,)), ("output", (shape.vocab, shape.width))]
    for tensor, dims in tensors:
        dtype = np.dtype(np.float32 if len(dims) == 1 else np.float16)
        writer.add_tensor_info(tensor + ".weight", dims, dtype, int(np.prod(dims)) * dtype.itemsize)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for _, dims in tensors:
        writer.write_tensor_data(np.ones(dims, np.float32) if len(dims) == 1 else values.matrix(*dims))
    writer.close()
    os.replace(path + ".part", path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="llama-1b")
    parser.add_argument("--out", required=True)
    parser.add_argument("--context", type=int, default=0, help="positions that the file says it knows, if more than the shape's")
    args = parser.parse_args()
    write(SHAPES[args.shape], args.shape, args.out, args.context)


if __name__ == "__main__":
    main()
