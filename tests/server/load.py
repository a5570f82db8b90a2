#!/usr/bin/env python3
"""Many clients at once on an OpenAI-compatible server: load.py URL [--clients N] [--seconds S] [--leave P] [--pid PID]
(Python's standard library alone).

Each client streams completions of prompts and lengths drawn from a seed, one after the other; with --leave some go away in the
middle. With --check every stream that was read to its end must equal what the server answers to the same request alone. Prints
requests, errors, tokens/s, time to first token, time between tokens, and with --pid the server's memory over the time.
With --neighbour one more client sends long prompts all the while, and with --embed one more sends long texts to embed, which are in none
of the figures but their own.
"""
import argparse
import asyncio
import json
import random
import sys
import time
import urllib.parse

WORDS = ("time river stone light house green story letter garden winter bread music machine ocean mountain paper window city night "
         "bird horse memory bridge summer field island king road voice engine forest clock").split()


def make_request(args, rng):
    words = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(*args.prompt)))
    body = {"prompt": "Once upon a time there was a " + words, "max_tokens": rng.randrange(*args.tokens), "temperature": 0.8 if rng.random() < 0.5 else 0,
            "seed": rng.randrange(1 << 30), "stream": True}
    if args.model:
        body["model"] = args.model
    if args.ignore_eos:
        body["ignore_eos"] = True
    return body


async def send(url, body, reader_of, key, path="/v1/completions"):
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    data = json.dumps(body).encode()
    auth = f"Authorization: Bearer {key}\r\n" if key else ""
    writer.write(f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n{auth}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    try:
        await writer.drain()
        return await reader_of(reader)
    finally:
        writer.close()


async def read_stream(reader, leave_after=None, times=None, slow=0.0):
    status = int((await reader.readline()).split()[1])
    retry_after = None
    while line := (await reader.readline()).strip():
        if line.lower().startswith(b"retry-after:"):
            retry_after = float(line.split(b":")[1])
    if status != 200:
        return status, retry_after, False
    text, n = "", 0
    while True:
        line = await reader.readline()
        if not line:
            return status, text, False
        if not line.startswith(b"data: "):
            continue
        if line.startswith(b"data: [DONE]"):
            return status, text, True
        data = json.loads(line[6:])
        if "error" in data:
            return 500, data["error"]["message"], False
        if not data["choices"]:
            continue
        if times is not None:
            times.append(time.monotonic())
        text += data["choices"][0]["text"]
        n += 1
        if slow:
            await asyncio.sleep(slow)
        if leave_after is not None and n >= leave_after:
            return status, text, False


class Totals:
    def __init__(self):
        self.done = self.left = self.refused = self.differ = self.chunks = self.long = self.embedded = 0
        self.errors, self.first, self.gaps = [], [], []


async def client(args, url, rng, until, totals):
    while time.monotonic() < until:
        body = make_request(args, rng)
        leave = rng.randrange(1, 20) if rng.random() < args.leave else None
        slow = 0.05 if rng.random() < args.slow else 0.0
        times, began = [], time.monotonic()
        try:
            status, text, whole = await send(url, body, lambda r: read_stream(r, leave, times, slow), args.key)
        except (OSError, asyncio.IncompleteReadError) as error:
            totals.errors.append(repr(error))
            continue
        if status == 429:
            totals.refused += 1
            await asyncio.sleep(text or 1.0)  # what the server asks for
            continue
        if status != 200 or (not whole and leave is None):
            totals.errors.append(f"{status} {text!r}")
            continue
        totals.left += leave is not None and not whole
        totals.done += whole
        totals.chunks += len(times)
        if times:
            totals.first.append(times[0] - began)
            if not slow:
                totals.gaps += [b - a for a, b in zip(times, times[1:])]
        if whole and args.check and rng.random() < args.check:
            totals_check.append((body, text))


totals_check = []


async def neighbour(args, url, until, totals):
    rng = random.Random(args.seed)
    while time.monotonic() < until:
        words = " ".join(rng.choice(WORDS) for _ in range(args.neighbour))
        body = {"prompt": words, "max_tokens": 1, "stream": True, **({"model": args.model} if args.model else {})}
        status, text, whole = await send(url, body, read_stream, args.neighbour_key or args.key)
        if not whole and time.monotonic() < until:
            totals.errors.append(f"the neighbour: {status} {text!r}")
            await asyncio.sleep(1)
        totals.long += whole


async def embedder(args, url, until, totals):
    async def status_of(reader):
        status = int((await reader.readline()).split()[1])
        length = 0
        while line := (await reader.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        await reader.readexactly(length)
        return status
    rng = random.Random(args.seed)
    while time.monotonic() < until:
        body = {"input": " ".join(rng.choice(WORDS) for _ in range(args.embed)), **({"model": args.model} if args.model else {})}
        status = await send(url, body, status_of, args.key, "/v1/embeddings")
        if status != 200:
            totals.errors.append(f"the texts to embed: {status}")
            await asyncio.sleep(1)
        totals.embedded += status == 200


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))] if values else float("nan")


