#!/usr/bin/env python3
"""Asks a gateway in front of two real models made-up questions, and says what its cache and its routing did.

    check_gateway.py --bin build/release/bin --large GGUF --small GGUF --embedder FOLDER [--requests 500] [--threshold 0.95] [--json]

Starts two tessera-servers and a tessera-gateway that checks all its cached and small-tier answers by the large model (--check 100). The
questions come from two tenants: new ones, repeated ones, paraphrases, and neighbours that differ in a number or a name only, which must
not hit. Prints the hit rate, hits by another question's answer (known here, as each question belongs to a group), answers across tenants,
wrong answers as the large model counts them, and what the mix saved: as measured in tokens, and as tessera-cost predicts from the shares.
Exit status 1: an answer crossed tenants, or the saving differs from the prediction by more than 10 %. Prints SKIPPED without a model.
"""
from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

PRICE = {"small": 0.1, "large": 1.0}  # of a million tokens
SYSTEM = "Answer in one short sentence."
COUNTRIES = ["France", "Spain", "Italy", "Japan", "Egypt", "Kenya", "Peru", "Norway", "Canada", "Greece", "Poland", "Brazil"]
THINGS = ["bread", "a compass", "a volcano", "rain", "a violin", "honey", "an echo", "a glacier", "a lighthouse", "yeast"]
GROUPS = (
    [(f"capital {c}", [f"What is the capital of {c}?", f"What's the capital of {c}?", f"What is {c}'s capital city?", f"Tell me the capital of {c}."]) for c in COUNTRIES]
    + [(f"language {c}", [f"Which language is spoken in {c}?", f"What language do people speak in {c}?", f"Which language do they speak in {c}?"]) for c in COUNTRIES]
    + [(f"what {t}", [f"What is {t}?", f"Explain what {t} is.", f"Can you explain what {t} is?", f"what is {t}"]) for t in THINGS]
    + [(f"weeks {n}", [f"How many days are in {n} weeks?", f"How many days are there in {n} weeks?"]) for n in (2, 3, 4, 5, 6, 7)]
    + [(f"sum {n}", [f"What is {n} plus {n}?", f"How much is {n} plus {n}?"]) for n in (11, 12, 13, 14, 15)]
    + [(f"used {t}", [f"What is {t} used for?", f"What do people use {t} for?"]) for t in THINGS]
)


def wait_for_port(process: subprocess.Popen) -> int:
    line = process.stdout.readline()
    found = re.search(r":(\d+)/", line)
    if not found:
        sys.exit(f"no address in {line!r}: {process.args[0]} did not start")
    return int(found.group(1))


def start(arguments: list[str], running: list[subprocess.Popen]) -> int:
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    running.append(process)
    return wait_for_port(process)


def figures(port: int) -> dict[str, float]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics", headers={"Authorization": "Bearer red"})
    lines = connection.getresponse().read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line and not line.startswith("#")}


def total(all_figures: dict[str, float], name: str, *labels: str) -> float:
    return sum(value for key, value in all_figures.items() if key.startswith(name + "{") and all(label in key for label in labels))


def checks(all_figures: dict[str, float]) -> float:
    return total(all_figures, "gateway_comparisons_total") + total(all_figures, "gateway_upstream_failures_total", 'tier="quality"')


