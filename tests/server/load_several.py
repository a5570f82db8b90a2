#!/usr/bin/env python3
"""Many clients of two models in one server that cannot hold both: load_several.py SERVER --chat FILE --vectors FOLDER
(Python's standard library alone; Linux).

First asks a server of each model alone for the answers to a set of requests. Then starts one server with both models and a --memory in
which only one of them fits, and lets half of the clients complete texts and the other half embed texts. Every answer must equal the one of
the server alone. Some clients leave in the middle (--leave). Prints requests, wrong answers, errors, loads of each model, latencies, and the
server's resident memory against --memory. Exit status 1 if an answer is wrong, a request failed, or the memory went above the budget.
"""
import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import time

WORDS = ("time river stone light house green story letter garden winter bread music machine ocean mountain paper window city night "
         "bird horse memory bridge summer field island king road voice engine forest clock").split()


class Server:
    """A server on a free port, until stop()."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, '--port', '0', '--no-log', *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        found = re.search(r':(\d+)/', line)
        if not found:
            sys.exit(f'load_several.py: the server does not start: {self.process.stderr.read()}')
        self.port = int(found.group(1))

    def resident(self):
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith('VmRSS:'))

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)


async def ask(port, method, path, body=None, leave=False):
    """Returns the status and the JSON of an answer, or None if the client left."""
    reader, writer = await asyncio.open_connection('127.0.0.1', port, limit=1 << 24)
    try:
        data = json.dumps(body).encode() if body is not None else b''
        writer.write(f'{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n'.encode() + data)
        await writer.drain()
        if leave:
            await asyncio.sleep(random.random())
            return None
        answer = await reader.read()
        head, _, content = answer.partition(b'\r\n\r\n')
        return int(head.split()[1]), json.loads(content)
    finally:
        writer.close()


def requests_of(rng, count):
    text = lambda most: ' '.join(rng.choice(WORDS) for _ in range(rng.randrange(3, most)))
    chat = [('/v1/completions', {'model': 'chat', 'prompt': 'Once upon a time there was a ' + text(30), 'max_tokens': rng.randrange(4, 48), 'seed': i,
                                 'temperature': 0.8 if i % 2 else 0}) for i in range(count)]
    vectors = [('/v1/embeddings', {'model': 'vectors', 'input': [text(60) for _ in range(rng.randrange(1, 9))]}) for i in range(count)]
    return chat, vectors


def essence(answer):
    if 'choices' in answer:
        return answer['choices'][0]['text']
    return [one['embedding'] for one in answer['data']]


async def answers_alone(args, path, requests):
    server = Server(args.server, '-m', path, *args.options)
    try:
        found = []
        for where, body in requests:
            status, answer = await ask(server.port, 'POST', where, body)
            if status != 200:
                sys.exit(f'load_several.py: {where} gives {status}: {answer}')
            found.append(essence(answer))
        return found
    finally:
        server.stop()


async def client(args, port, requests, expected, rng, until, totals):
    while time.monotonic() < until:
        i, leaves, began = rng.randrange(len(requests)), rng.random() < args.leave, time.monotonic()
        try:
            result = await ask(port, 'POST', *requests[i], leave=leaves)
        except (OSError, ValueError, IndexError, asyncio.IncompleteReadError) as error:
            totals['errors'].append(repr(error))
            continue
        if result is None:
            totals['left'] += 1
            continue
        if result[0] != 200:
            totals['errors'].append(f'{result[0]}: {result[1]}')
            await asyncio.sleep(0.2)
            continue
        totals['right' if essence(result[1]) == expected[i] else 'wrong'] += 1
        totals['seconds'].append(time.monotonic() - began)


async def watch(server, until, samples):
    while time.monotonic() < until:
        samples.append(server.resident())
        await asyncio.sleep(0.05)


async def memory_of(args):
    """Returns a --memory that holds either model and not both."""
    server = Server(args.server, '-m', 'chat=' + args.chat, '-m', 'vectors=' + args.vectors, *args.options)
    try:
        bytes_of = [model['meta']['memory_bytes'] for model in (await ask(server.port, 'GET', '/v1/models'))[1]['data']]
        return max(bytes_of) + min(bytes_of) // 2
    finally:
        server.stop()


def share(values, p):
    return sorted(values)[min(int(len(values) * p), len(values) - 1)] if values else 0.0


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('server')
    parser.add_argument('--chat', required=True, help='a model that writes')
    parser.add_argument('--vectors', required=True, help='a model that embeds')
    parser.add_argument('--clients', type=int, default=32)
    parser.add_argument('--seconds', type=float, default=300)
    parser.add_argument('--leave', type=float, default=0.02, help='share of requests whose client leaves early')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--options', nargs=argparse.REMAINDER, default=['--ctx', '512', '--max-running', '16', '--kv-budget', '64MB'],
                        help='further options of the servers, with a --kv-budget, so that it does not shrink with --memory; the last argument')
    args = parser.parse_args()
    rng = random.Random(args.seed)
    chat, vectors = requests_of(rng, 24)
    expected_chat, expected_vectors = await answers_alone(args, args.chat, chat), await answers_alone(args, args.vectors, vectors)
    memory = await memory_of(args)
    server = Server(args.server, '-m', 'chat=' + args.chat, '-m', 'vectors=' + args.vectors, '--memory', str(memory), *args.options)
    at_start = server.resident()
    totals = {kind: {'right': 0, 'wrong': 0, 'left': 0, 'errors': [], 'seconds': []} for kind in ('chat', 'vectors')}
    samples, until = [], time.monotonic() + args.seconds
    jobs = [watch(server, until, samples)]
    for i in range(args.clients):
        kind = 'vectors' if i % 2 else 'chat'
        jobs.append(client(args, server.port, vectors if i % 2 else chat, expected_vectors if i % 2 else expected_chat, random.Random(args.seed * 1000 + i), until, totals[kind]))
    await asyncio.gather(*jobs)
    loads = {model['id']: model['loads'] for model in (await ask(server.port, 'GET', '/status.json'))[1]['models']}
    status = server.stop()
    for kind, one in totals.items():
        print(f"{kind}: {one['right']} right, {one['wrong']} wrong, {one['left']} left, {len(one['errors'])} errors, {loads[kind]} loads, "
              f"seconds p50 {share(one['seconds'], 0.5):.2f} p99 {share(one['seconds'], 0.99):.2f} max {max(one['seconds'], default=0):.2f}")
        for error in one['errors'][:5]:
            print('  ', error[:300])
    print(f'resident memory: {at_start / 1e6:.1f} MB at the start, at most {max(samples) / 1e6:.1f} MB, of {memory / 1e6:.1f} MB')
    failed = any(one['wrong'] or one['errors'] or not one['right'] for one in totals.values()) or max(samples) > memory or status != 0 or min(loads.values()) < 2
    print('FAILED' if failed else 'passed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(asyncio.run(main()))