def memory_of(pid):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--leave", type=float, default=0.0, help="share of requests whose client goes away in the middle")
    parser.add_argument("--slow", type=float, default=0.0, help="share of clients that read slowly")
    parser.add_argument("--check", type=float, default=0.0, help="share of whole answers that are asked for again, alone")
    parser.add_argument("--neighbour", type=int, default=0, metavar="WORDS", help="of the prompts that one more client sends")
    parser.add_argument("--neighbour-key", default="", help="its key, if it is another's")
    parser.add_argument("--embed", type=int, default=0, metavar="WORDS", help="of the texts that one more client has embedded")
    parser.add_argument("--idle", type=int, default=0, help="connections that never ask")
    parser.add_argument("--prompt", type=int, nargs=2, default=(5, 60), help="words of a prompt")
    parser.add_argument("--tokens", type=int, nargs=2, default=(8, 64), help="of an answer")
    parser.add_argument("--ignore-eos", action="store_true")
    parser.add_argument("--model", default="")
    parser.add_argument("--key", default="")
    parser.add_argument("--pid", type=int, help="of the server: its memory is watched")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    url = urllib.parse.urlparse(args.url)
    idle = [await asyncio.open_connection(url.hostname, url.port) for _ in range(args.idle)]
    totals, began = Totals(), time.monotonic()
    until = began + args.seconds
    memory = []
    async def watch():
        while time.monotonic() < until:
            if args.pid:
                memory.append(memory_of(args.pid))
            if sys.stderr.isatty():
                print(f"\r{time.monotonic() - began:.0f} s, {totals.done} done, {totals.left} left, {len(totals.errors)} errors", end="", file=sys.stderr)
            await asyncio.sleep(1)
    beside = [neighbour(args, url, until, totals)] if args.neighbour else []
    if args.embed:
        beside.append(embedder(args, url, until, totals))
    await asyncio.gather(watch(), *beside, *(client(args, url, random.Random(args.seed * 1000 + i), until, totals) for i in range(args.clients)))
    seconds = time.monotonic() - began
    for body, text in totals_check:
        _, alone, _ = await send(url, body, read_stream, args.key)
        totals.differ += alone != text
    for _, writer in idle:
        writer.close()
    figures = {"clients": args.clients, "seconds": round(seconds, 1), "done": totals.done, "left": totals.left, "refused": totals.refused,
               "errors": len(totals.errors), "checked": len(totals_check), "differ": totals.differ, "chunks_per_s": round(totals.chunks / seconds, 1),
               "ttft_ms": [round(1e3 * percentile(totals.first, p), 1) for p in (0.5, 0.99)], "itl_ms": [round(1e3 * percentile(totals.gaps, p), 1) for p in (0.5, 0.99)]}
    if args.neighbour:
        figures["long_prompts"] = totals.long
    if args.embed:
        figures["texts_embedded"] = totals.embedded
    if memory:
        quarter = max(1, len(memory) // 4)
        figures["rss_mb"] = [round(memory[0]), round(percentile(memory[quarter:2 * quarter], 0.5)), round(percentile(memory[-quarter:], 0.5))]
    print(json.dumps(figures) if args.json else "\n".join(f"{key:14}{value}" for key, value in figures.items()))
    for error in totals.errors[:5]:
        print("ERROR", error)
    return 1 if totals.errors or totals.differ else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
