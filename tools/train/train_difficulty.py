#!/usr/bin/env python3
"""Trains the gateway's classifier, which says how difficult a question is: examples/gateway/difficulty.json.

    train_difficulty.py --embed build/release/bin/tessera-embed --model ~/.cache/tessera-models/all-MiniLM-L6-v2

The questions are made here from patterns. Easy ones ask for a fact, a definition, a word or small talk; difficult ones ask to compute
in steps, to prove, to write or mend code, to compare, to plan. tessera-embed turns the questions into vectors, and gradient descent
trains a logistic regression on them. A fifth of the patterns is held out: the script prints the share of their questions that the
classifier gets right. The same seed gives the same file. --questions FILE adds lines "easy<TAB>text" and "difficult<TAB>text" of your own.
"""
from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys

THINGS = ["a cat", "the sun", "a bicycle", "bread", "a volcano", "a violin", "the moon", "coffee", "a bank", "rain", "an island", "a magnet"]
PLACES = ["France", "Japan", "Brazil", "Kenya", "Canada", "Norway", "India", "Peru", "Spain", "Egypt"]
WORDS = ["house", "friend", "water", "green", "Monday", "thank you", "apple", "slowly"]
TOPICS = ["solar and wind power", "renting and buying a flat", "SQL and document databases", "remote and office work", "trains and planes",
          "mutexes and channels", "inflation and growth", "vaccines and antibiotics"]
CODE = ["a Python function that merges two sorted lists", "an SQL query for the top three customers of each month", "a C++ class for a ring buffer",
        "a regular expression for ISO dates", "a shell script that rotates logs", "a JavaScript debounce function", "a Rust parser for CSV", "a binary search tree in Go"]
CLAIMS = ["the square root of 2 is irrational", "there are infinitely many primes", "the sum of two odd numbers is even", "a tree with n nodes has n - 1 edges",
          "the harmonic series diverges", "every finite group of prime order is cyclic"]
NUMBERS = ["3", "7", "12", "25", "48", "150"]

EASY = [
    ("What is {}?", THINGS), ("What colour is {}?", THINGS), ("Tell me in one sentence what {} is.", THINGS), ("What is the capital of {}?", PLACES),
    ("Which language is spoken in {}?", PLACES), ("On which continent is {}?", PLACES), ("What is the currency of {}?", PLACES),
    ("How do you say '{}' in French?", WORDS), ("What is the opposite of '{}'?", WORDS), ("Spell the word '{}'.", WORDS), ("Give me a synonym for '{}'.", WORDS),
    ("How many days are in {} weeks?", NUMBERS), ("What is {} plus one?", NUMBERS), ("Is {} a number?", NUMBERS),
    ("{}", ["Hello!", "Hi there.", "Thanks a lot!", "Good morning.", "How are you?", "What is your name?", "Bye!", "Can you help me?"]),
    ("What time does {} close?", ["the shop", "the library", "the museum", "the office"]), ("Who wrote {}?", ["Hamlet", "Faust", "Emma", "Ulysses", "Dracula"]),
    ("Is {} heavy?", THINGS), ("Name a city in {}.", PLACES), ("When do people need {}?", THINGS),
]
DIFFICULT = [
    ("Prove that {}.", CLAIMS), ("Explain step by step why {}.", CLAIMS), ("Find the mistake in a proof that {}.", CLAIMS), ("Write {}, with tests.", CODE),
    ("Write {} and analyse how long it takes.", CODE), ("This does not work: {}. Find the bug and explain it.", CODE), ("Refactor {} so that it runs in parallel.", CODE),
    ("Compare {} in detail, with three arguments for each.", TOPICS), ("Which trade-offs decide between {}? Argue both sides.", TOPICS),
    ("Write an essay about {} with sources.", TOPICS), ("Make a plan of five steps to decide between {}.", TOPICS),
    ("A train leaves at 9:40 and travels {} km at 80 km/h, then stops twice. When does it arrive? Show all steps.", NUMBERS),
    ("If {} workers need 6 days, how long do 9 workers need, and what does it cost at 21 an hour? Derive the formula.", NUMBERS),
    ("Solve the system x + y = {}, x * y = 20 and discuss all cases.", NUMBERS), ("Compute the probability of at least {} heads in 200 throws, and explain the approximation.", NUMBERS),
    ("Design a database schema for a company in {} with invoices, taxes and audits.", PLACES), ("Analyse how the economy of {} changed in the last fifty years, and why.", PLACES),
    ("Plan a journey of two weeks through {} for a family with a budget, day by day.", PLACES), ("Derive the physics behind {} from first principles.", THINGS),
    ("Critically evaluate three theories about {} and say which evidence would refute each.", THINGS),
]


def questions(seed: int) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Returns two lists of (question, label): for training, and from held-out patterns. The label is
    1 for difficult, 0 for easy."""
    rng = random.Random(seed)
    train, test = [], []
    for patterns, label in ((EASY, 0), (DIFFICULT, 1)):
        held = set(rng.sample(range(len(patterns)), len(patterns) // 5))
        for i, (pattern, values) in enumerate(patterns):
            (test if i in held else train).extend((pattern.format(value), label) for value in values)
    rng.shuffle(train)
    return train, test


def vectors(program: str, model: str, texts: list[str]) -> list[list[float]]:
    lines = subprocess.run([program, model], input="\n".join(texts) + "\n", capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line)["embedding"] for line in lines]


def chance(weights: list[float], bias: float, vector: list[float]) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, bias + sum(w * x for w, x in zip(weights, vector))))))


def fit(rows: list[list[float]], labels: list[int], rounds: int, rate: float, decay: float) -> tuple[list[float], float]:
    weights, bias = [0.0] * len(rows[0]), 0.0
    for _ in range(rounds):
        for vector, label in zip(rows, labels):
            error = chance(weights, bias, vector) - label
            bias -= rate * error
            weights = [w - rate * (error * x + decay * w) for w, x in zip(weights, vector)]
    return weights, bias


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--embed", required=True, help="path of tessera-embed")
    parser.add_argument("--model", required=True, help="the encoder that the gateway will use")
    parser.add_argument("--out", default="examples/gateway/difficulty.json")
    parser.add_argument("--questions", help="a file of further questions")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    train, test = questions(options.seed)
    if options.questions:
        with open(options.questions, encoding="utf-8") as file:
            for line in file:
                kind, _, text = line.rstrip("\n").partition("\t")
                if kind not in ("easy", "difficult") or not text:
                    sys.exit(f"{options.questions}: not 'easy<TAB>text' or 'difficult<TAB>text': {line!r}")
                train.append((text, int(kind == "difficult")))
    all_vectors = vectors(options.embed, options.model, [text for text, _ in train + test])
    rows, held = all_vectors[: len(train)], all_vectors[len(train) :]
    weights, bias = fit(rows, [label for _, label in train], options.rounds, 0.3, 1e-4)
    for name, some, with_labels in (("trained", rows, train), ("held out", held, test)):
        right = sum((chance(weights, bias, v) >= 0.5) == bool(label) for v, (_, label) in zip(some, with_labels))
        print(f"{name}: {right} of {len(some)} right")
    with open(options.out, "w", encoding="utf-8") as file:
        numbers = ", ".join(f"{w:.4f}" for w in weights)
        file.write(f'{{"embedder": "all-MiniLM-L6-v2", "threshold": 0.5, "bias": {bias:.4f},\n "weights": [{numbers}]}}\n')
    return 0


if __name__ == "__main__":
    sys.exit(main())
