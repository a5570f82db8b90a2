"""Measures tokens a second of the Python package, of one request and of 16 at once; also of llama-cpp-python and xllamacpp if installed.

    python bench/compare/python_speed.py model.gguf [--tokens 128] [--rounds 3] [--program build/release/bin/tessera-generate]

Each program runs in a process of its own, by turns. Prints the median of the rounds, the time of the import, and the memory at the end.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

PROMPT = "Once upon a time there was a small boat that"


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_tessera(model: str, tokens: int, threads: int) -> dict[str, float]:
    begun = time.perf_counter()
    import tessera

    imported = time.perf_counter() - begun
    engine = tessera.Engine(model, threads=threads, context=1024, progress=False)
    session = engine.session()
    session.append(PROMPT)
    next(iter(session.generate(max_tokens=2, ignore_eos=True)))
    session = engine.session()
    session.append(PROMPT)
    pieces = session.generate(max_tokens=tokens, ignore_eos=True)
    next(pieces)
    begun = time.perf_counter()  # starts after the first token, as tessera-generate counts
    count = sum(1 for _ in pieces)
    one = count / (time.perf_counter() - begun)
    with tessera.Scheduler(engine) as scheduler:
        begun = time.perf_counter()
        requests = [scheduler.submit(f"{PROMPT} {i}", max_tokens=tokens, ignore_eos=True) for i in range(16)]
        count = sum(len(sample.tokens) for request in requests for sample in request.result())
        many = count / (time.perf_counter() - begun)
    return {"import_s": imported, "one": one, "sixteen": many, "peak_mib": peak_mib()}


def run_llama(model: str, tokens: int, threads: int) -> dict[str, float]:
    begun = time.perf_counter()
    from llama_cpp import Llama

    imported = time.perf_counter() - begun
    llm = Llama(model, n_ctx=1024, n_threads=threads, n_threads_batch=threads, verbose=False)
    llm(PROMPT, max_tokens=2, temperature=0)

    def generate(prompt: str) -> int:
        llm.reset()
        count = 0
        for _ in llm.generate(llm.tokenize(prompt.encode()), temp=0.0):
            count += 1
            if count == tokens:
                break
        return count

    begun = time.perf_counter()
    one = generate(PROMPT) / (time.perf_counter() - begun)
    begun = time.perf_counter()  # llama-cpp-python serves no requests at once: one after the other
    many = sum(generate(f"{PROMPT} {i}") for i in range(16)) / (time.perf_counter() - begun)
    return {"import_s": imported, "one": one, "sixteen": many, "peak_mib": peak_mib()}


def run_xllamacpp(model: str, tokens: int, threads: int) -> dict[str, float]:
    begun = time.perf_counter()
    import xllamacpp

    imported = time.perf_counter() - begun

    def load(slots: int) -> xllamacpp.Server:
        params = xllamacpp.CommonParams()
        params.model.path = model
        params.n_ctx, params.n_parallel, params.n_gpu_layers = 1024 * slots, slots, 0
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        return xllamacpp.Server(params)

    def generate(server: xllamacpp.Server, prompt: str) -> dict[str, Any]:
        answer = server.handle_completions({"prompt": prompt, "n_predict": tokens, "temperature": 0.0, "ignore_eos": True, "cache_prompt": False})
        assert answer["timings"]["predicted_n"] == tokens, answer
        return answer

    server = load(1)
    generate(server, PROMPT)
    one = generate(server, PROMPT)["timings"]["predicted_per_second"]
    del server
    server = load(16)  # a slot for each request, as its continuous batching wants
    generate(server, PROMPT)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        begun = time.perf_counter()
        list(pool.map(lambda i: generate(server, f"{PROMPT} {i}"), range(16)))
        many = 16 * tokens / (time.perf_counter() - begun)
    return {"import_s": imported, "one": one, "sixteen": many, "peak_mib": peak_mib()}


def run_program(program: str, model: str, tokens: int, threads: int) -> dict[str, float]:
    command = [program, "-m", model, "-p", PROMPT, "-n", str(tokens), "--greedy", "--ignore-eos", "--draft", "none", "--json", "-t", str(threads)]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found = find(answer, "tokens_per_second")
    return {"one": found if found is not None else float("nan")}


def find(value: object, key: str) -> float | None:
    if isinstance(value, dict):
        if isinstance(value.get(key), int | float):
            return float(value[key])
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            found = find(item, key)
            if found is not None:
                return found
    return None


PACKAGES = {"tessera": run_tessera, "llama-cpp-python": run_llama, "xllamacpp": run_xllamacpp}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--program")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        print(json.dumps(PACKAGES[args.only](args.model, args.tokens, args.threads)))
        return
    results: dict[str, list[dict[str, float]]] = {}
    failures: dict[str, str] = {}
    for _ in range(args.rounds):
        for name in PACKAGES:
            command = [sys.executable, __file__, args.model, "--tokens", str(args.tokens), "--threads", str(args.threads), "--only", name]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                results.setdefault(name, []).append(json.loads(done.stdout))
            elif name == "tessera":
                sys.exit(done.stderr)
            else:
                failures[name] = (done.stderr.strip().splitlines() or ["no output"])[-1]
        if args.program:
            results.setdefault("program", []).append(run_program(args.program, args.model, args.tokens, args.threads))
    for name, rounds in results.items():
        figures = {key: round(statistics.median(one[key] for one in rounds), 3) for key in rounds[0]}
        print(name, figures)
    for name in PACKAGES.keys() - results.keys():
        print(f"{name} did not run: {failures[name]}")


if __name__ == "__main__":
    main()
