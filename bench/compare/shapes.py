"""Shapes of Llama models, from their config.json."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    width: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    context: int = 4096
    rope_theta: float = 10000.0
    rms_epsilon: float = 1e-5

    @property
    def head_dim(self) -> int:
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim

    def layer_matrices(self) -> dict[str, tuple[int, int]]:
        """Returns (outputs, inputs) of each matrix of a layer, by GGUF name."""
        return {
            "attn_q": (self.width, self.width),
            "attn_k": (self.kv_width, self.width),
            "attn_v": (self.kv_width, self.width),
            "attn_output": (self.width, self.width),
            "ffn_gate": (self.ffn, self.width),
            "ffn_up": (self.ffn, self.width),
            "ffn_down": (self.width, self.ffn),
        }


SHAPES = {
    "llama-1b": Shape(2048, 22, 32, 4, 5632, 32000),
    "llama-8b": Shape(4096, 32, 32, 8, 14336, 128256, context=8192, rope_theta=5e5),
    "tiny": Shape(256, 2, 4, 2, 512, 512),  # to try the scripts
}
