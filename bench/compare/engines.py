"""The engines that take turns, each a process that keeps its model loaded."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile


class Tests:
    """The tests: prompts, decoding from an empty context, decoding at depths, and decoding many sequences together."""

    def __init__(self, prompts: list[int], decoded: int, depths: list[int], sequences: list[int], steps: int):
        self.prompts, self.decoded, self.depths = prompts, decoded, depths
        self.sequences, self.steps = sequences, steps

    def requests(self) -> dict[str, dict]:
        found = {f"prefill {n}": {"test": "prefill", "n": n} for n in self.prompts}
        if self.decoded:
            found["decode 1"] = {"test": "decode", "n": 1, "steps": self.decoded}
        found |= {f"decode at {n}": {"test": "depth", "n": n, "steps": self.steps} for n in self.depths}
        found |= {f"decode {n}": {"test": "batch", "n": n, "steps": self.steps} for n in self.sequences}
        return found


class Worker:
    """An engine in a process of its own, which answers one request after another (worker.py)."""

    def __init__(self, name: str, command: list[str], **variables: str):
        self.name = name
        self.unable: set[str] = set()  # tests that the engine has refused
        self.told = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.told, text=True,
                                        env=os.environ | variables)
        about = self.read()
        if "version" not in about:
            raise RuntimeError(f"{name}: {about.get('error', 'no version')}")
        self.version, self.features = about["version"], about["features"]

    def death(self) -> RuntimeError:
        status = self.process.wait()
        self.told.seek(0)
        last = self.told.read().strip().rpartition("\n")[2]
        return RuntimeError(f"{self.name} died with status {status}: {last}")

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise self.death()
        return json.loads(line)

    def measure(self, test: str, request: dict) -> dict | None:
        """Returns the engine's figures (tokens_per_s and others); None if it cannot run the test. RuntimeError: the process is gone."""
        if test in self.unable:
            return None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.death() from None
        answer = self.read()
        if "error" not in answer:
            return answer
        print(f"{self.name}: no {test}: {answer['error']}", file=sys.stderr)
        self.unable.add(test)
        return None

    def close(self) -> None:
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()


def tessera(bench: str, model: str, mode: str, threads: int, isa: str, tests: Tests) -> Worker:
    command = [bench, "-m", model, "--worker", "--threads", str(threads), "--repeat", "1"]
    command += ["--read-buffer", "256"]  # MiB, to measure the read bandwidth: each figure then has its share of the bandwidth
    command += ["--numerics", mode] if mode != "auto" else []
    command += ["--isa", isa] if isa != "auto" else []
    lists = [("-p", tests.prompts), ("--depth", tests.depths), ("-b", tests.sequences)]
    command += [part for option, values in lists if values for part in (option, ",".join(map(str, values)))]
    command += ["-n", str(max(tests.decoded, tests.steps))]
    return Worker("tessera" if mode == "auto" else f"tessera {mode}", command)
