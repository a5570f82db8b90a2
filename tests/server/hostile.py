#!/usr/bin/env python3
"""Hostile requests between good ones: hostile.py URL [--requests N] [--key KEY] (Python's standard library alone).

Slow, broken, oversized and smuggled requests, bad JSON, deep JSON, bad UTF-8, huge numbers, hostile grammars and templates,
paths with tricks, wrong keys; a good request after each few must be answered as ever. Prints what came of each kind; status 1
if a good one was lost, or a hostile one got an answer that is not a clear refusal.
"""
import argparse
import collections
import json
import random
import socket
import ssl
import sys
import time
import urllib.parse


def raw(url, data, pause=0.0, timeout=20.0):
    """Sends bytes (or a list of them, with pauses between) and returns what comes until the end or the first whole answer."""
    s = socket.create_connection((url.hostname, url.port), timeout=timeout)
    if url.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        s = context.wrap_socket(s)
    got = b""
    try:
        for part in data if isinstance(data, list) else [data]:
            s.sendall(part)
            if pause:
                time.sleep(pause)
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
            head, _, body = got.partition(b"\r\n\r\n")
            low = head.lower()
            if b"content-length:" in low:
                length = int(low.split(b"content-length:")[1].split(b"\r\n")[0])
                if len(body) >= length:
                    break
            elif b"transfer-encoding: chunked" in low and body.endswith(b"0\r\n\r\n"):
                break
    except (ConnectionError, socket.timeout, BrokenPipeError):
        pass
    finally:
        s.close()
    return got


def status_of(answer):
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def post(url, path, body, key, headers=""):
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    auth = f"Authorization: Bearer {key}\r\n" if key else ""
    return (f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n{auth}{headers}"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


CHAT = "/v1/chat/completions"


def chat(**fields):
    return json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4, "temperature": 0, **fields})


def schema(s):
    return chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": s}})


def nested(n):
    s = {"type": "string"}
    for i in range(n):
        s = {"oneOf": [s, {"type": "array", "items": s}]} if i < 12 else {"type": "object", "properties": {"a": s}}
    return s


def kinds(url, key, rng):
    """Each: a name, what is sent, and the statuses that are right (0: the connection may simply end)."""
    host = url.netloc
    def body(text): return post(url, CHAT, text, key)
    junk = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 400)))
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    refused = (400, 422)
    yield "junk", junk + b"\r\n\r\n", (400, 408, 431, 0)
    yield "no json", body("{" * rng.randrange(1, 50)), refused
    yield "deep json", body('{"messages":' + "[" * 60000 + "]" * 60000 + "}"), refused
    yield "deep metadata", body(chat()[:-1] + ',"metadata":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}"), refused
    yield "bad utf-8", post(url, CHAT, b'{"messages":[{"role":"user","content":"\xff\xfe\xc3"}],"max_tokens":2}', key), (200, 400)
    yield "lone surrogate", body('{"messages":[{"role":"user","content":"\\ud800"}],"max_tokens":2}'), (200, 400)
    yield "nul", body('{"messages":[{"role":"user","content":"a\\u0000b"}],"max_tokens":2}'), (200, 400)
    yield "body is a list", body("[1,2]"), refused
    yield "huge n", body(chat(n=10**9)), refused
    yield "huge n, a big integer", body(chat()[:-1] + ',"n":' + "9" * 400 + "}"), refused
    yield "huge max_tokens", body(chat(max_tokens=10**18)), refused
    yield "negative", body(chat(max_tokens=-5)), refused
    yield "temperature nan", body(chat()[:-1] + ',"temperature":NaN}'), refused
    yield "temperature 1e400", body(chat()[:-1] + ',"temperature":1e400}'), refused
    yield "logit_bias", body(chat(logit_bias={"-1": 5})), refused
    yield "logit_bias words", body(chat(logit_bias={"x": "y"})), refused
    yield "unknown field", body(chat(unheard_of=1)), refused
    yield "no messages", body("{}"), refused
    yield "messages of numbers", body('{"messages":[1,2,3]}'), refused
    yield "images", body(json.dumps({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]})), refused
    yield "stops", body(chat(stop=["x"] * 1000)), refused
    yield "tools", body(chat(tools=[tool] * 1000)), refused
    yield "tool named in vain", body(chat(tools=[tool], tool_choice={"type": "function", "function": {"name": "g"}})), refused
    yield "schema: unsupported", body(schema({"not": {"type": "string"}})), (200, 400)
    yield "schema: a ref to nowhere", body(schema({"$ref": "#/$defs/x"})), refused
    yield "schema: a cycle", body(schema({"$ref": "#"})), refused
    yield "schema: nested oneOf", body(schema(nested(40))), (200, 400)
    yield "schema: counts", body(schema({"type": "array", "items": {"type": "string", "minLength": 10**9}, "minItems": 10**9})), (200, 400)
    yield "schema: enum of 20,000", body(schema({"enum": [f"v{i}" for i in range(20000)]})), (200, 400)
    yield "regex", body(chat(guided_regex="(a|a|aa|a*)*" * 20 + "b{1,5000}")), (200, 400)
    yield "regex broken", body(chat(guided_regex="((")), refused
    yield "grammar broken", body(chat(grammar="root ::= root root")), refused
    yield "template arguments", body(chat(chat_template_kwargs={"a": ["x"] * 1000, "messages": 5, "add_generation_prompt": "z"})), (200, 400)
    yield "content of 200,000", body(json.dumps({"messages": [{"role": "user", "content": "a b " * 50000}], "max_tokens": 1})), (200, 400)
    yield "no such path", f"GET /../../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), (404,)
    yield "encoded path", f"GET /page/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), (404,)
    yield "nul path", f"GET /page/app.js\0.html HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), (400, 404)
    yield "absolute target", f"GET http://evil.example/v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), (400, 404)
    yield "connect", f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), (400, 404, 405)
    yield "trace", f"TRACE / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode(), (404, 405)
    yield "two hosts", f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\nHost: evil\r\n\r\n".encode(), (400,)
    yield "no host", b"GET /health HTTP/1.1\r\n\r\n", (400,)
    yield "http 9", f"GET /health HTTP/9.9\r\nHost: {host}\r\n\r\n".encode(), (400,)
    yield "header of 1 MB", (f"GET /health HTTP/1.1\r\nHost: {host}\r\nX: " + "a" * 1000000 + "\r\n\r\n").encode(), (431, 0)
    yield "20,000 headers", (f"GET /health HTTP/1.1\r\nHost: {host}\r\n" + "X: y\r\n" * 20000 + "\r\n").encode(), (431, 0)
    yield "lengths differ", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef".encode(), (400,)
    yield "length and chunks", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n".encode(), (400,)
    yield "chunks and length", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n".encode(), (400,)
    yield "odd encodings", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\nContent-Type: application/json\r\n\r\n0\r\n\r\n".encode(), (400, 401, 408, 411, 501, 0)
    yield "chunk of 2^64", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx".encode(), (400, 413)
    yield "chunk negative", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx".encode(), (400,)
    yield "length negative", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: -1\r\n\r\n".encode(), (400,)
    yield "length 2^70", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {2**70}\r\n\r\n".encode(), (400, 413)
    yield "length of 10 GB", f"POST {CHAT} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {10**10}\r\n\r\n".encode(), (413,)
    yield "split header", f"GET /health HTTP/1.1\r\nHost: {host}\r\nX: a\r\n b\r\n\r\n".encode(), (200, 400)
    yield "bare line feeds", f"GET /health HTTP/1.1\nHost: {host}\n\n".encode(), (400, 408, 0)
    yield "space before colon", f"GET /health HTTP/1.1\r\nHost : {host}\r\n\r\n".encode(), (400,)
    yield "form", post(url, CHAT, "a=b", key).replace(b"application/json", b"application/x-www-form-urlencoded"), (415,)
    yield "other origin", post(url, CHAT, chat(), key, "Origin: http://evil.example\r\n"), (403,)
    yield "left in the middle", body(chat(stream=True, max_tokens=200))[:-9], None
    yield "left at once", body(chat(stream=True, max_tokens=500)), None
    if key:
        yield "wrong key", post(url, CHAT, chat(), key[:-1] + "~"), (401,)
        yield "no key", post(url, CHAT, chat(), ""), (401,)


