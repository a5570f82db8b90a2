#!/usr/bin/env python3
"""Writes the text for measurements of quality: documents of the kind that the default model was trained on, but not used there.

    make_tokens.py --generate build/release/bin/generate --out tests/data/quality/stories.tokens

The documents are those of tools/train/make_text.py with another seed, mixed as in the training text, and encoded by
the default model's own tokenizer. Each document begins and ends with <|endoftext|> (0) and fits the model's context
of 512.
"""
from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/train"))
from make_text import document  # noqa: E402

CONTEXT = 512
END = 0


def encode(generate: str, model: str, text: str) -> list[int]:
    command = [generate, "-m", model, "--tokenize", "--no-bos", "--no-special", "-f", "-"]
    ids = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    return [END] + [int(word) for word in ids.split()] + [END]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generate", required=True, help="tessera's command line, for its tokenizer")
    parser.add_argument("--model", default=str(ROOT / "models/tessera-stories.gguf"))
    parser.add_argument("--seed", type=int, default=2, help="1 is the training text's")
    parser.add_argument("--tokens", type=int, default=10000, help="at least so many that have a token before them")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()

    lines, predicted, index = [], 0, 0
    while predicted < args.tokens:
        ids = encode(args.generate, args.model, document(args.seed, index)["text"])
        index += 1
        if len(ids) - 1 <= CONTEXT:  # the last token needs no position, because it is only predicted
            lines.append(" ".join(map(str, ids)))
            predicted += len(ids) - 1
    with open(args.out, "w", encoding="ascii") as f:
        f.write(f"# {len(lines)} documents of tools/train/make_text.py, seed {args.seed}, "
                "in tokens of the default model\n")
        f.write("\n".join(lines) + "\n")
    print(f"{len(lines)} documents of {index}, {predicted} tokens to foretell", file=sys.stderr)


if __name__ == "__main__":
    main()
