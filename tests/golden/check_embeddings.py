#!/usr/bin/env python3
"""Compares vectors of an embedder's folder with those of sentence-transformers, and the time that both take.

Needs: pip install sentence-transformers numpy

    check_embeddings.py --embed PATH/TO/tessera-embed --model FOLDER [--texts N] [--seed N] [--rounds N]

Half of the texts are made of words, the others of what breaks tokenizers: nothing, control characters, CJK, emoji, long texts. Exits with 1
if a number of a vector differs by more than 1e-5.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time

import numpy as np

WORDS = """the of and to in is that it was for on are as with his they at be this have from or one had by word but not what all were we when your
can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time has look
two more write go see number no way could people my than first water been call who oil its now find long down day did get come made may part house
cat dog river mountain tokenizer embedding Café naïve ERROR 404 GPU's don't""".split()
ODD = ["", " ", "\t", "\u0000\u0001\u0002", "\u200b\u200d", "日本語のテキスト", "中文字符測試", "한국어 문장", "😀👍🏽👩‍👩‍👧", "Ünïcödé ÀÉÎ", "a" * 300, "[CLS] [SEP] [MASK]", "##ing",
       "!!!???...", "1234567890" * 10, "x" * 99 + " " + "y" * 101, "\ufffd", "ﬁ ﬂ ½", "İstanbul", "e\u0301\u0301"]


def make_texts(count, seed):
    rng = random.Random(seed)
    texts = []
    for i in range(count):
        length = rng.choice([3, 8, 20, 60, 150, 400]) if i % 2 else rng.randint(1, 30)
        words = [rng.choice(WORDS) for _ in range(length)]
        if i % 4 == 0:
            words.insert(rng.randrange(len(words) + 1), rng.choice(ODD))
        if i % 8 == 0:
            words = [rng.choice(ODD)]
        texts.append(rng.choice([" ", "  ", ", ", "\n", ""]).join(words) if i % 16 else " ".join(words))
    return texts


def ours(options, texts, threads):
    """The program reads a text a line, so line breaks become spaces, which the tokenizer treats alike."""
    lines = "".join(text.replace("\n", " ").replace("\r", " ") + "\n" for text in texts)
    start = time.perf_counter()
    run = subprocess.run([options.embed, options.model, "--special", "-t", str(threads)], input=lines.encode(), capture_output=True, check=True)
    seconds = time.perf_counter() - start
    return np.array([json.loads(line)["embedding"] for line in run.stdout.decode().splitlines()], dtype=np.float32), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embed", required=True, help="path of tessera-embed")
    parser.add_argument("--model", required=True, help="the folder")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=0, help="rounds of timing")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import sentence_transformers
    import torch
    torch.set_num_threads(options.threads)
    model = sentence_transformers.SentenceTransformer(options.model, device="cpu")
    texts = [text.replace("\n", " ").replace("\r", " ") for text in make_texts(options.texts, options.seed)]
    expected = model.encode(texts, batch_size=1, show_progress_bar=False)  # alone: no padding changes the sums
    vectors, _ = ours(options, texts, options.threads)
    difference = np.abs(vectors - expected).max(axis=1)
    worst = int(difference.argmax())
    print(f"{len(texts)} texts: largest difference {difference[worst]:.2e} (text {worst}: {texts[worst][:60]!r}), {int((difference > 1e-5).sum())} above 1e-5")
    for _ in range(options.rounds):
        start = time.perf_counter()
        model.encode(texts, batch_size=32, show_progress_bar=False)
        theirs = time.perf_counter() - start
        print(f"sentence-transformers {theirs:.2f} s, tessera-embed with loading {ours(options, texts, options.threads)[1]:.2f} s")
    return bool((difference > 1e-5).any())


if __name__ == "__main__":
    sys.exit(main())
