#!/usr/bin/env python3
"""ik_llama.cpp through ik_llama_cpp's low-level interface: measures (see worker.py). IK_LLAMA_CPP_LIB_PATH names another
libllama.so than the package's own, which is built for AVX2.

    ik_llama_worker.py --model FILE [--threads 2] [--as-it-lies]
"""
from __future__ import annotations

import argparse
import importlib.metadata
import time

import ik_llama_cpp._ctypes_api as ik

from worker import serve

PROMPT = 128  # tokens of each sequence before a batch is measured
ROOM = 64     # tokens that a sequence can grow after its prompt
UBATCH = 512


def bind(name: str, arguments: list, result):
    function = getattr(ik._lib, name)
    function.argtypes, function.restype = arguments, result
    return function


pointer, integer = ik.ctypes.c_void_p, ik.ctypes.c_int32
batch_init = bind("llama_batch_init", [integer, integer, integer], ik.llama_batch)
decode = bind("llama_decode", [pointer, ik.llama_batch], integer)
clear = bind("llama_kv_cache_clear", [pointer], None)
copy = bind("llama_kv_cache_seq_cp", [pointer, integer, integer, integer, integer], None)
remove = bind("llama_kv_cache_seq_rm", [pointer, integer, integer, integer], ik.ctypes.c_bool)
synchronize = bind("llama_synchronize", [pointer], None)
system_info = bind("llama_print_system_info", [], ik.ctypes.c_char_p)


class Context:
    def __init__(self, model, sequences: int, tokens: int, threads: int):
        params = ik.llama_context_default_params()
        params.n_ctx = sequences * tokens
        params.n_seq_max = sequences
        params.n_batch = 2048
        params.n_ubatch = UBATCH
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn = True
        self.pointer = ik.llama_init_from_model(model, params)
        if not self.pointer:
            raise RuntimeError("llama_init_from_model failed")
        self.batch = batch_init(2048, 0, 1)
        self.vocab = ik.llama_vocab_n_tokens(ik.llama_model_get_vocab(model))

    def run(self, rows: list[tuple[int, int]], wants_all: bool) -> None:
        batch = self.batch
        batch.n_tokens = len(rows)
        for i, (sequence, position) in enumerate(rows):
            batch.token[i] = (7919 * position + 31 * sequence + 1) % self.vocab
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = wants_all or i + 1 == len(rows)
        if (code := decode(self.pointer, batch)) != 0:
            raise RuntimeError(f"llama_decode: {code}")
        synchronize(self.pointer)


class Engine:
    def __init__(self, path: str, threads: int, repack: bool):
        ik.llama_backend_init()
        self.threads = threads
        params = ik.llama_model_default_params()
        params.repack_tensors = repack  # its own layout of weights, the fastest it has
        params.use_mmap = False
        self.model = ik.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            raise RuntimeError("llama_model_load_from_file failed")
        self.single = Context(self.model, 1, 4096, threads)
        self.many: dict[int, Context] = {}
        self.prefill(64)  # warm

    def prefill(self, n: int) -> float:
        clear(self.single.pointer)
        start = time.perf_counter()
        self.single.run([(0, i) for i in range(n)], wants_all=False)
        return n / (time.perf_counter() - start)

    def decode(self, steps: int) -> float:
        clear(self.single.pointer)
        self.single.run([(0, 0)], wants_all=True)
        start = time.perf_counter()
        for i in range(1, steps + 1):
            self.single.run([(0, i)], wants_all=True)
        return steps / (time.perf_counter() - start)

    def decode_batch(self, sequences: int, steps: int) -> float:
        if sequences not in self.many:
            context = self.many[sequences] = Context(self.model, sequences, PROMPT + ROOM, self.threads)
            context.run([(0, i) for i in range(PROMPT)], wants_all=False)
            for s in range(1, sequences):
                copy(context.pointer, 0, s, -1, -1)
        context = self.many[sequences]
        step = lambda i: context.run([(s, PROMPT + i) for s in range(sequences)], wants_all=True)
        step(0)
        start = time.perf_counter()
        for i in range(1, steps + 1):
            step(i)
        seconds = time.perf_counter() - start
        for s in range(sequences):
            remove(context.pointer, s, PROMPT, -1)
        return sequences * steps / seconds

    def measure(self, request: dict) -> float:
        if request["test"] == "prefill":
            return self.prefill(request["n"])
        if request["test"] == "decode":
            return self.decode(request["steps"])
        return self.decode_batch(request["n"], min(request["steps"], ROOM - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--as-it-lies", action="store_true",
                        help="no repacking of the weights, which makes BF16 of F16: a third of the mantissa is lost")
    args = parser.parse_args()

    def load():
        engine = Engine(args.model, args.threads, not args.as_it_lies)
        features = [part.split("=")[0].strip() for part in system_info().decode().split("|") if "= 1" in part]
        version = importlib.metadata.version("ik-llama-cpp-python")
        return {"version": f"ik-llama-cpp-python {version}", "features": features}, engine.measure

    serve(load)


if __name__ == "__main__":
    main()