def ask(connection: http.client.HTTPConnection, tenant: str, text: str, limit: int) -> tuple[dict[str, str], str, int]:
    body = {"model": "auto", "temperature": 0, "max_tokens": limit, "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json", "Authorization": f"Bearer {tenant}"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200:
        sys.exit(f"{response.status}: {answer}")
    return {key.lower(): value for key, value in response.getheaders()}, answer["choices"][0]["message"]["content"], answer["usage"]["completion_tokens"]


def predicted(program: str, hits: float, adaptive_again: float, sizes: tuple[float, float]) -> float:
    """What tessera-cost says that the mix saves, in percent."""
    scenario = {"models": {name: {"prompt_price": price, "answer_price": price} for name, price in PRICE.items()},
                "mix": {"request": {"prompt": sizes[0], "answer": sizes[1]}, "baseline": "large",
                        "tiers": [{"model": "small", "share": 100, "again": 100 * adaptive_again}], "savings": [{"name": "cached", "share": 100 * hits}]}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(scenario, file)
        file.flush()
        return json.loads(subprocess.run([program, file.name, "--json"], capture_output=True, text=True, check=True).stdout)["mix"]["saved_percent"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True, help="folder of tessera-server, tessera-gateway and tessera-cost")
    parser.add_argument("--large", required=True)
    parser.add_argument("--small", required=True)
    parser.add_argument("--embedder", required=True)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--threshold", type=float, default=0.95)
    parser.add_argument("--least-logprob", type=float, default=-0.35)
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", default="", help="a file for the gateway's comparisons")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for path in (options.large, options.small, options.embedder):
        if not os.path.exists(path):
            print(f"SKIPPED: {path} is absent (scripts/get-model)")
            return 77
    running: list[subprocess.Popen] = []
    try:
        server, gateway = os.path.join(options.bin, "tessera-server"), os.path.join(options.bin, "tessera-gateway")
        large = start([server, "-m", options.large, "--port", "0", "--ctx", "1024", "--no-log"], running)
        small = start([server, "-m", options.small, "--port", "0", "--ctx", "1024", "--no-log"], running)
        port = start([gateway, "--port", "0", "--large", f"http://127.0.0.1:{large}", "--small", f"http://127.0.0.1:{small}", "--embedder", options.embedder,
                      "--threshold", str(options.threshold), "--least-logprob", str(options.least_logprob), "--check", "100", "--no-log"]
                     + (["--check-log", options.log] if options.log else []), running)
        rng = random.Random(options.seed)
        owners: dict[tuple[str, str], set[str]] = {}  # answers by tenant and text: the groups that they were computed for
        result = {"requests": options.requests, "hits": 0, "wrong_group": 0, "repeated": 0, "crossed": 0}
        asked: dict[str, set[str]] = {"red": set(), "blue": set()}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        begin = time.monotonic()
        for i in range(options.requests):
            tenant = rng.choice(["red", "blue"])
            group, forms = rng.choice(GROUPS)
            text = rng.choice(forms)
            result["repeated"] += text in asked[tenant]
            headers, answer, _ = ask(connection, tenant, text, options.max_tokens)
            if headers["x-cache"].startswith("hit"):
                result["hits"] += 1
                if (tenant, answer) not in owners:
                    result["crossed"] += 1  # nothing that this tenant was told before
                elif group not in owners[tenant, answer]:
                    result["wrong_group"] += 1
            else:
                owners.setdefault((tenant, answer), set()).add(group)
            asked[tenant].add(text)
            due = time.monotonic() + 120
            while i % 16 == 15 and checks(figures(port)) < i + 1 - total(figures(port), "gateway_answers_total", 'tier="large"') and time.monotonic() < due:
                time.sleep(0.05)  # at most 64 checks wait
        due = time.monotonic() + 300
        all_figures = figures(port)
        while checks(all_figures) < options.requests - total(all_figures, "gateway_answers_total", 'tier="large"') and time.monotonic() < due:
            time.sleep(0.2)
            all_figures = figures(port)
        seconds = time.monotonic() - begin
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(60)
    tokens = {(tier, kind): total(all_figures, "gateway_tokens_total", f'tier="{tier}"', f'kind="{kind}"') for tier in ("small", "large", "quality") for kind in ("prompt", "answer")}
    of = lambda tier: tokens[tier, "prompt"] + tokens[tier, "answer"]
    # The large model answered or checked every request, so both together are the price without a gateway.
    baseline = (of("large") + of("quality")) * PRICE["large"]
    paid = of("small") * PRICE["small"] + of("large") * PRICE["large"]
    answers = {tier: total(all_figures, "gateway_answers_total", f'tier="{tier}"') for tier in ("small", "large", "quality")}
    again = answers["large"] / max(answers["small"], 1)
    sizes = tuple((tokens["large", kind] + tokens["quality", kind]) / options.requests for kind in ("prompt", "answer"))
    result |= {
        "seconds": round(seconds, 1), "hit_rate": result["hits"] / options.requests, "escalated": again,
        "compared": total(all_figures, "gateway_comparisons_total"),
        "wrong_cached": total(all_figures, "gateway_comparisons_total", 'source="cache"', 'wrong="1"'),
        "wrong_small": total(all_figures, "gateway_comparisons_total", 'source="small"', 'wrong="1"'),
        "compared_small": total(all_figures, "gateway_comparisons_total", 'source="small"'),
        "unchecked": options.requests - answers["large"] - answers["quality"],
        "saved_percent": 100 * (1 - paid / baseline),
        "predicted_percent": predicted(os.path.join(options.bin, "tessera-cost"), result["hits"] / options.requests, again, sizes),
    }
    result["off_percent"] = 100 * abs(result["saved_percent"] / result["predicted_percent"] - 1)
    if options.json:
        print(json.dumps(result))
    else:
        for key, value in result.items():
            print(f"{key:18} {value:.4g}" if isinstance(value, float) else f"{key:18} {value}")
    return 1 if result["crossed"] or result["off_percent"] > 10 else 0


if __name__ == "__main__":
    sys.exit(main())
