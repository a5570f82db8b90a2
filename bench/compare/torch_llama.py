"""A Llama in PyTorch, written out: random weights, PyTorch's own fused attention, a KV cache for decoding."""
from __future__ import annotations

import torch
import torch.nn.functional as F

from shapes import Shape


class Llama:
    def __init__(self, shape: Shape, dtype: torch.dtype, sequences: int = 1, tokens: int = 4096):
        self.shape, self.dtype = shape, dtype
        random = lambda rows, columns: torch.empty(rows, columns, dtype=dtype).uniform_(-0.03, 0.03)
        self.embedding = random(shape.vocab, shape.width)
        self.output = random(shape.vocab, shape.width)
        self.layers = [{name: random(*dims) for name, dims in shape.layer_matrices().items()}
                       for _ in range(shape.layers)]
        self.norm = torch.ones(shape.width, dtype=dtype)
        frequencies = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2) / shape.head_dim)
        angles = torch.arange(tokens)[:, None] * frequencies[None, :]
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)  # [tokens, head_dim / 2]
        self.reserve(sequences, tokens)

    def reserve(self, sequences: int, tokens: int) -> None:
        """Makes a KV cache for `sequences` sequences of `tokens` tokens each."""
        dims = (sequences, self.shape.kv_heads, tokens, self.shape.head_dim)
        self.keys = [torch.zeros(dims, dtype=self.dtype) for _ in self.layers]
        self.values = [torch.zeros(dims, dtype=self.dtype) for _ in self.layers]

    def rope(self, x: torch.Tensor, start: int) -> torch.Tensor:  # [sequences, heads, tokens, head_dim]
        tokens, half = x.shape[2], self.shape.head_dim // 2
        cos, sin = self.cos[start:start + tokens], self.sin[start:start + tokens]
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def attention(self, i: int, x: torch.Tensor, start: int) -> torch.Tensor:
        shape, weights = self.shape, self.layers[i]
        sequences, tokens, _ = x.shape
        heads = lambda y, n: y.view(sequences, tokens, n, shape.head_dim).transpose(1, 2)
        q = self.rope(heads(F.linear(x, weights["attn_q"]), shape.heads), start)
        end = start + tokens
        self.keys[i][:sequences, :, start:end] = self.rope(heads(F.linear(x, weights["attn_k"]), shape.kv_heads), start)
        self.values[i][:sequences, :, start:end] = heads(F.linear(x, weights["attn_v"]), shape.kv_heads)
        k, v = self.keys[i][:sequences, :, :end], self.values[i][:sequences, :, :end]
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=tokens > 1, enable_gqa=True)
        return F.linear(mixed.transpose(1, 2).reshape(x.shape), weights["attn_output"])

    def forward(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        """Returns the logits of each sequence's last token. tokens: [sequences, tokens]; several tokens only if start is 0."""
        normed = lambda y: F.rms_norm(y, (self.shape.width,), self.norm, self.shape.rms_epsilon)
        x = F.embedding(tokens, self.embedding)
        for i, weights in enumerate(self.layers):
            x = x + self.attention(i, normed(x), start)
            y = normed(x)
            x = x + F.linear(F.silu(F.linear(y, weights["ffn_gate"])) * F.linear(y, weights["ffn_up"]),
                             weights["ffn_down"])
        return F.linear(normed(x[:, -1]), self.output)
