#!/usr/bin/env python3
"""Trains an adapter (LoRA: Hu et al. 2021) for the default model. With the adapter, pirates tell the model's stories.

    train_adapter.py --greedy models/tessera-stories-pirate.greedy.json
    train_adapter.py --show 3    # trains nothing; prints stories without the adapter, and the same seeds with it

The model's weights come from its GGUF file and are not changed. Each matrix W of a block gets two small matrices, and W x becomes
W x + alpha / rank * B (A x). The adapter is written as a GGUF file in llama.cpp's layout, in F16. --greedy has the same meaning as in
export_gguf.py, with the numbers of both files.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import time
from random import Random

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import nn

from export_gguf import END_OF_TEXT_ID, greedy, read_back
from model import Config, Llama
from pirate_text import pirate_story, use_pirate_words

ROW = 384  # tokens of a story that the adapter learns
IGNORED = -100


class Adapted(nn.Module):
    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.linear = linear
        self.a = nn.Parameter(torch.randn(rank, linear.in_features) * linear.in_features ** -0.5)
        self.b = nn.Parameter(torch.zeros(linear.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.linear(x) + self.scale * F.linear(F.linear(x, self.a), self.b)


def adapt(model: Llama, rank: int, alpha: float) -> dict[str, Adapted]:
    """Replaces each matrix of the blocks by an Adapted with that matrix. Returns them under the tensors' names in the file."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    adapted = {}
    for i, block in enumerate(model.blk):
        for name, module in list(block.named_children()):
            if isinstance(module, nn.Linear):
                adapted[f"blk.{i}.{name}.weight"] = Adapted(module, rank, alpha)
                setattr(block, name, adapted[f"blk.{i}.{name}.weight"])
    return adapted


def read_config(reader: gguf.GGUFReader) -> Config:
    def number(key):
        return reader.get_field(f"llama.{key}").contents()

    return Config(vocab_size=number("vocab_size"), dim=number("embedding_length"), n_layers=number("block_count"), n_heads=number("attention.head_count"),
                  n_kv_heads=number("attention.head_count_kv"), head_dim=number("attention.key_length"), ffn_dim=number("feed_forward_length"),
                  context=number("context_length"), rope_theta=number("rope.freq_base"), norm_eps=number("attention.layer_norm_rms_epsilon"))


def read_tokenizer(reader: gguf.GGUFReader) -> Tokenizer:
    tokens = reader.get_field("tokenizer.ggml.tokens").contents()
    merges = [tuple(merge.split(" ")) for merge in reader.get_field("tokenizer.ggml.merges").contents()]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def write_adapter(path: str, adapted: dict[str, Adapted], alpha: float) -> None:
    out = gguf.GGUFWriter(path + ".part", "llama")
    out.add_type(gguf.GGUFType.ADAPTER)
    out.add_name("tessera-stories-pirate")
    out.add_license("MIT")
    out.add_description("Pirates tell the stories of tessera-stories; trained on generated text by tools/train of tessera.")
    out.add_base_model_count(1)
    out.add_base_model_name(0, "tessera-stories")
    out.add_string(gguf.Keys.Adapter.TYPE, "lora")
    out.add_float32(gguf.Keys.Adapter.LORA_ALPHA, alpha)
    out.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for name, layer in adapted.items():
        out.add_tensor(f"{name}.lora_a", layer.a.detach().numpy().astype(np.float16))
        out.add_tensor(f"{name}.lora_b", layer.b.detach().numpy().astype(np.float16))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    os.replace(path + ".part", path)


def load_adapter(path: str, model: Llama) -> dict[str, Adapted]:
    """Adapts a model with the adapter of a file."""
    reader = gguf.GGUFReader(path)
    tensors = {tensor.name: torch.from_numpy(np.array(tensor.data, dtype=np.float32)) for tensor in reader.tensors}
    adapted = adapt(model, next(iter(tensors.values())).shape[0], reader.get_field(gguf.Keys.Adapter.LORA_ALPHA).contents())
    with torch.no_grad():
        for name, layer in adapted.items():
            layer.a.copy_(tensors[f"{name}.lora_a"])
            layer.b.copy_(tensors[f"{name}.lora_b"])
    return adapted


