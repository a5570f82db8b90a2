#!/usr/bin/env python3
"""Counts in how many of N seeded stories the hero's name is kept to the end.

    count_names.py                                        # the shipped GGUF, in PyTorch
    count_names.py --checkpoint build/train/default.pt    # a checkpoint
    count_names.py --command "build/release/bin/generate ..."   # another engine

With --command, " --seed i" is appended for i = 1 .. N, and the story is read from
standard output. The hero is the first known name (story_words.NAMES) of the text. A story
keeps the name if all of this is true:

  1. the story is complete: its last sentence has an end;
  2. the hero's name is in the last sentence or in the one before it;
  3. no stranger has come in: each known name of the last third of the story also occurs
     in its first half (so only the hero and the friend occur).

A text without a known name counts as not kept.
"""
from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys

import story_words as words

NAMES = set(words.NAMES)
WORD = re.compile(r"[A-Za-z]+")
SENTENCE = re.compile(r"[^.!?]*[.!?]+[\"']*")
END_OF_TEXT = "<|endoftext|>"


def judge(text: str) -> tuple[bool, str]:
    text = text.replace(END_OF_TEXT, "\x00").strip("\x00\n ").split("\x00")[0].strip()
    named = [(m.start(), m.group()) for m in WORD.finditer(text) if m.group() in NAMES]
    if not named:
        return False, "no name"
    hero = named[0][1]
    if not re.search(r"[.!?][\"']*$", text):
        return False, f"{hero}: breaks off"
    closing = WORD.findall(" ".join(SENTENCE.findall(text)[-2:]))
    if hero not in closing:
        return False, f"{hero}: not in the last two sentences"
    cast = {n for at, n in named if at < len(text) / 2}
    strangers = {n for at, n in named if at > len(text) * 2 / 3} - cast
    if strangers:
        return False, f"{hero}: replaced by {', '.join(sorted(strangers))}"
    return True, hero


def torch_stories(args):
    import torch
    from tokenizers import Tokenizer
    from export_gguf import read_back
    from model import Config, Llama

    torch.set_num_threads(args.threads)
    if args.checkpoint:
        saved = torch.load(args.checkpoint, map_location="cpu", weights_only=True)
        model = Llama(Config(**saved["config"])).eval()
        model.load_state_dict(saved["model"])
    else:
        model = read_back(args.gguf, config_of(args.gguf))
    tok = Tokenizer.from_file(args.tokenizer) if args.tokenizer else None
    decode = tok.decode if tok else gguf_decoder(args.gguf)
    for seed in range(1, args.n + 1):
        yield decode(sample(model, seed, args))


def sample(model, seed: int, args) -> list[int]:
    import torch
    gen = torch.Generator().manual_seed(seed)
    caches = [{} for _ in model.blk]
    ids, out, pos = torch.zeros(1, 1, dtype=torch.long), [], 0
    with torch.no_grad():
        while pos + ids.shape[1] <= min(args.tokens, model.cfg.context):
            logits = model(ids, pos, caches)[0, -1] / args.temperature
            pos += ids.shape[1]
            p, order = logits.softmax(-1).sort(descending=True)
            # Keeps the smallest set of tokens whose probabilities reach top_p.
            p[p.cumsum(0) - p > args.top_p] = 0
            token = int(order[torch.multinomial(p, 1, generator=gen)])
            if token == 0:
                break
            out.append(token)
            ids = torch.tensor([[token]])
    return out


def config_of(path: str):
    import gguf
    from model import Config
    fields = gguf.GGUFReader(path).fields

    def get(key: str):
        return fields[key].contents()

    return Config(vocab_size=get("llama.vocab_size"), dim=get("llama.embedding_length"),
                  n_layers=get("llama.block_count"), n_heads=get("llama.attention.head_count"),
                  n_kv_heads=get("llama.attention.head_count_kv"), head_dim=get("llama.rope.dimension_count"),
                  ffn_dim=get("llama.feed_forward_length"), context=get("llama.context_length"),
                  rope_theta=get("llama.rope.freq_base"), norm_eps=get("llama.attention.layer_norm_rms_epsilon"))


def gguf_decoder(path: str):
    """Returns a function from ids to text that needs only the file: it undoes GPT-2's spelling of bytes."""
    import gguf
    tokens = gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"].contents()
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    byte_of = {chr(b): b for b in plain}
    byte_of.update({chr(0x100 + i): b for i, b in enumerate(b for b in range(256) if b not in plain)})
    return lambda ids: bytes(byte_of[c] for i in ids for c in tokens[i]).decode("utf-8", "replace")


def command_stories(args):
    for seed in range(1, args.n + 1):
        done = subprocess.run(shlex.split(args.command) + ["--seed", str(seed)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"the command failed with {done.returncode}: {done.stderr.strip()[:500]}")
        yield done.stdout


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--gguf", default="models/tessera-stories.gguf")
    ap.add_argument("--checkpoint", help="a checkpoint of train.py instead of the GGUF")
    ap.add_argument("--tokenizer", help="tokenizer.json (default: the tokens of the GGUF)")
    ap.add_argument("--command", help="a command that prints one story")
    ap.add_argument("--n", type=int, default=100)
    ap.add_argument("--tokens", type=int, default=480)
    ap.add_argument("--temperature", type=float, default=0.8)
    ap.add_argument("--top-p", type=float, default=0.95)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--show", type=int, default=0, help="also print this many stories")
    args = ap.parse_args()

    kept = 0
    for i, text in enumerate(command_stories(args) if args.command else torch_stories(args), 1):
        good, why = judge(text)
        kept += good
        if i <= args.show or not good:
            print(f"--- seed {i}: {'kept' if good else 'NOT KEPT'} ({why})\n{text}", flush=True)
    print(f"names kept: {kept} of {args.n}")


if __name__ == "__main__":
    main()