def send_and_leave(url, data):
    s = socket.create_connection((url.hostname, url.port), timeout=10)
    if url.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        s = context.wrap_socket(s)
    s.sendall(data)
    time.sleep(0.02)
    s.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--key", default="")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    url = urllib.parse.urlparse(args.url)
    rng = random.Random(args.seed)
    good_body = post(url, CHAT, chat(max_tokens=6), args.key)
    def good():
        answer = raw(url, good_body, timeout=120)
        text = json.loads(answer.partition(b"\r\n\r\n")[2])["choices"][0]["message"]["content"] if status_of(answer) == 200 else None
        return text
    expected = good()
    assert expected is not None, "the server does not answer"
    # Connections that send a byte now and then, all the while.
    slow = []
    for _ in range(50):
        s = socket.create_connection((url.hostname, url.port))
        s.sendall(b"POST /v1/chat/comp")
        slow.append(s)
    seen, lost, wrong, sent, longest = collections.defaultdict(collections.Counter), 0, [], 0, (0.0, "")
    started = time.time()
    while sent < args.requests:
        for name, data, right in kinds(url, args.key, rng):
            if sent >= args.requests:
                break
            sent += 1
            began = time.time()
            if right is None:
                send_and_leave(url, data)
                seen[name]["-"] += 1
            else:
                status = status_of(raw(url, data))
                seen[name][status] += 1
                if status not in right:
                    wrong.append(f"{name}: {status}")
            longest = max(longest, (time.time() - began, name))
            if sent % 7 == 0:
                if good() != expected:
                    lost += 1
                try:
                    slow[rng.randrange(len(slow))].sendall(b"x")
                except OSError:
                    pass  # the server has had enough of it
            if sys.stderr.isatty() and sent % 20 == 0:
                print(f"\r{sent} of {args.requests}, {lost} good ones lost, {len(wrong)} wrong", end="", file=sys.stderr)
    for name, counts in seen.items():
        print(f"{name:26} " + ", ".join(f"{status}: {n}" for status, n in sorted(counts.items(), key=str)))
    for line in sorted(set(wrong)):
        print("WRONG", line)
    print(f"{sent} hostile requests in {time.time() - started:.0f} s, {lost} good ones lost, {len(wrong)} wrong answers; "
          f"the longest took {longest[0]:.1f} s ({longest[1]})")
    return 1 if lost or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
