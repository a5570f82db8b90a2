#!/usr/bin/env python3
"""Measures PyTorch on the CPU, eager (see worker.py): torch_worker.py --shape llama-1b --dtype BF16."""
from __future__ import annotations

import argparse
import time

import torch

from shapes import SHAPES
from torch_llama import Llama
from worker import serve

PROMPT, ROOM = 128, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="llama-1b")
    parser.add_argument("--dtype", choices=("BF16", "F16", "F32"), default="BF16")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    shape = SHAPES[args.shape]

    def load():
        dtype = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}[args.dtype]
        model = Llama(shape, dtype)

        def run(sequences: int, tokens: int, start: int) -> float:
            ids = torch.randint(shape.vocab, (sequences, tokens))
            begin = time.perf_counter()
            model.forward(ids, start)
            return time.perf_counter() - begin

        def measure(request: dict) -> float:
            if request["test"] == "prefill":
                return request["n"] / run(1, request["n"], 0)
            if request["test"] == "decode":
                return request["steps"] / sum(run(1, 1, 1 + i) for i in range(request["steps"]))
            if request["test"] != "batch":
                raise NotImplementedError("prefill, decode and batch only")
            sequences, steps = request["n"], min(request["steps"], ROOM - 1)
            if model.keys[0].shape[0] < sequences:  # the time does not depend on the contents of the KV cache
                model.reserve(sequences, 4096)
            run(sequences, 1, PROMPT)
            return sequences * steps / sum(run(sequences, 1, PROMPT + 1 + i) for i in range(steps))

        run(1, 64, 0)
        return {"version": f"torch {torch.__version__}", "features": [torch.backends.cpu.get_cpu_capability()]}, measure

    with torch.inference_mode():
        serve(load)


if __name__ == "__main__":
    main()
