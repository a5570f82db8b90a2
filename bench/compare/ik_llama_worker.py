#!/usr/bin/env python3
"""Measures ik_llama.cpp through ik_llama_cpp's low-level interface (see worker.py). IK_LLAMA_CPP_LIB_PATH names a libllama.so to use
instead of the package's own, which is built for AVX2.

    ik_llama_worker.py --model FILE [--threads 2] [--as-it-lies]
"""
from __future__ import annotations

import argparse
import importlib.metadata

import ik_llama_cpp._ctypes_api as ik

from ggml_engine import UBATCH, Engine, fill
from worker import serve

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
        fill(self.batch, rows, wants_all, self.vocab)
        if (code := decode(self.pointer, self.batch)) != 0:
            raise RuntimeError(f"llama_decode: {code}")
        synchronize(self.pointer)

    def clear(self) -> None:
        clear(self.pointer)

    def share(self, sequence: int) -> None:
        copy(self.pointer, 0, sequence, -1, -1)

    def cut(self, sequence: int, tokens: int) -> None:
        remove(self.pointer, sequence, tokens, -1)


class IkEngine(Engine):
    def __init__(self, path: str, threads: int, repack: bool):
        ik.llama_backend_init()
        self.threads = threads
        params = ik.llama_model_default_params()
        params.repack_tensors = repack  # repacked weights are the fastest layout of ik_llama.cpp
        params.use_mmap = False
        self.model = ik.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            raise RuntimeError("llama_model_load_from_file failed")
        super().__init__()

    def context(self, sequences: int, tokens: int) -> Context:
        return Context(self.model, sequences, tokens, self.threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--as-it-lies", action="store_true",
                        help="no repacking of the weights, which makes BF16 of F16: a third of the mantissa is lost")
    args = parser.parse_args()

    def load():
        engine = IkEngine(args.model, args.threads, not args.as_it_lies)
        features = [part.split("=")[0].strip() for part in system_info().decode().split("|") if "= 1" in part]
        version = importlib.metadata.version("ik-llama-cpp-python")
        return {"version": f"ik-llama-cpp-python {version}", "features": features}, engine.measure

    serve(load)


if __name__ == "__main__":
    main()
