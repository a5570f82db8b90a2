#!/usr/bin/env python3
"""Compares the cost of one adapter in llama.cpp and in tessera: the ratio of tokens a second with it and without.

    llama_cpp.py MODEL.gguf --generate build/release/bin/generate [--rank 16] [--rounds 7] [--tokens 48]

Makes a random adapter for all matrices of the layers (F16). Then llama.cpp without and with the adapter, and tessera without and with
it, write the same number of tokens after the same prompt, by turns. Both use one thread. The script measures the processor's time,
which other programs on the machine disturb least, and prints medians of the rates and of the ratios. Needs xllamacpp (llama.cpp for
Python), gguf and numpy.
"""
from __future__ import annotations

import argparse
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

import gguf
import numpy as np
import xllamacpp

PROMPT = "Once upon a time there was a lighthouse by the sea, and in it lived a woman who could not sleep."


def write_adapter(path: pathlib.Path, base: pathlib.Path, rank: int) -> None:
    reader = gguf.GGUFReader(base)
    architecture = reader.fields["general.architecture"].contents()
    out = gguf.GGUFWriter(path, architecture)
    out.add_type("adapter")
    out.add_string("adapter.type", "lora")
    out.add_float32("adapter.lora.alpha", float(rank))
    random = np.random.default_rng(1)
    for tensor in reader.tensors:
        if not tensor.name.startswith("blk.") or len(tensor.shape) != 2 or "norm" in tensor.name:
            continue
        inputs, outputs = (int(n) for n in tensor.shape)
        for part, shape in (("lora_a", (rank, inputs)), ("lora_b", (outputs, rank))):
            out.add_tensor(f"{tensor.name}.{part}", (0.01 * random.uniform(-1, 1, shape)).astype(np.float16))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


class LlamaCpp:
    def __init__(self, args: argparse.Namespace, adapter: pathlib.Path):
        params = xllamacpp.CommonParams()
        params.model.path = str(args.model)
        params.n_ctx, params.n_parallel, params.n_gpu_layers = 1024, 1, 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.warmup = False
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(adapter), 1.0)]
        self.server = xllamacpp.Server(params)

    def seconds(self, tokens: int, with_adapter: bool) -> float:
        start = time.process_time()
        self.server.handle_completions({"prompt": PROMPT, "n_predict": tokens, "temperature": 0.0, "ignore_eos": True, "cache_prompt": False,
                                        "lora": [{"id": 0, "scale": float(with_adapter)}]})
        return time.process_time() - start


class Tessera:
    def __init__(self, args: argparse.Namespace, adapter: pathlib.Path):
        self.command = [str(args.generate), "-m", str(args.model), "-p", PROMPT, "--greedy", "--ignore-eos",
                        "--threads", "1"]
        self.adapter = ["--lora", str(adapter)]

    def seconds(self, tokens: int, with_adapter: bool) -> float:
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(self.command + ["-n", str(tokens)] + (self.adapter if with_adapter else []), check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime - start.ru_utime


def rate(engine: LlamaCpp | Tessera, tokens: int, with_adapter: bool) -> float:
    """Returns tokens a second of the processor's time. A short text's time is subtracted, so prompt and loading do not count."""
    return tokens / (engine.seconds(tokens + 8, with_adapter) - engine.seconds(8, with_adapter))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--generate", type=pathlib.Path, required=True)
    for option, default in (("--rank", 16), ("--rounds", 7), ("--tokens", 48)):
        parser.add_argument(option, type=int, default=default)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        adapter = pathlib.Path(folder) / "adapter.gguf"
        write_adapter(adapter, args.model, args.rank)
        engines = {"llama.cpp": LlamaCpp(args, adapter), "tessera": Tessera(args, adapter)}
        found = {name: [] for name in engines}
        for _ in range(args.rounds):
            for name, engine in engines.items():
                found[name].append((rate(engine, args.tokens, False), rate(engine, args.tokens, True)))
                print(f"{name:10} {found[name][-1][0]:8.2f} {found[name][-1][1]:8.2f}", flush=True)
        for name, pairs in found.items():
            without, with_it = (statistics.median(pair[i] for pair in pairs) for i in (0, 1))
            ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
            print(f"{name:10} {without:8.2f} {with_it:8.2f} tokens/s, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
