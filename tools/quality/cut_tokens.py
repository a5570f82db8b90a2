#!/usr/bin/env python3
"""Cuts a text into documents of --tokens tokens, for tessera-quality --caches.

    cut_tokens.py --generate build/release/bin/generate --model MODEL.gguf --text TEXT --tokens 8191 --documents 2 --out long.tokens

TEXT is read as UTF-8. If TEXT is a .jsonl file of prompts (shared/prompts), the turns are joined, one prompt after another.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generate", required=True, help="tessera's command line, for the model's tokenizer")
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True, type=pathlib.Path)
    parser.add_argument("--category", help="of a .jsonl file: prompts of this one only")
    parser.add_argument("--tokens", type=int, required=True, help="of a document")
    parser.add_argument("--documents", type=int, default=1)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    text = args.text.read_text(encoding="utf-8")
    if args.text.suffix == ".jsonl":
        prompts = [json.loads(line) for line in text.splitlines() if line]
        text = "\n\n".join("\n".join(p["turns"]) for p in prompts if args.category in (None, p.get("category")))
    command = [args.generate, "-m", args.model, "--tokenize", "--no-bos", "--no-special", "-f", "-"]
    ids = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True).stdout.decode().split()
    if len(ids) < args.tokens * args.documents:
        sys.exit(f"the text has {len(ids)} tokens, {args.tokens * args.documents} are asked for")
    with open(args.out, "w", encoding="ascii") as f:
        for i in range(args.documents):
            f.write(" ".join(ids[i * args.tokens : (i + 1) * args.tokens]) + "\n")


if __name__ == "__main__":
    main()
