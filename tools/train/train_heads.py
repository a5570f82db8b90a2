#!/usr/bin/env python3
"""Trains draft heads, which guess a model's next tokens: an EAGLE-3 head, or Medusa heads.

    train_heads.py eagle  --out models/tessera-stories-eagle.gguf
    train_heads.py medusa --out models/tessera-stories-medusa
    train_heads.py eagle  --model SmolLM2-135M --text text.txt --out smol-eagle

The model's weights are not changed. The model is a shipped story model (GGUF), for which the scripts make the text themselves, or a model
folder from a hub, with a text of yours. The heads learn the model's probabilities on that text, not the text itself, because only tokens
that the model writes count as right drafts. --out is a folder of safetensors (F16), or for EAGLE a GGUF file (Q8_0) in the form of
llama.cpp's converter.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import time

import gguf
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from draft_heads import Eagle3, Medusa
from head_targets import Target, open_target


def guesses_of(head, target: Target, ids: torch.Tensor, guesses: int) -> list[tuple[torch.Tensor, torch.Tensor, int]]:
    """Returns for each guess of a chain: the head's logits, the model's logits that they should equal, and the first row that
    counts."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features, normed, logits = target.states(ids)
        if isinstance(head, Eagle3):
            hidden = head(target.embed(ids[:, 1:]).float(), torch.cat(features, -1)[:, :-1], guesses)
            return [(target.output(h).float(), logits[:, 1:], s) for s, h in enumerate(hidden)]
        hidden = head(normed)
        return [(target.output(h[:, :-1 - i]).float(), logits[:, 1 + i:], 0) for i, h in enumerate(hidden)]


def losses(head, target: Target, ids: torch.Tensor, lengths: torch.Tensor, guesses: int) -> list[tuple[torch.Tensor, float, float]]:
    """Returns for each guess: its loss, the share of rows whose likeliest token is the model's, and the overlap of both distributions. The
    overlap is the best possible share of right drafts when tokens are drawn."""
    results = []
    for drafted, wanted, first in guesses_of(head, target, ids, guesses):
        time_ = wanted.shape[1]
        # Chooses the rows that count. Row r of `wanted` belongs to the token at place ids.shape[1] - time_ + r, which must not be padding.
        at = torch.arange(time_)
        counts = ((at + ids.shape[1] - time_ < lengths[:, None]) & (at >= first)).flatten()
        drafted, wanted = drafted.flatten(0, 1)[counts], wanted.flatten(0, 1)[counts]
        probability, log_guess = wanted.softmax(-1), drafted.log_softmax(-1)
        loss = -(probability * log_guess).sum(-1).mean()
        with torch.no_grad():
            right = (wanted.argmax(-1) == drafted.argmax(-1)).float().mean().item()
            overlap = torch.minimum(probability, log_guess.exp()).sum(-1).mean().item()
        results.append((loss, right, overlap))
    return results


