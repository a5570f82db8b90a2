"""The Llama architecture in plain PyTorch, laid out as a GGUF `llama` file expects it.

Rotary pairs are interleaved (2i, 2i+1), the order of GGUF's llama files, so that an
export copies every matrix as it is and permutes nothing.  The output head is tied to
the token embedding: with a small vocabulary a second table would only cost file size.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab_size: int = 2048
    dim: int = 256
    n_layers: int = 6
    n_heads: int = 8
    n_kv_heads: int = 2
    head_dim: int = 32
    ffn_dim: int = 768
    context: int = 512
    rope_theta: float = 10000.0
    norm_eps: float = 1e-5

    def as_dict(self) -> dict:
        return asdict(self)

    def check(self) -> None:
        # Rows must be whole blocks of the formats to which the model is to be quantised: 32 weights for most, 256 for the K-quants.
        for what in (self.dim, self.ffn_dim, self.n_heads * self.head_dim):
            if what % 32:
                raise ValueError(f"row length {what} is not a multiple of 32")
        if self.n_heads % self.n_kv_heads:
            raise ValueError("n_heads must be a multiple of n_kv_heads")


PRESETS = {
    # About 5.0 M weights: 5.4 MB as Q8_0. Rows of 256: every format fits.
    "default": Config(),
    # A draft model for speculation, with about a tenth of the default's weights. Half of its weights are the embedding table, whose size
    # follows from the tokenizer that both models share. Its rows have 128 weights, too few for the blocks of 256 of the K-quants.
    "draft": Config(dim=128, n_layers=2, n_heads=4, n_kv_heads=2, ffn_dim=256),
}


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


def rope_table(cfg: Config, device=None) -> tuple[torch.Tensor, torch.Tensor]:
    half = torch.arange(0, cfg.head_dim, 2, dtype=torch.float64, device=device)
    freq = cfg.rope_theta ** (-half / cfg.head_dim)
    angle = torch.outer(torch.arange(cfg.context, dtype=torch.float64, device=device), freq)
    return angle.cos().float(), angle.sin().float()


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x: [batch, head, time, head_dim]; cos and sin: [time, head_dim / 2]."""
    pairs = x.unflatten(-1, (-1, 2))
    even, odd = pairs[..., 0], pairs[..., 1]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


def document_mask(ids: torch.Tensor, end_of_text: int = 0) -> torch.Tensor:
    """Returns a mask [batch, 1, time, time]: a token sees the tokens before it in its own document only."""
    document = (ids == end_of_text).cumsum(1)
    same = document[:, None, :, None] == document[:, None, None, :]
    return same & torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).tril()


class Block(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        q_dim, kv_dim = cfg.n_heads * cfg.head_dim, cfg.n_kv_heads * cfg.head_dim
        self.attn_norm = RMSNorm(cfg.dim, cfg.norm_eps)
        self.attn_q = nn.Linear(cfg.dim, q_dim, bias=False)
        self.attn_k = nn.Linear(cfg.dim, kv_dim, bias=False)
        self.attn_v = nn.Linear(cfg.dim, kv_dim, bias=False)
        self.attn_output = nn.Linear(q_dim, cfg.dim, bias=False)
        self.ffn_norm = RMSNorm(cfg.dim, cfg.norm_eps)
        self.ffn_gate = nn.Linear(cfg.dim, cfg.ffn_dim, bias=False)
        self.ffn_up = nn.Linear(cfg.dim, cfg.ffn_dim, bias=False)
        self.ffn_down = nn.Linear(cfg.ffn_dim, cfg.dim, bias=False)

    def forward(self, x, cos, sin, cache=None, mask=None):
        cfg = self.cfg
        b, t, _ = x.shape
        h = self.attn_norm(x)
        q = self.attn_q(h).view(b, t, cfg.n_heads, cfg.head_dim).transpose(1, 2)
        k = self.attn_k(h).view(b, t, cfg.n_kv_heads, cfg.head_dim).transpose(1, 2)
        v = self.attn_v(h).view(b, t, cfg.n_kv_heads, cfg.head_dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        # Autocast leaves the rotation in float32; attention wants one type throughout.
        q, k = q.to(v.dtype), k.to(v.dtype)
        if cache is not None:
            if cache.get("k") is not None:
                k = torch.cat((cache["k"], k), dim=2)
                v = torch.cat((cache["v"], v), dim=2)
            cache["k"], cache["v"] = k, v
        group = cfg.n_heads // cfg.n_kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        # With a cache, a call computes either a whole prompt (a square, causal mask) or one token, which sees all keys.
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None and t > 1)
        x = x + self.attn_output(a.transpose(1, 2).reshape(b, t, -1))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Llama(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        cfg.check()
        self.cfg = cfg
        self.token_embd = nn.Embedding(cfg.vocab_size, cfg.dim)
        self.blk = nn.ModuleList(Block(cfg) for _ in range(cfg.n_layers))
        self.output_norm = RMSNorm(cfg.dim, cfg.norm_eps)
        cos, sin = rope_table(cfg)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.reset()

    def reset(self) -> None:
        # Small initial outputs into the residual stream keep deep stacks stable at the start.
        for name, p in self.named_parameters():
            if p.dim() < 2:
                continue
            # The standard deviation of the initial weights. The embedding has a large one, so that tokens differ clearly in the residual
            # stream. With 0.02, names looked alike, and the model learnt late to copy them.
            std = 0.1 if "token_embd" in name else p.shape[1] ** -0.5
            if "attn_output" in name or "ffn_down" in name:
                std /= (2 * self.cfg.n_layers) ** 0.5
            nn.init.normal_(p, std=std)

    def forward(self, ids, start: int = 0, caches=None, mask=None):
        t = ids.shape[1]
        cos, sin = self.cos[start:start + t], self.sin[start:start + t]
        x = self.token_embd(ids)
        for i, block in enumerate(self.blk):
            x = block(x, cos, sin, None if caches is None else caches[i], mask)
        return F.linear(self.output_norm(x), self.token_embd.weight)

    def n_params(self) -> int:
        return sum(p.numel() for p in self.parameters())
