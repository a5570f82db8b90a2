#!/usr/bin/env python3
"""Computes the logits of a llama or gemma3 file in float64, by a forward pass that shares no code with the library: a
reference for tessera-quality and llama_quality.py. PyPI's gguf decodes the weights. Needs gguf and torch.

    float64_logits.py model.gguf text.tokens --save exact.logits
    tessera-quality model.gguf text.tokens --reference exact.logits
    float64_logits.py model.gguf text.tokens --greedy 200       prints the ids that follow each document greedily
"""
from __future__ import annotations

import argparse
import math
import struct

import gguf
import torch

HEADER = struct.Struct("<8sIIQQ")  # the layout of tools/quality/logits_file.hpp


def read_documents(path: str) -> list[list[int]]:
    with open(path, encoding="ascii") as f:
        return [[int(word) for word in line.split()] for line in f if line.strip() and not line.startswith("#")]


def tokens_hash(documents: list[list[int]]) -> int:
    value = 0xCBF29CE484222325
    for document in documents:
        for byte in b"".join(struct.pack("<I", token) for token in [*document, 0xFFFFFFFF]):
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


class Model:
    def __init__(self, path: str):
        reader = gguf.GGUFReader(path)
        key = lambda name, default=None: (field.contents() if (field := reader.fields.get(name)) else default)
        self.arch = key("general.architecture")
        if self.arch not in ("llama", "gemma3"):
            raise SystemExit(f"{path}: architecture {self.arch}, not llama or gemma3")
        mine = lambda name, default=None: key(f"{self.arch}.{name}", default)
        self.layers, self.width = mine("block_count"), mine("embedding_length")
        self.heads = mine("attention.head_count")
        self.kv_heads = mine("attention.head_count_kv", self.heads)
        self.head_dim = mine("attention.key_length", self.width // self.heads)
        self.epsilon = mine("attention.layer_norm_rms_epsilon")
        self.theta = mine("rope.freq_base", 10000.0)
        self.window = mine("attention.sliding_window", 0)
        self.weights = {t.name: torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).copy()).double() for t in reader.tensors}
        self.tokens = self.weights["token_embd.weight"]
        self.output = self.weights.get("output.weight", self.tokens)

    def norm(self, x, name: str):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.epsilon) * self.weights[name]

    def rope(self, x, positions, theta: float):  # x [heads, tokens, head_dim]
        half = self.head_dim // 2
        angles = positions[:, None] * theta ** (-torch.arange(half, dtype=torch.float64) / half)
        cos, sin = angles.cos(), angles.sin()
        if self.arch == "llama":  # pairs (2i, 2i + 1)
            a, b = x[..., 0::2], x[..., 1::2]
            return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    def logits(self, tokens: list[int], cache: list | None = None):  # [tokens, vocab]; `cache` has a (K, V) of each layer
        first = cache[0][0].shape[1] if cache else 0
        positions = torch.arange(first, first + len(tokens), dtype=torch.float64)
        gemma = self.arch == "gemma3"
        x = self.tokens[tokens] * (math.sqrt(self.width) if gemma else 1.0)
        for l in range(self.layers):
            w = lambda name: self.weights[f"blk.{l}.{name}.weight"]
            bias = lambda name: self.weights.get(f"blk.{l}.{name}.bias", 0.0)
            split = lambda y, heads: y.view(len(tokens), heads, -1).transpose(0, 1)
            windowed = gemma and l % 6 != 5
            theta = 10000.0 if windowed else self.theta
            y = self.norm(x, f"blk.{l}.attn_norm.weight")
            q = split(y @ w("attn_q").T + bias("attn_q"), self.heads)
            k = split(y @ w("attn_k").T + bias("attn_k"), self.kv_heads)
            v = split(y @ w("attn_v").T + bias("attn_v"), self.kv_heads)
            if gemma:
                q, k = self.norm(q, f"blk.{l}.attn_q_norm.weight"), self.norm(k, f"blk.{l}.attn_k_norm.weight")
            q, k = self.rope(q, positions, theta), self.rope(k, positions, theta)
            if cache is not None:
                if len(cache) > l:
                    k, v = torch.cat((cache[l][0], k), 1), torch.cat((cache[l][1], v), 1)
                    cache[l] = (k, v)
                else:
                    cache.append((k, v))
            keys = torch.arange(k.shape[1], dtype=torch.float64)
            seen = keys[None, :] <= positions[:, None]
            if windowed and self.window:
                seen &= keys[None, :] > positions[:, None] - self.window
            group = self.heads // self.kv_heads
            scores = q @ k.repeat_interleave(group, 0).transpose(1, 2) / math.sqrt(self.head_dim)
            mixed = scores.masked_fill(~seen, -math.inf).softmax(-1) @ v.repeat_interleave(group, 0)
            y = mixed.transpose(0, 1).reshape(len(tokens), -1) @ w("attn_output").T
            x = x + (self.norm(y, f"blk.{l}.post_attention_norm.weight") if gemma else y)
            y = self.norm(x, f"blk.{l}.ffn_norm.weight")
            gate = y @ w("ffn_gate").T
            gate = torch.nn.functional.gelu(gate, approximate="tanh") if gemma else gate * gate.sigmoid()
            y = (gate * (y @ w("ffn_up").T)) @ w("ffn_down").T
            x = x + (self.norm(y, f"blk.{l}.post_ffw_norm.weight") if gemma else y)
        return self.norm(x, "output_norm.weight") @ self.output.T

    def greedy(self, tokens: list[int], n: int) -> list[int]:
        cache: list = []
        found = [int(self.logits(tokens, cache)[-1].argmax())]
        while len(found) < n:
            found.append(int(self.logits(found[-1:], cache)[-1].argmax()))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("tokens")
    parser.add_argument("--save", help="a file of logits, rounded to float32 at last")
    parser.add_argument("--greedy", type=int, default=0, metavar="N")
    parser.add_argument("-t", "--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    documents, model = read_documents(args.tokens), Model(args.model)
    if args.greedy:
        for document in documents:
            print(*model.greedy(document, args.greedy), flush=True)
        return
    if not args.save:
        parser.error("--save or --greedy is needed")
    with torch.inference_mode(), open(args.save, "wb") as out:
        rows = sum(len(document) - 1 for document in documents)
        out.write(HEADER.pack(b"TSLOGITS", len(model.output), 0, rows, tokens_hash(documents)))
        for document in documents:
            out.write(model.logits(document[:-1]).float().numpy().tobytes())


if __name__ == "__main__":
    main()
