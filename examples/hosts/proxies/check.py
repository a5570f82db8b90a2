"""Runs nginx and Envoy with the files of this folder in front of three servers: check.py FOLDER_OF_PROGRAMS [nginx=PATH] [envoy=PATH]

Checks that streams come unbuffered, that a full server (429) and one that ends (503) are passed over, and that a server that is killed costs only
the answers that it was writing. Every answer is compared with a server's own.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROMPTS = [f"Story {i}: Once upon a time" for i in range(16)]


def free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


class Server:
    def __init__(self, program: str, *options: str) -> None:
        self.process = subprocess.Popen([program, "--port", "0", "--no-log", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1].strip(" /\n"))

    def stop(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)


def ask(port: int, prompt: str, tokens: int = 24) -> tuple[int, str]:
    """Sends a request. Returns the status and the text; status 0: the connection broke."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"prompt": prompt, "max_tokens": tokens, "temperature": 1, "seed": 7, "ignore_eos": True})
    try:
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json", "X-Conversation": prompt})
        response = connection.getresponse()
        data = response.read()
    except (OSError, http.client.HTTPException):
        return 0, ""
    return response.status, json.loads(data)["choices"][0]["text"] if response.status == 200 else data.decode(errors="replace")


def check_stream(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"prompt": "A long story.", "max_tokens": 400, "ignore_eos": True, "stream": True})
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    times = []
    while line := response.readline():
        if line.startswith(b"data: "):
            times.append(time.monotonic())
    spread, pieces = times[-1] - times[0], len(times)
    late = sum(time - times[0] > spread / 2 for time in times) / pieces
    assert pieces > 300 and 0.2 < late < 0.8, (pieces, late)
    print(f"  a stream came in {pieces} pieces over {spread:.2f} s, {late:.0%} of them in its second half")


def check(name: str, command: list[str], config: str, program: str) -> None:
    print(name)
    servers = [Server(program) for _ in range(3)]
    port = free_port()
    text = (HERE / config).read_text().replace("8080", str(port))
    for i, server in enumerate(servers):
        text = text.replace(f"808{i + 1}", str(server.port))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / config
        path.write_text(text.replace("/tmp/tessera-nginx.pid", f"{folder}/nginx.pid"))
        proxy = subprocess.Popen([*command, str(path)], stdout=subprocess.DEVNULL, stderr=open(f"{folder}/log", "w"))
        try:
            for _ in range(200):
                if ask(port, "x", 1)[0] == 200:
                    break
                time.sleep(0.05)
            else:
                raise AssertionError(Path(f"{folder}/log").read_text()[-2000:])
            expected = {prompt: ask(servers[0].port, prompt)[1] for prompt in PROMPTS}
            with concurrent.futures.ThreadPoolExecutor(32) as pool:

                def many(n: int, at: dict[int, tuple[Server, int]] = {}) -> dict[str, int]:
                    outcomes = {"right": 0, "wrong": 0, "broken": 0, "refused": 0}

                    def one(i: int) -> None:
                        if i in at:
                            at[i][0].stop(at[i][1])
                        status, answer = ask(port, PROMPTS[i % 16])
                        right = status == 200 and answer == expected[PROMPTS[i % 16]]
                        outcomes["right" if right else "wrong" if status == 200 else "broken" if status in (0, 502) else "refused"] += 1

                    list(pool.map(one, range(n)))
                    return outcomes

                assert many(200)["right"] == 200
                print("  200 answers of 32 clients are a server's own")
                check_stream(port)
                ending = servers[0]
                outcomes = many(300, {100: (ending, signal.SIGTERM)})
                assert outcomes["right"] == 300, outcomes
                assert ending.process.wait(30) == 0
                print("  a server was told to end among 300 requests: all 300 are right")
                outcomes = many(300, {100: (servers[1], signal.SIGKILL)})
                assert outcomes["wrong"] == outcomes["refused"] == 0 and outcomes["broken"] <= 32, outcomes
                print(f"  a server was killed among 300 requests: {outcomes}")
                assert many(100)["right"] == 100
        finally:
            proxy.terminate()
            proxy.wait(10)
            for server in servers:
                server.stop()
                server.process.wait()


def check_full(name: str, command: list[str], config: str, program: str) -> None:
    """Checks that requests are answered while one of three servers refuses everything with 429."""
    servers = [Server(program, "--max-waiting", "1", "--max-running", "1"), Server(program), Server(program)]
    port = free_port()
    text = (HERE / config).read_text().replace("8080", str(port))
    for i, server in enumerate(servers):
        text = text.replace(f"808{i + 1}", str(server.port))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / config
        path.write_text(text.replace("/tmp/tessera-nginx.pid", f"{folder}/nginx.pid"))
        proxy = subprocess.Popen([*command, str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(2)
            with concurrent.futures.ThreadPoolExecutor(32) as pool:
                direct = list(pool.map(lambda i: ask(servers[0].port, PROMPTS[i % 16])[0], range(64)))
                through = list(pool.map(lambda i: ask(port, PROMPTS[i % 16])[0], range(300)))
            assert 429 in direct, direct
            assert set(through) == {200}, {status: through.count(status) for status in set(through)}
            print(f"  a small server refuses {direct.count(429)} of 64 requests; behind {name} none of 300 is refused")
        finally:
            proxy.terminate()
            proxy.wait(10)
            for server in servers:
                server.stop()
                server.process.wait()


def main() -> None:
    program = os.path.join(sys.argv[1], "tessera-server")
    paths = dict(each.split("=", 1) for each in sys.argv[2:])
    for name, options, config in (("nginx", ["-g", "daemon off;", "-c"], "nginx.conf"), ("envoy", ["--log-level", "error", "--concurrency", "2", "--base-id", str(os.getpid() % 30000), "-c"], "envoy.yaml")):
        found = paths.get(name) or shutil.which(name)
        if not found:
            print(f"SKIPPED {name}: not installed")
            continue
        check(name, [found, *options], config, program)
        check_full(name, [found, *options], config, program)


if __name__ == "__main__":
    main()