def batch(rows, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    taken = [next(rows) for _ in range(count)]
    lengths = torch.tensor([len(row) for row in taken])
    ids = torch.zeros(count, int(lengths.max()), dtype=torch.long)
    for i, row in enumerate(taken):
        ids[i, :len(row)] = torch.tensor(row)
    return ids, lengths


@torch.no_grad()
def report(head, target: Target, args: argparse.Namespace) -> None:
    measured = losses(head, target, *batch(target.rows(0, args.row), 2 * args.batch), args.guesses)
    print("guess   likeliest token is the model's   overlap of probabilities")
    chain = right_so_far = 1.0
    for i, (_, right, overlap) in enumerate(measured, 1):
        right_so_far *= right
        chain += right_so_far
        print(f"{i:5}   {right:29.3f}   {overlap:24.3f}")
    print(f"about {chain:.2f} tokens a step with {len(measured)} greedy drafts", flush=True)


def train(head, target: Target, args: argparse.Namespace) -> None:
    optimiser = torch.optim.AdamW(head.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0)
    rows = target.rows(args.seed, args.row)
    began = printed = time.time()
    step, progress = 0, 0.0
    while progress < 1.0:
        rate = min(1.0, (step + 1) / 20) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        optimiser.param_groups[0]["lr"] = args.lr * rate
        each = losses(head, target, *batch(rows, args.batch), args.guesses)
        loss = sum(0.8 ** i * one for i, (one, _, _) in enumerate(each))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        step += 1
        progress = max((time.time() - began) / 60 / args.minutes, step / args.steps if args.steps else 0.0)
        if time.time() - printed > 30:
            print(f"step {step}  right {' '.join(f'{right:.2f}' for _, right, _ in each)}  {(time.time() - began) / 60:.1f} min", flush=True)
            printed = time.time()
    print(f"done: {step} steps of {args.batch} rows, {(time.time() - began) / 60:.1f} min")


def config_of(head, target: Target, args: argparse.Namespace) -> dict:
    if isinstance(head, Medusa):
        # original_lm_head (vLLM's name): the heads have no output matrix of their own.
        return {"medusa_num_heads": args.guesses, "medusa_num_layers": args.blocks, "hidden_size": target.width,
                "vocab_size": target.vocab_size, "original_lm_head": True}
    return {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_act": "silu", "hidden_size": target.width,
            "num_attention_heads": head.n_heads, "num_key_value_heads": head.n_kv_heads, "head_dim": head.head_dim,
            "intermediate_size": head.gate_proj.out_features, "num_hidden_layers": 1, "rms_norm_eps": target.eps, "rope_theta": head.theta,
            "max_position_embeddings": target.context, "vocab_size": target.vocab_size, "norm_before_residual": False,
            "eagle_aux_hidden_state_layer_ids": list(target.features)}


def write_folder(path: str, config: dict, tensors: dict[str, torch.Tensor]) -> None:
    os.makedirs(path, exist_ok=True)
    save_file({name: tensor.half().contiguous() for name, tensor in tensors.items()}, os.path.join(path, "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=2)
        f.write("\n")


# The names of an EAGLE-3 head's tensors in llama.cpp's files.
GGUF_NAMES = {"fc": "fc", "norm": "output_norm", "input_layernorm": "blk.0.attn_norm", "hidden_norm": "blk.0.attn_norm_2",
              "q_proj": "blk.0.attn_q", "k_proj": "blk.0.attn_k", "v_proj": "blk.0.attn_v", "o_proj": "blk.0.attn_output",
              "post_attention_layernorm": "blk.0.ffn_norm", "gate_proj": "blk.0.ffn_gate", "up_proj": "blk.0.ffn_up", "down_proj": "blk.0.ffn_down"}


def in_pairs(values: np.ndarray, heads: int, back: bool = False) -> np.ndarray:
    """Reorders rows of queries or keys: from pairs that are the halves of a head to pairs of neighbouring rows; `back`: the other way."""
    split = (heads, -1, 2) if back else (heads, 2, values.shape[0] // heads // 2)
    return np.ascontiguousarray(values.reshape(*split, values.shape[-1]).swapaxes(1, 2).reshape(values.shape))


def write_gguf(path: str, config: dict, tensors: dict[str, torch.Tensor], name: str) -> None:
    out = gguf.GGUFWriter(path + ".part", "eagle3")
    out.add_name(name)
    out.add_license("MIT")
    out.add_block_count(1)
    out.add_embedding_length(config["hidden_size"])
    out.add_context_length(config["max_position_embeddings"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(config["num_attention_heads"])
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_key_length(config["head_dim"])
    out.add_value_length(config["head_dim"])
    out.add_rope_dimension_count(config["head_dim"])
    out.add_rope_freq_base(config["rope_theta"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_vocab_size(config["vocab_size"])
    out.add_array("eagle3.target_layers", config["eagle_aux_hidden_state_layer_ids"])
    out.add_uint32("eagle3.target_hidden_size", config["hidden_size"])
    out.add_bool("eagle3.norm_before_residual", config["norm_before_residual"])
    q8 = gguf.GGMLQuantizationType.Q8_0
    for key, tensor in tensors.items():
        stem, values = key.split(".")[-2], tensor.numpy()
        if stem in ("q_proj", "k_proj"):  # makes neighbours of the two elements of a pair
            values = in_pairs(values, config["num_attention_heads" if stem == "q_proj" else "num_key_value_heads"])
        if values.ndim == 2:
            out.add_tensor(f"{GGUF_NAMES[stem]}.weight", gguf.quants.quantize(values, q8), raw_dtype=q8)
        else:
            out.add_tensor(f"{GGUF_NAMES[stem]}.weight", values)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    os.replace(path + ".part", path)


def load(head, path: str) -> None:
    """Loads into the head the numbers of a file that this script wrote."""
    if path.endswith(".gguf"):
        own = {tensor.name: np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32) for tensor in gguf.GGUFReader(path).tensors}
        tensors = {}
        for name, parameter in head.named_parameters():
            stem = name.split(".")[0]
            values = own[f"{GGUF_NAMES[stem]}.weight"]
            if stem in ("q_proj", "k_proj"):
                values = in_pairs(values, head.n_heads if stem == "q_proj" else head.n_kv_heads, back=True)
            tensors[name] = torch.from_numpy(values)
    else:
        own = load_file(os.path.join(path, "model.safetensors"))
        tensors = {name: own[theirs].float() for (name, _), theirs in zip(head.named_parameters(), head.tensors())}
    head.load_state_dict(tensors)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("kind", choices=("eagle", "medusa"))
    ap.add_argument("--model", default="models/tessera-stories.gguf", help="a story model (.gguf), or a folder with a model for transformers")
    ap.add_argument("--text", help="with a folder: the text on which the heads are trained")
    ap.add_argument("--out", required=True)
    ap.add_argument("--start", help="go on with these heads, which this script wrote")
    ap.add_argument("--minutes", type=float, default=10)
    ap.add_argument("--steps", type=int, default=0, help="0: --minutes alone decides")
    ap.add_argument("--guesses", type=int, default=4, help="Medusa: heads; EAGLE: how long the chains are that it is trained for")
    ap.add_argument("--blocks", type=int, default=1, help="Medusa: residual blocks of a head")
    ap.add_argument("--features", help="EAGLE: the layers whose inputs it reads, such as 2,4,6; N, the number of layers, is the last one's output")
    ap.add_argument("--heads", type=int, default=4, help="EAGLE: heads of its attention")
    ap.add_argument("--kv-heads", type=int, default=1)
    ap.add_argument("--ffn", type=int, default=256, help="EAGLE: width of its feed-forward network")
    ap.add_argument("--batch", type=int, default=8, help="rows a step")
    ap.add_argument("--row", type=int, default=288, help="tokens of a row")
    ap.add_argument("--lr", type=float, default=0.003)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    if args.kind == "medusa" and args.out.endswith(".gguf"):
        raise SystemExit("--out: Medusa heads are written as a folder; leave out .gguf")

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    target = open_target(args.model, args.text)
    target.choose_features(args.features)
    head = (Medusa(target.width, args.guesses, args.blocks) if args.kind == "medusa" else
            Eagle3(target.width, args.heads, args.kv_heads, target.width // target.n_heads, args.ffn, target.eps, target.theta))
    if args.start:
        load(head, args.start)
    print(f"{sum(p.numel() for p in head.parameters()):,} parameters", flush=True)
    train(head, target, args)
    config = config_of(head, target, args)
    if args.out.endswith(".gguf"):
        write_gguf(args.out, config, head.tensors(), os.path.basename(args.out).removesuffix(".gguf"))
    else:
        write_folder(args.out, config, head.tensors())
    report(head, target, args)


if __name__ == "__main__":
    main()
