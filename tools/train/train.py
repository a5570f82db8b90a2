#!/usr/bin/env python3
"""Trains a model on the token files of encode_text.py.

    train.py --preset default --minutes 50
    train.py --preset draft --minutes 10

The learning rate follows a cosine over the time budget (or over --steps if given;
whichever ends first). A checkpoint with the optimisers is written every two minutes,
under a temporary name first. A second call continues from the checkpoint, with the rest
of the budget.
"""
from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from dataclasses import replace

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F

from tokenizers import Tokenizer

import story_words as words
from encode_text import QUIET
from model import PRESETS, Config, Llama, document_mask
from muon import Muon

IGNORED = -100


class Rows:
    """Rows of context + 1 tokens, each from the start of a document."""

    def __init__(self, path: str, context: int):
        self.data = np.fromfile(path, dtype=np.uint16)
        starts = np.flatnonzero((self.data & ~np.uint16(QUIET)) == 0)
        self.starts = starts[starts + context + 1 <= len(self.data)]
        self.context = context

    def batch(self, at: np.ndarray, device: str):
        rows = np.stack([self.data[s:s + self.context + 1] for s in at]).astype(np.int64)
        ids = rows & ~QUIET
        targets = np.where(rows & QUIET, IGNORED, ids)
        return (torch.from_numpy(ids[:, :-1]).to(device), torch.from_numpy(targets[:, 1:]).to(device))


def loss_of(net, ids, targets, device: str, bf16: bool):
    with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
        logits = net(ids, mask=document_mask(ids))
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


def name_ids(path: str) -> list[int]:
    tok = Tokenizer.from_file(path)
    return [tok.encode(" " + name).ids[0] for name in words.NAMES]


def loss_for_training(net, ids, targets, device: str, bf16: bool, names: torch.Tensor, weight: float):
    """Returns the loss, with an additional loss on names: given that a name comes, which one?

    Names are a twentieth of the tokens, but a reader misses them first. The additional
    loss compares only names with each other, so it leaves the choice between a name and a
    pronoun undisturbed.
    """
    with torch.autocast(device, dtype=torch.bfloat16, enabled=bf16):
        logits = net(ids, mask=document_mask(ids))
    logits, targets = logits.float().flatten(0, 1), targets.flatten()
    loss = F.cross_entropy(logits, targets, ignore_index=IGNORED)
    at, which = (targets[:, None] == names[None]).nonzero(as_tuple=True)
    among = F.cross_entropy(logits[at][:, names], which)
    return loss + weight * len(at) / len(targets) * among, loss.detach(), among.detach()


@torch.no_grad()
def measure(net, rows: Rows, device: str, bf16: bool, batch: int, n_batches: int = 8) -> float:
    """Returns the mean loss over fixed rows, so that two measurements can be compared."""
    at = np.random.default_rng(0).choice(rows.starts, size=(n_batches, batch))
    return sum(loss_of(net, *rows.batch(a, device), device, bf16).item() for a in at) / n_batches


def schedule(progress: float, step: int, warmup: int) -> float:
    # Ends at 2 % of the highest rate, so that the last steps change the weights only a little.
    return min(1.0, (step + 1) / warmup) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0))))


def save(path: str, **state) -> None:
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def share(params: list, extra: list[float], world: int) -> list[float]:
    """Averages the gradients over all processes, and some numbers with them. Returns the averaged numbers."""
    if world == 1:
        return extra
    flat = torch.cat([p.grad.flatten() for p in params] + [torch.tensor(extra, dtype=torch.float32)])
    dist.all_reduce(flat)
    flat /= world
    at = 0
    for p in params:
        p.grad.copy_(flat[at:at + p.numel()].view_as(p))
        at += p.numel()
    return flat[at:].tolist()


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--preset", choices=PRESETS, default="default")
    ap.add_argument("--data", default="build/train", help="folder of train.bin and val.bin")
    ap.add_argument("--out", help="checkpoint (build/train/PRESET.pt)")
    ap.add_argument("--minutes", type=float, default=50)
    ap.add_argument("--steps", type=int, default=0, help="0: the time budget alone decides")
    ap.add_argument("--batch", type=int, default=8, help="rows a step")
    ap.add_argument("--lr", type=float, default=0.02, help="for the matrices (Muon)")
    ap.add_argument("--lr-adam", type=float, default=0.004, help="for the embedding and the norms")
    ap.add_argument("--name-weight", type=float, default=2.0, help="weight of the question: which name?")
    ap.add_argument("--threads", type=int, default=1, help="for each process")
    ap.add_argument("--processes", type=int, default=2,
                    help="each takes its part of a batch; on a busy CPU this waits far less than threads do")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    ap.add_argument("--compile", action=argparse.BooleanOptionalAction, default=True,
                    help="torch.compile: half as fast again, but it needs a C++ compiler")
    ap.add_argument("--layers", type=int, help="instead of the preset's")
    args = ap.parse_args()

    if torch.cuda.is_available() or args.processes == 1:
        args.processes = 1
        run(0, args, "")
        return
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run, (args, "file://" + os.path.join(folder, "meet")), nprocs=args.processes)


