"""The common part of the engines' workers: a worker answers one measurement after another, so that engines can take turns.

A request is a JSON line on stdin: {"test": "prefill" | "decode" | "batch" | "depth", "n": tokens or sequences, "steps": ...}. The
answer is a JSON line on the original stdout: {"tokens_per_s": ...} or {"error": ...}. The first line that a worker writes says that the
model is loaded, and gives the engine's version. Output of the libraries goes to stderr.
"""
from __future__ import annotations

import json
import os
import sys
from typing import Callable


def serve(load: Callable[[], tuple[dict, Callable[[dict], float]]]) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(value: dict) -> None:
        answers.write(json.dumps(value) + "\n")

    try:
        about, measure = load()
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}"})
        return
    answer(about)
    for line in sys.stdin:
        try:
            answer({"tokens_per_s": measure(json.loads(line))})
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})
