"""Draft heads in plain PyTorch, as tessera computes them: an EAGLE-3 head (Li et al. 2025) and Medusa heads (Cai et al. 2024)."""
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from model import RMSNorm


def turn(x: torch.Tensor, theta: float) -> torch.Tensor:
    """Rotates by position; x: [batch, heads, time, dim]. The pairs are the halves of a head, as in folders of hubs."""
    dim = x.shape[-1]
    frequency = theta ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float64), frequency)
    cos, sin = (torch.cat([t, t], -1).float() for t in (angle.cos(), angle.sin()))
    return x * cos + torch.cat([-x[..., dim // 2:], x[..., :dim // 2]], -1) * sin


class Eagle3(nn.Module):
    """One decoder layer. Row r reads the embedding of token r + 1 and the model's states after token r, and guesses token r + 2."""

    def __init__(self, width: int, n_heads: int, n_kv_heads: int, head_dim: int, ffn_dim: int, eps: float, theta: float):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim, self.theta = n_heads, n_kv_heads, head_dim, theta

        def matrix(inputs: int, outputs: int) -> nn.Linear:
            linear = nn.Linear(inputs, outputs, bias=False)
            nn.init.normal_(linear.weight, std=inputs ** -0.5)
            return linear

        self.fc = matrix(3 * width, width)
        self.input_layernorm, self.hidden_norm = RMSNorm(width, eps), RMSNorm(width, eps)
        self.q_proj, self.k_proj, self.v_proj = (matrix(2 * width, n * head_dim) for n in (n_heads, n_kv_heads, n_kv_heads))
        self.o_proj = matrix(n_heads * head_dim, width)
        self.post_attention_layernorm = RMSNorm(width, eps)
        self.gate_proj, self.up_proj, self.down_proj = matrix(width, ffn_dim), matrix(width, ffn_dim), matrix(ffn_dim, width)
        self.norm = RMSNorm(width, eps)

    def parts(self, embedded: torch.Tensor, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns queries, keys and values [batch, heads, time, dim]; keys and values are
        repeated, one head for each query head."""
        x = torch.cat([self.input_layernorm(embedded), self.hidden_norm(hidden)], -1)
        q, k, v = (p(x).float().unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        shared = self.n_heads // self.n_kv_heads
        return turn(q, self.theta), turn(k, self.theta).repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)

    def forward(self, embedded: torch.Tensor, features: torch.Tensor, depth: int) -> list[torch.Tensor]:
        """Returns the guesses' hidden states [batch, time, width] for each depth. At depth s, row r reads the head's own output of row
        r - 1 instead of the model's states, as in a chain of drafts that began s rows earlier. The first s rows are meaningless."""
        time = embedded.shape[1]
        hidden, keys, values, results = self.fc(features), [], [], []
        for s in range(depth):
            q, k, v = self.parts(embedded, hidden)
            keys.append(k)
            values.append(v)
            # `seen`: the keys of depth 0 to which row r attends: those of the rows up to r - s, before the chain. `moved` has the other
            # keys: the row at place i of the chain has a key of depth i.
            seen = torch.ones(time, time, dtype=torch.bool).tril(-s)
            scores = [(q @ keys[0].transpose(-1, -2)).masked_fill(~seen, -1e9)]
            moved = [(F.pad(keys[i], (0, 0, s - i, 0))[..., :time, :], F.pad(values[i], (0, 0, s - i, 0))[..., :time, :]) for i in range(1, s + 1)]
            scores += [(q * key).sum(-1, keepdim=True) for key, _ in moved]
            weights = (torch.cat(scores, -1) * self.head_dim ** -0.5).softmax(-1)
            out = weights[..., :time] @ values[0]
            for i, (_, value) in enumerate(moved):
                out = out + weights[..., time + i, None] * value
            x = hidden + self.o_proj(out.transpose(1, 2).flatten(2))
            h = self.post_attention_layernorm(x)
            x = x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h))
            results.append(self.norm(x))
            hidden = F.pad(x, (0, 0, 1, 0))[:, :time]
        return results

    def tensors(self) -> dict[str, torch.Tensor]:
        """Returns the weights under the names that published folders use."""
        inside = {"q_proj": "self_attn.", "k_proj": "self_attn.", "v_proj": "self_attn.", "o_proj": "self_attn.",
                  "gate_proj": "mlp.", "up_proj": "mlp.", "down_proj": "mlp."}
        outside = ("fc", "norm")
        return {(name if name.split(".")[0] in outside else "midlayer." + inside.get(name.split(".")[0], "") + name): weight.detach().float()
                for name, weight in self.named_parameters()}


class Medusa(nn.Module):
    """Head i guesses the token i + 2 places after a row, by residual blocks on the output of the final norm; the model's output matrix
    follows."""

    def __init__(self, width: int, n_heads: int, n_blocks: int):
        super().__init__()
        self.heads = nn.ModuleList(nn.ModuleList(nn.Linear(width, width) for _ in range(n_blocks)) for _ in range(n_heads))
        for parameter in self.parameters():
            nn.init.zeros_(parameter) if parameter.dim() == 1 else nn.init.normal_(parameter, std=0.01)

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        results = []
        for blocks in self.heads:
            x = hidden
            for block in blocks:
                x = x + F.silu(block(x))
            results.append(x)
        return results

    def tensors(self) -> dict[str, torch.Tensor]:
        return {f"{i}.{j}.linear.{name}": weight.detach().float()
                for i, blocks in enumerate(self.heads) for j, block in enumerate(blocks) for name, weight in block.named_parameters()}
