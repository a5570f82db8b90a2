#!/usr/bin/env python3
"""Measures prefill with OpenVINO on the CPU (see worker.py): a Llama made of OpenVINO's operations, with random weights in the graph.

    openvino_worker.py --shape llama-1b --dtype BF16
"""
from __future__ import annotations

import argparse
import time

import numpy as np
import openvino as ov
from openvino import opset13 as op

from shapes import SHAPES, Shape
from worker import serve


class Graph:
    def __init__(self, shape: Shape):
        self.shape = shape
        self.rng = np.random.default_rng(1)
        self.tokens = op.parameter([1, -1], np.int64, name="tokens")
        positions = op.parameter([-1], np.float32, name="positions")
        frequencies = shape.rope_theta ** (-np.arange(0, shape.head_dim, 2) / shape.head_dim)
        angles = op.multiply(op.unsqueeze(positions, 1), op.constant(frequencies[None, :].astype(np.float32)))
        self.cos, self.sin = op.cos(angles), op.sin(angles)  # [tokens, head_dim / 2]
        self.positions = positions

    def weight(self, rows: int, columns: int):
        values = self.rng.integers(-2048, 2048, (rows, columns), dtype=np.int16).astype(np.float16) * np.float16(2**-16)
        return op.convert(op.constant(values), np.float32)

    def linear(self, x, dims: tuple[int, int]):
        return op.matmul(x, self.weight(*dims), False, True)

    def norm(self, x):
        mean = op.reduce_mean(op.power(x, np.float32(2)), np.int64([-1]), keep_dims=True)
        scale = op.divide(np.float32(1), op.sqrt(op.add(mean, np.float32(self.shape.rms_epsilon))))
        return op.multiply(op.multiply(x, scale), op.constant(np.ones((1, 1, self.shape.width), np.float32)))

    def heads(self, x, n: int):  # to [1, heads, tokens, head_dim]
        split = op.reshape(x, np.int64([0, 0, n, self.shape.head_dim]), special_zero=True)
        return op.transpose(split, np.int64([0, 2, 1, 3]))

    def rope(self, x):
        half = op.split(x, np.int64(3), 2)
        a, b = half.output(0), half.output(1)
        return op.concat([op.subtract(op.multiply(a, self.cos), op.multiply(b, self.sin)),
                          op.add(op.multiply(a, self.sin), op.multiply(b, self.cos))], 3)

    def repeated(self, x):  # repeats each KV head for its query heads
        shape = self.shape
        group = shape.heads // shape.kv_heads
        wide = op.broadcast(op.unsqueeze(x, 2), np.int64([1, 1, group, 1, 1]), broadcast_spec="BIDIRECTIONAL")
        return op.reshape(wide, np.int64([0, shape.heads, -1, shape.head_dim]), special_zero=True)

    def build(self) -> ov.Model:
        shape = self.shape
        dims = shape.layer_matrices()
        x = op.gather(self.weight(shape.vocab, shape.width), self.tokens, np.int64(0))
        for _ in range(shape.layers):
            y = self.norm(x)
            q = self.rope(self.heads(self.linear(y, dims["attn_q"]), shape.heads))
            k = self.repeated(self.rope(self.heads(self.linear(y, dims["attn_k"]), shape.kv_heads)))
            v = self.repeated(self.heads(self.linear(y, dims["attn_v"]), shape.kv_heads))
            mixed = op.transpose(op.scaled_dot_product_attention(q, k, v, causal=True), np.int64([0, 2, 1, 3]))
            flat = op.reshape(mixed, np.int64([0, 0, shape.width]), special_zero=True)
            x = op.add(x, self.linear(flat, dims["attn_output"]))
            y = self.norm(x)
            gate = op.multiply(op.swish(self.linear(y, dims["ffn_gate"])), self.linear(y, dims["ffn_up"]))
            x = op.add(x, self.linear(gate, dims["ffn_down"]))
        last = op.gather(self.norm(x), np.int64([-1]), np.int64(1))
        return ov.Model([self.linear(last, (shape.vocab, shape.width))], [self.tokens, self.positions], "llama")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="llama-1b")
    parser.add_argument("--dtype", choices=("BF16", "F16", "F32"), default="BF16")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    shape = SHAPES[args.shape]

    def load():
        hint = {"BF16": "bf16", "F16": "f16", "F32": "f32"}[args.dtype]
        config = {"INFERENCE_PRECISION_HINT": hint, "INFERENCE_NUM_THREADS": args.threads,
                  "PERFORMANCE_HINT": "LATENCY"}
        compiled = ov.Core().compile_model(Graph(shape).build(), "CPU", config)
        request = compiled.create_infer_request()

        def prefill(n: int) -> float:
            tokens = np.random.default_rng(n).integers(shape.vocab, size=(1, n))
            start = time.perf_counter()
            request.infer({"tokens": tokens, "positions": np.arange(n, dtype=np.float32)})
            return n / (time.perf_counter() - start)

        def measure(what: dict) -> float:
            if what["test"] != "prefill":
                raise NotImplementedError("this graph has no cache")
            return prefill(what["n"])

        prefill(64)
        precision = compiled.get_property("INFERENCE_PRECISION_HINT")
        return {"version": f"openvino {ov.__version__.split('-')[0]}", "features": [str(precision)]}, measure

    serve(load)


if __name__ == "__main__":
    main()