def batch(stories: list[str], tokenizer: Tokenizer) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns ids and targets [stories, ROW], with one story a row."""
    ids, targets = torch.zeros(len(stories), ROW, dtype=torch.long), torch.full((len(stories), ROW), IGNORED)
    for row, encoding in enumerate(tokenizer.encode_batch(stories)):
        tokens = torch.tensor([END_OF_TEXT_ID, *encoding.ids, END_OF_TEXT_ID])[:ROW + 1]
        ids[row, :len(tokens) - 1], targets[row, :len(tokens) - 1] = tokens[:-1], tokens[1:]
    return ids, targets


def loss_of(model: Llama, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(ids)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def train(model: Llama, adapted: dict[str, Adapted], tokenizer: Tokenizer, args: argparse.Namespace) -> None:
    rng = Random(args.seed)
    parameters = [parameter for layer in adapted.values() for parameter in (layer.a, layer.b)]
    optimiser = torch.optim.AdamW(parameters, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0)
    held = batch([pirate_story(Random(-i)) for i in range(1, 33)], tokenizer)
    with torch.no_grad():
        print(f"{sum(p.numel() for p in parameters):,} parameters; loss of the model alone {loss_of(model, *held):.3f}", flush=True)
    began = printed = time.time()
    for step in range(args.steps):
        optimiser.param_groups[0]["lr"] = args.lr * min(1.0, 10 * (step + 1) / args.steps) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / args.steps)))
        loss = loss_of(model, *batch([pirate_story(rng) for _ in range(args.batch)], tokenizer))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if time.time() - printed > 30:
            print(f"step {step + 1}  loss {loss.item():.3f}  {(time.time() - began) / 60:.1f} min", flush=True)
            printed = time.time()
    with torch.no_grad():
        print(f"done: {args.steps} steps of {args.batch} stories, {(time.time() - began) / 60:.1f} min, loss {loss_of(model, *held):.3f}")


@torch.no_grad()
def tell(model: Llama, tokenizer: Tokenizer, seed: int, temperature: float = 0.7, top_p: float = 0.9) -> str:
    torch.manual_seed(seed)
    caches, ids, token = [{} for _ in model.blk], [], END_OF_TEXT_ID
    for position in range(model.cfg.context):
        logits = model(torch.tensor([[token]]), position, caches)[0, -1] / temperature
        probabilities, order = logits.softmax(-1).sort(descending=True)
        probabilities[probabilities.cumsum(0) - probabilities > top_p] = 0
        token = int(order[torch.multinomial(probabilities, 1)])
        if token == END_OF_TEXT_ID:
            break
        ids.append(token)
    return tokenizer.decode(ids)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--model", default="models/tessera-stories.gguf")
    ap.add_argument("--out", default="models/tessera-stories-pirate.gguf")
    ap.add_argument("--start", help="begin with this adapter, instead of with one that changes nothing")
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--rank", type=int, default=4)
    ap.add_argument("--alpha", type=float, default=8)
    ap.add_argument("--batch", type=int, default=8, help="stories a step")
    ap.add_argument("--lr", type=float, default=0.005)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--greedy", help="also write the greedy continuation to this JSON file")
    ap.add_argument("--show", type=int, default=0, help="print this many stories with and without the adapter, instead of training")
    args = ap.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    use_pirate_words()
    reader = gguf.GGUFReader(args.model)
    cfg, tokenizer = read_config(reader), read_tokenizer(reader)
    model = read_back(args.model, cfg)
    if args.show:
        pirate = read_back(args.model, cfg)
        load_adapter(args.out, pirate)
        for seed in range(1, args.show + 1):
            print(f"---- {seed}, without\n{tell(model, tokenizer, seed)}\n---- {seed}, with\n{tell(pirate, tokenizer, seed)}")
        return
    adapted = load_adapter(args.start, model) if args.start else adapt(model, args.rank, args.alpha)
    train(model, adapted, tokenizer, args)
    write_adapter(args.out, adapted, args.alpha)
    print(f"{args.out}: {os.path.getsize(args.out):,} bytes")
    if args.greedy:
        model = read_back(args.model, cfg)
        load_adapter(args.out, model)
        answer = greedy(model, 199)
        with open(args.greedy, "w", encoding="utf-8") as f:
            json.dump(answer, f)
            f.write("\n")
        print(f"{args.greedy}: smallest margin between first and second choice {answer['smallest_margin']:.4f}\n{tokenizer.decode(answer['greedy_ids'])}")


if __name__ == "__main__":
    main()
