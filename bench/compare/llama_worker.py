#!/usr/bin/env python3
"""Measures llama.cpp through llama-cpp-python's low-level interface (see worker.py), or quantises a file.

    llama_worker.py --model FILE [--threads 2]
    llama_worker.py --model F16-FILE --quantise Q4_K_M --out FILE
    llama_worker.py --model FILE --try-prefill       exits with 0 if the build computes a prompt without a crash
"""
from __future__ import annotations

import argparse
import ctypes
import sys

import llama_cpp as lc

from ggml_engine import UBATCH, Engine, fill
from worker import serve

FILE_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q4_K_M": 15, "Q5_K_M": 17,
              "Q6_K": 18, "BF16": 32}


@lc.llama_log_callback
def log(level, text, _):
    if level >= 3 and level != 5:  # warnings and errors; level 5 continues a line
        sys.stderr.write(text.decode(errors="replace"))


class Context:
    """A context of `sequences` sequences with `tokens` positions each."""

    def __init__(self, model, sequences: int, tokens: int, threads: int):
        params = lc.llama_context_default_params()
        params.n_ctx = sequences * tokens
        params.n_seq_max = sequences
        params.n_batch = 2048
        params.n_ubatch = UBATCH
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = False  # a row reads only its own sequence's keys: the faster of the two settings
        self.pointer = lc.llama_init_from_model(model, params)
        if not self.pointer:
            raise RuntimeError("llama_init_from_model failed")
        self.memory = lc.llama_get_memory(self.pointer)
        self.batch = lc.llama_batch_init(2048, 0, 1)
        self.vocab = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(model))

    def run(self, rows: list[tuple[int, int]], wants_all: bool) -> None:
        fill(self.batch, rows, wants_all, self.vocab)
        if (code := lc.llama_decode(self.pointer, self.batch)) != 0:
            raise RuntimeError(f"llama_decode: {code}")
        lc.llama_synchronize(self.pointer)

    def clear(self) -> None:
        lc.llama_memory_clear(self.memory, False)

    def share(self, sequence: int) -> None:
        lc.llama_memory_seq_cp(self.memory, 0, sequence, -1, -1)

    def cut(self, sequence: int, tokens: int) -> None:
        lc.llama_memory_seq_rm(self.memory, sequence, tokens, -1)


class LlamaEngine(Engine):
    def __init__(self, path: str, threads: int):
        lc.llama_log_set(log, ctypes.c_void_p(0))
        lc.llama_backend_init()
        self.threads = threads
        self.model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
        if not self.model:
            raise RuntimeError("llama_model_load_from_file failed")
        super().__init__()

    def context(self, sequences: int, tokens: int) -> Context:
        return Context(self.model, sequences, tokens, self.threads)


def quantise(source: str, file_type: str, out: str) -> None:
    params = lc.llama_model_quantize_default_params()
    params.ftype = FILE_TYPES[file_type]
    if lc.llama_model_quantize(source.encode(), out.encode(), ctypes.byref(params)) != 0:
        sys.exit(f"llama.cpp cannot write {file_type}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quantise", choices=FILE_TYPES)
    parser.add_argument("--out")
    parser.add_argument("--try-prefill", action="store_true")
    args = parser.parse_args()

    def load():
        engine = LlamaEngine(args.model, args.threads)
        system = lc.llama_print_system_info().decode()
        features = [part.split("=")[0].strip() for part in system.replace("CPU :", "").split("|") if "= 1" in part]
        return {"version": f"llama-cpp-python {lc.__version__}", "features": features}, engine.measure

    if args.quantise:
        quantise(args.model, args.quantise, args.out)
    elif args.try_prefill:
        LlamaEngine(args.model, args.threads).prefill(512)
    else:
        serve(load)


if __name__ == "__main__":
    main()
