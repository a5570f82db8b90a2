#!/usr/bin/env python3
"""Compares llama.cpp's predictions with tessera's in float32, through llama-cpp-python. Prints a JSON object like tessera-quality's.

    tessera-quality model.gguf stories.tokens --numerics reference --save model.logits
    llama_quality.py model.gguf stories.tokens --reference model.logits

To measure the loss by a smaller KV cache, compare with llama.cpp's own F32 cache:

    llama_quality.py model.gguf stories.tokens --save f32.logits
    llama_quality.py model.gguf stories.tokens --reference f32.logits --kv-dtype q8_0
"""
from __future__ import annotations

import argparse
import ctypes
import json
import struct
import sys

import llama_cpp as lc
import numpy as np

ROWS = 64  # rows compared at once: with a large vocabulary, 500 rows take a gigabyte of float64
HEADER = struct.Struct("<8sIIQQ")  # the layout of tools/quality/logits_file.hpp
KV_TYPES = {"f32": 0, "f16": 1, "q8_0": 8, "q4_0": 2}


def read_documents(path: str) -> list[list[int]]:
    with open(path, encoding="ascii") as f:
        return [[int(word) for word in line.split()] for line in f if line.strip() and not line.startswith("#")]


def tokens_hash(documents: list[list[int]]) -> int:
    value = 0xCBF29CE484222325
    for document in documents:
        for byte in np.array(document + [0xFFFFFFFF], "<u4").tobytes():
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def read_reference(path: str, documents: list[list[int]]) -> np.ndarray:  # [rows, vocab]
    with open(path, "rb") as f:
        magic, vocab, _, rows, tokens = HEADER.unpack(f.read(HEADER.size))
    if magic != b"TSLOGITS" or tokens != tokens_hash(documents) or rows != sum(len(d) - 1 for d in documents):
        sys.exit(f"{path}: not the logits of these tokens")
    return np.memmap(path, "<f4", "r", HEADER.size, (rows, vocab))


@lc.llama_log_callback
def log(level, text, _):
    if level == 4:  # errors
        sys.stderr.write(text.decode(errors="replace"))


class Model:
    def __init__(self, path: str, kv: str, threads: int, context: int = 512):
        lc.llama_log_set(log, ctypes.c_void_p(0))
        lc.llama_backend_init()
        self.model = lc.llama_model_load_from_file(path.encode(), lc.llama_model_default_params())
        if not self.model:
            sys.exit(f"{path}: llama.cpp does not load it")
        params = lc.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = context
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = KV_TYPES[kv]
        if kv != "f16":
            params.flash_attn_type = 0 if kv == "f32" else 1  # flash attention rounds F32 caches to F16: off; smaller types need it
        self.context = lc.llama_init_from_model(self.model, params)
        if not self.context:
            sys.exit("llama.cpp makes no context")
        self.vocab = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(self.model))
        self.batch = lc.llama_batch_init(context, 0, 1)

    def logits(self, tokens: list[int], chunk: int) -> np.ndarray:  # [tokens, vocab]
        lc.llama_memory_clear(lc.llama_get_memory(self.context), True)
        parts = []
        for start in range(0, len(tokens), chunk):
            part = tokens[start:start + chunk]
            self.batch.n_tokens = len(part)
            for i, token in enumerate(part):
                self.batch.token[i], self.batch.pos[i] = token, start + i
                self.batch.n_seq_id[i], self.batch.seq_id[i][0], self.batch.logits[i] = 1, 0, True
            if (code := lc.llama_decode(self.context, self.batch)) != 0:
                sys.exit(f"llama_decode: {code}")
            values = np.ctypeslib.as_array(lc.llama_get_logits(self.context), (len(part), self.vocab))
            parts.append(values.copy())
        return np.concatenate(parts)


def save(path: str, model: Model, documents: list[list[int]], chunk: int) -> None:
    with open(path, "wb") as f:
        f.write(HEADER.pack(b"TSLOGITS", model.vocab, 0, sum(len(d) - 1 for d in documents), tokens_hash(documents)))
        for document in documents:
            f.write(model.logits(document[:-1], chunk).astype("<f4").tobytes())


def log_probabilities(logits: np.ndarray) -> np.ndarray:
    x = logits.astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("tokens")
    parser.add_argument("--reference", help="logits that tessera-quality, float64_logits.py or this wrote")
    parser.add_argument("--save", help="write the logits instead of comparing")
    parser.add_argument("--kv-dtype", choices=KV_TYPES, default="f32")
    parser.add_argument("--chunk", type=int, default=512, help="tokens computed at once; 1 decodes")
    parser.add_argument("-t", "--threads", type=int, default=1, help="on a busy machine more are slower: they spin")
    args = parser.parse_args()

    documents = read_documents(args.tokens)
    model = Model(args.model, args.kv_dtype, args.threads)
    if args.save:
        save(args.save, model, documents, args.chunk)
        return
    if not args.reference:
        parser.error("--reference or --save is needed")
    reference = read_reference(args.reference, documents)
    kl, loss, reference_loss, same, first = [], 0.0, 0.0, 0, 0
    for document in documents:
        run = model.logits(document[:-1], args.chunk)
        for row in range(0, len(run), ROWS):
            part = run[row:row + ROWS]
            exact, following = reference[first:first + len(part)], np.array(document[row + 1:row + 1 + len(part)])
            first += len(part)
            p, q = log_probabilities(exact), log_probabilities(part)
            kl.append((np.exp(p) * (p - q)).sum(axis=1))
            reference_loss -= p[np.arange(len(part)), following].sum()
            loss -= q[np.arange(len(part)), following].sum()
            same += int((exact.argmax(axis=1) == part.argmax(axis=1)).sum())
    every = np.concatenate(kl)
    print(json.dumps({"engine": f"llama-cpp-python {lc.__version__}", "tokens": first, "mean_kl": every.mean(),
                      "max_kl": every.max(), "perplexity": np.exp(loss / first),
                      "reference_perplexity": np.exp(reference_loss / first), "same_first_choice": same / first}))


if __name__ == "__main__":
    main()