def run(rank: int, args: argparse.Namespace, meet: str) -> None:
    world = args.processes
    if world > 1:
        dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=world)

    def say(text: str) -> None:
        if rank == 0:
            print(text, flush=True)

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    path = args.out or os.path.join(args.data, args.preset + ".pt")
    cfg = PRESETS[args.preset]
    if args.layers:
        cfg = replace(cfg, n_layers=args.layers)

    start = torch.load(path, map_location=device, weights_only=True) if os.path.exists(path) else None
    if start:
        cfg = Config(**start["config"])
    model = Llama(cfg).to(device)
    matrices = [p for p in model.blk.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if not any(p is m for m in matrices)]
    optimisers = [Muon(matrices, lr=args.lr, weight_decay=0.02),
                  torch.optim.AdamW(others, lr=args.lr_adam, betas=(0.9, 0.98), weight_decay=0.0)]
    step, elapsed, seen = 0, 0.0, 0
    if start:
        model.load_state_dict(start["model"])
        for opt, state in zip(optimisers, start["optimisers"]):
            opt.load_state_dict(state)
        step, elapsed, seen = start["step"], start["seconds"], start["tokens"]
        say(f"goes on from step {step}")
    base = [args.lr, args.lr_adam]
    net = torch.compile(model) if args.compile else model

    train, val = (Rows(os.path.join(args.data, n + ".bin"), cfg.context) for n in ("train", "val"))
    say(f"{args.preset}: {model.n_params():,} parameters, {device}, {len(train.data) / 1e6:.1f} M tokens of text")
    # Shuffled anew for each pass over the data. The step chooses the place, so that a resumed run sees new rows.
    order_of, order = -1, None
    per_pass = len(train.starts) // args.batch
    saved = printed = time.time()
    began, before, val_loss, average = time.time(), elapsed, float("nan"), None

    def keep(final: bool) -> None:
        save(path, config=cfg.as_dict(), model=model.state_dict(), optimisers=[o.state_dict() for o in optimisers],
             step=step, seconds=elapsed, tokens=seen, val_loss=val_loss, final=final)

    params = list(model.parameters())
    names = torch.tensor(name_ids(os.path.join(args.data, "tokenizer.json")), device=device)
    share_rows = args.batch // world
    while True:
        progress = max(elapsed / (60 * args.minutes), step / args.steps if args.steps else 0.0)
        if progress >= 1:
            break
        if step // per_pass != order_of:
            order_of = step // per_pass
            order = np.random.default_rng(args.seed + order_of).permutation(train.starts)
        at = (step % per_pass) * args.batch + rank * share_rows
        ids, targets = train.batch(order[at:at + share_rows], device)
        factor = schedule(progress, step, warmup=60)
        for opt, lr in zip(optimisers, base):
            opt.param_groups[0]["lr"] = lr * factor
        loss, plain, among = loss_for_training(net, ids, targets, device, args.bf16, names, args.name_weight)
        loss.backward()
        # Averages the elapsed time over the processes too, so that all processes have the same learning rates and stop together.
        elapsed, mean, which = share(params, [before + time.time() - began, plain.item(), among.item()], world)
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for opt in optimisers:
            opt.step()
            opt.zero_grad(set_to_none=True)
        step, seen = step + 1, seen + ids.numel() * world
        average = mean if average is None else 0.95 * average + 0.05 * mean
        if rank == 0 and time.time() - printed > 30:
            speed = seen / max(elapsed, 1)
            say(f"step {step:6d}  loss {average:.4f}  names {which:.3f}  lr x{factor:.3f}  {seen / 1e6:.2f} M tokens  "
                f"{speed:.0f} tokens/s  {elapsed / 60:.1f} min")
            printed = time.time()
        if rank == 0 and time.time() - saved > 120:
            val_loss = measure(model, val, device, args.bf16, share_rows, 4)
            keep(False)
            say(f"checkpoint at step {step}: validation loss {val_loss:.4f}")
            saved = time.time()

    if rank == 0:
        val_loss = measure(model, val, device, args.bf16, share_rows, 16)
        keep(True)
    say(f"done: {step} steps, {seen / 1e6:.2f} M tokens, {elapsed / 60:.1f} min, validation loss {val_loss:.4f}")
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
