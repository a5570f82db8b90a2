"""The measurements of the workers of llama.cpp and ik_llama.cpp. Each worker makes the context through its own interface."""
from __future__ import annotations

import time
from typing import Protocol

PROMPT = 128  # tokens of each sequence before a batch is measured
ROOM = 64     # tokens that a sequence can grow after its prompt
UBATCH = 512  # default of llama.cpp and ik_llama.cpp


class Context(Protocol):
    """A context of some sequences, each with a number of positions."""

    def run(self, rows: list[tuple[int, int]], wants_all: bool) -> None:
        """Computes rows of (sequence, position), with logits of all rows or only of the last row."""

    def clear(self) -> None: ...
    def share(self, sequence: int) -> None:
        """Copies the first sequence's tokens to `sequence`."""
    def cut(self, sequence: int, tokens: int) -> None: ...


class Engine:
    """The tests of an engine. The subclass loads the model before it calls __init__."""

    def __init__(self):
        self.single = self.context(1, 4096)
        self.many: dict[int, Context] = {}
        self.deep: dict[int, Context] = {}
        self.prefill(64)  # warms up: the file's pages, the threads

    def context(self, sequences: int, tokens: int) -> Context:
        raise NotImplementedError

    def prefill(self, n: int) -> float:
        self.single.clear()
        start = time.perf_counter()
        self.single.run([(0, i) for i in range(n)], wants_all=False)
        return n / (time.perf_counter() - start)

    def decode(self, steps: int) -> float:
        self.single.clear()
        self.single.run([(0, 0)], wants_all=True)
        start = time.perf_counter()
        for i in range(1, steps + 1):
            self.single.run([(0, i)], wants_all=True)
        return steps / (time.perf_counter() - start)

    def decode_batch(self, sequences: int, steps: int) -> float:
        if sequences not in self.many:
            context = self.many[sequences] = self.context(sequences, PROMPT + ROOM)
            context.run([(0, i) for i in range(PROMPT)], wants_all=False)
            for s in range(1, sequences):
                context.share(s)
        context = self.many[sequences]
        step = lambda i: context.run([(s, PROMPT + i) for s in range(sequences)], wants_all=True)
        step(0)
        start = time.perf_counter()
        for i in range(1, steps + 1):
            step(i)
        seconds = time.perf_counter() - start
        for s in range(sequences):
            context.cut(s, PROMPT)
        return sequences * steps / seconds

    def decode_at(self, depth: int, steps: int) -> float:
        """Returns tokens a second of decoding one sequence that has `depth` tokens already."""
        if depth not in self.deep:
            context = self.deep[depth] = self.context(1, depth + ROOM)
            for start in range(0, depth, UBATCH):
                context.run([(0, i) for i in range(start, min(depth, start + UBATCH))], wants_all=False)
        context = self.deep[depth]
        context.run([(0, depth)], wants_all=True)
        start = time.perf_counter()
        for i in range(1, steps + 1):
            context.run([(0, depth + i)], wants_all=True)
        seconds = time.perf_counter() - start
        context.cut(0, depth)
        return steps / seconds

    def measure(self, request: dict) -> float:
        if request["test"] == "prefill":
            return self.prefill(request["n"])
        if request["test"] == "decode":
            return self.decode(request["steps"])
        if request["test"] == "depth":
            return self.decode_at(request["n"], min(request["steps"], ROOM - 1))
        return self.decode_batch(request["n"], min(request["steps"], ROOM - 1))


def fill(batch, rows: list[tuple[int, int]], wants_all: bool, vocab: int) -> None:
    """Fills a llama_batch with made-up tokens."""
    batch.n_tokens = len(rows)
    for i, (sequence, position) in enumerate(rows):
        batch.token[i] = (7919 * position + 31 * sequence + 1) % vocab
        batch.pos[i] = position
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = sequence
        batch.logits[i] = wants_all or i + 1 == len(rows)
