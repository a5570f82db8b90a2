"""Runs app.py for real, and checks what a host relies on: check.py MODEL [NAME=ADAPTER]

Answers are those of an engine of its own; prompts that begin alike reach one replica; a client that leaves ends its request; a replica that is
killed is replaced, and loses only the answers that it was writing.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request

import ray
from ray import serve

import app
import tessera

URL = "http://127.0.0.1:8000/v1/completions"


def ask(prompt: str, **more: object) -> dict:
    request = urllib.request.Request(URL, json.dumps({"prompt": prompt, "max_tokens": 24, "seed": 7, "ignore_eos": True, **more}).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def replicas() -> dict[int, dict]:
    """Returns the figures of each replica that answers, by the number of its process."""
    handle = serve.get_deployment_handle("Model", "default")
    asked = [handle.figures.remote() for _ in range(40)]
    found = {}
    for one in asked:
        try:
            figures = one.result(timeout_s=10)
            found[figures["pid"]] = figures
        except Exception:  # the replica is gone
            pass
    return found


def main() -> None:
    model, adapters = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    engine = tessera.Engine(model, threads=1, progress=False)
    scheduler = tessera.Scheduler(engine)

    def alone(prompt: str, **options: object) -> str:
        return "".join(piece.text for piece in scheduler.submit(prompt, sampler=tessera.Sampler(temperature=1.0, seed=7), max_tokens=24, ignore_eos=True, **options))

    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    serve.run(app.build(app.Settings(model=model, replicas=2, threads=1, kv_budget=64 << 20, adapters=adapters)))
    try:
        prompts = [f"Story {i}: Once upon a time there was a little girl who had {i} red balls, and a dog. " * 3 for i in range(16)]
        expected = [alone(prompt) for prompt in prompts]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(ask, prompts))
        assert [answer["choices"][0]["text"] for answer in answers] == expected
        again = [ask(prompt)["usage"]["cached_tokens"] for prompt in prompts]
        found = sum(tokens >= 32 for tokens in again)  # perhaps not all: the router passes over a replica that reports its load late
        assert found >= 12, again
        print(f"16 answers are an engine's own; asked again, {found} prompts find their pages")

        for name in [each.split("=", 1)[0] for each in adapters.split(",") if each]:
            path = dict(each.split("=", 1) for each in adapters.split(","))[name]
            with_it = alone(prompts[0], adapters=[engine.adapter(path)])
            assert ask(prompts[0], model=name)["choices"][0]["text"] == with_it != expected[0]
            print(f"the adapter {name} writes what it writes alone")

        for wrong in ({"max_tokens": "x"}, {"prompt": "word " * 20000}):
            try:
                ask(**{"prompt": "x", **wrong})
                raise AssertionError(f"{wrong} was accepted")
            except urllib.error.HTTPError as error:
                assert error.code == 400, error.code
        print("wrong requests are 400")

        leaving = urllib.request.Request(URL, json.dumps({"prompt": "A long story.", "max_tokens": 400, "ignore_eos": True, "stream": True}).encode())
        streams = [urllib.request.urlopen(leaving, timeout=60) for _ in range(8)]
        for stream in streams:
            assert stream.readline().startswith(b"data: ")
            stream.close()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            seen = replicas()
            if sum(each["running"] + each["waiting"] for each in seen.values()) == 0:
                break
        cancelled = sum(each["cancelled"] for each in seen.values())
        assert sum(each["running"] + each["waiting"] for each in seen.values()) == 0, seen
        print(f"8 clients left, {cancelled} requests were cancelled before their end, none runs on")

        victims = list(replicas())
        assert len(victims) == 2, victims
        outcomes = {"right": 0, "wrong": 0, "failed": 0}

        def try_one(i: int) -> None:
            if i == 20:
                os.kill(victims[0], signal.SIGKILL)
            try:
                text = ask(prompts[i % 16])["choices"][0]["text"]
                outcomes["right" if text == expected[i % 16] else "wrong"] += 1
            except (urllib.error.URLError, ConnectionError):
                outcomes["failed"] += 1

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(try_one, range(100)))
        assert outcomes["wrong"] == 0 and outcomes["right"] >= 80, outcomes
        began = time.monotonic()
        while len(set(replicas()) - {victims[0]}) < 2 and time.monotonic() - began < 90:
            time.sleep(0.5)
        assert len(set(replicas()) - {victims[0]}) == 2
        assert [ask(prompt)["choices"][0]["text"] for prompt in prompts] == expected
        print(f"a replica was killed among 100 requests: {outcomes}; its successor answers")
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
