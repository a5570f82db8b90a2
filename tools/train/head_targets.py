"""The models for which train_heads.py trains draft heads: the shipped story models (GGUF), and model folders from hubs."""
from __future__ import annotations

from random import Random

import gguf
import torch
import torch.nn.functional as F

from export_gguf import END_OF_TEXT_ID, read_back
from make_text import document
from train_adapter import read_config, read_tokenizer


class Target:
    """A model that is not changed. states() returns the inputs of the layers in `features`, the hidden states after the final norm, and the
    logits. (tessera computes the same states; PyTorch is used because the heads are trained there.)"""

    width: int
    n_layers: int
    vocab_size: int
    context: int
    n_heads: int
    eps: float
    theta: float
    features: tuple[int, ...]

    def choose_features(self, named: str | None) -> None:
        n = self.n_layers
        self.features = tuple(int(layer) for layer in named.split(",")) if named else (n // 3, 2 * n // 3, n)
        if len(self.features) != 3 or sorted(set(self.features)) != list(self.features) or not 0 <= self.features[0] <= self.features[-1] <= n:
            raise SystemExit(f"--features: name three layers, ascending, from 0 to {n}")


class StoryTarget(Target):
    def __init__(self, path: str):
        reader = gguf.GGUFReader(path)
        cfg, self.tokenizer = read_config(reader), read_tokenizer(reader)
        self.model = read_back(path, cfg)
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        self.width, self.n_layers, self.vocab_size, self.context = cfg.dim, cfg.n_layers, cfg.vocab_size, cfg.context
        self.n_heads, self.eps, self.theta = cfg.n_heads, cfg.norm_eps, cfg.rope_theta

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model.token_embd(ids)

    def output(self, hidden: torch.Tensor) -> torch.Tensor:
        return F.linear(hidden, self.model.token_embd.weight)

    @torch.no_grad()
    def states(self, ids: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
        model, time = self.model, ids.shape[1]
        x, inputs = model.token_embd(ids), []
        for block in model.blk:
            inputs.append(x)
            x = block(x, model.cos[:time], model.sin[:time])
        inputs.append(x)
        normed = model.output_norm(x)
        return [inputs[layer].float() for layer in self.features], normed.float(), self.output(normed).float()

    def rows(self, seed: int, length: int):
        """Yields rows of token ids without end: one document a row, as make_text.py writes documents."""
        index = 0
        while True:
            yield [END_OF_TEXT_ID, *self.tokenizer.encode(document(seed, index)["text"]).ids, END_OF_TEXT_ID][:length]
            index += 1


class FolderTarget(Target):
    def __init__(self, path: str, text: str | None):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if not text:
            raise SystemExit("--text FILE is needed with a folder: text like that which the model will write (generate can write it)")
        self.model = AutoModelForCausalLM.from_pretrained(path, torch_dtype=torch.float32).eval()
        config = self.model.config
        self.width, self.n_layers, self.vocab_size = config.hidden_size, config.num_hidden_layers, config.vocab_size
        self.context, self.n_heads = config.max_position_embeddings, config.num_attention_heads
        self.eps, self.theta = config.rms_norm_eps, 10000.0
        with open(text, encoding="utf-8") as f:
            self.ids = AutoTokenizer.from_pretrained(path)(f.read())["input_ids"]
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model.get_input_embeddings()(ids)

    def output(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.model.get_output_embeddings()(hidden)

    @torch.no_grad()
    def states(self, ids: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor, torch.Tensor]:
        inputs: list[torch.Tensor] = []

        def keep(_, args, kwargs):
            inputs.append(args[0] if args else kwargs["hidden_states"])

        hooks = [layer.register_forward_pre_hook(keep, with_kwargs=True) for layer in self.model.model.layers]
        hooks.append(self.model.model.norm.register_forward_pre_hook(keep, with_kwargs=True))
        normed = self.model.model(input_ids=ids).last_hidden_state
        for hook in hooks:
            hook.remove()
        return [inputs[layer].float() for layer in self.features], normed.float(), self.output(normed).float()

    def rows(self, seed: int, length: int):
        """Yields rows of token ids without end: pieces of the text. Seed 0 (for measurements) reads the last twentieth, other
        seeds the rest."""
        rng, cut = Random(seed), len(self.ids) * 19 // 20
        part = self.ids[cut:] if seed == 0 else self.ids[:cut]
        if len(part) <= length:
            raise SystemExit(f"--text: {len(self.ids)} tokens are too few; give at least {21 * length}")
        while True:
            at = rng.randrange(len(part) - length)
            yield part[at:at + length]


def open_target(path: str, text: str | None) -> Target:
    return StoryTarget(path) if path.endswith(".gguf") else FolderTarget(path, text)
