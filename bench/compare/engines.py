"""The engines that take turns: each measures all tests of a round when it is asked to."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Protocol

HERE = pathlib.Path(__file__).resolve().parent


class Tests:
    """What is measured: prompts, tokens decoded, after how many others too, sequences decoded together."""

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


class Engine(Protocol):
    name: str
    version: str

    def round(self, tests: Tests) -> dict[str, float]: ...
    def close(self) -> None: ...


class Worker:
    """A peer in a process of its own that keeps its model loaded (worker.py)."""

    def __init__(self, name: str, command: list[str], **variables: str):
        self.name = name
        self.unable: set[str] = set()  # tests that it said it cannot do
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=os.environ | variables)
        about = self.read()
        self.version, self.features = about["version"], about["features"]

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} died with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer and "version" not in answer and not hasattr(self, "version"):
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def round(self, tests: Tests) -> dict[str, float]:
        results = {}
        for name, request in tests.requests().items():
            if name in self.unable:
                continue
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = self.read()
            if "error" in answer:
                print(f"{self.name}: no {name}: {answer['error']}", file=sys.stderr)
                self.unable.add(name)
            else:
                results[name] = answer["tokens_per_s"]
        return results

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Tessera:
    """tessera-bench, started for each round."""

    def __init__(self, bench: str, model: str, mode: str, threads: int, isa: str):
        self.name = "tessera" if mode == "auto" else f"tessera {mode}"
        self.command = [bench, "-m", model, "--threads", str(threads), "--repeat", "1", "--json"]
        self.command += ["--read-buffer", "256"]  # MiB: its own limits are not what is asked here
        self.command += ["--numerics", mode] if mode != "auto" else []
        self.command += ["--force-isa", isa] if isa != "auto" else []
        self.version, self.isa = "", ""

    def run(self, arguments: list[str]) -> list[dict]:
        done = subprocess.run([*self.command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: {done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def round(self, tests: Tests) -> dict[str, float]:
        lists = [("-p", tests.prompts), ("--depth", tests.depths), ("-b", tests.sequences)]
        arguments = [part for option, values in lists if values for part in (option, ",".join(map(str, values)))]
        rows = self.run([*arguments, "-n", str(tests.steps)]) if arguments else []
        if tests.decoded:  # apart, since -n is also the steps of -b
            rows = [row for row in rows if row["test"] != "decode"] + self.run(["-n", str(tests.decoded)])
        results = {}
        for row in rows:
            name = {"prefill": f"prefill {row.get('rows')}", "depth": f"decode at {row.get('depth')}"}
            results[name.get(row["test"], f"decode {row.get('batch', 1)}")] = row["tokens_per_s"]
            self.isa = row.get("isa", self.isa)
        return {name: results[name] for name in tests.requests() if name in results}

    def close(self) -> None:
        pass
