"""Subscribes to a server's KV events as llm-d's indexer does, and checks that they tell its prompts: kv_subscriber.py EVENTS_PORT HTTP_PORT"""
import json, struct, sys, time, urllib.request
import msgpack, zmq

events_port, http_port = sys.argv[1:3]
socket = zmq.Context().socket(zmq.SUB)
socket.setsockopt(zmq.RCVTIMEO, 10_000)
socket.setsockopt_string(zmq.SUBSCRIBE, "kv@")
socket.connect(f"tcp://127.0.0.1:{events_port}")
time.sleep(0.3)  # until it is subscribed, messages go to nobody


def ask(path, **body):
    request = urllib.request.Request(f"http://127.0.0.1:{http_port}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request).read())


def stored(prompt):
    """The tokens of the pages that the server has after this prompt, from its beginning on."""
    tokens = ask("/tokenize", content=prompt)["tokens"]
    ask("/v1/completions", prompt=prompt, max_tokens=1)
    while True:
        for end in list(pages):  # a chain of pages that tells the prompt
            chain, page = [], end
            while page is not None:
                chain = pages[page][1] + chain
                page = pages[page][0]
            if len(chain) >= len(tokens) - 32 and chain[: len(tokens)] == tokens[: len(chain)]:
                return chain
        topic, number, payload = socket.recv_multipart()
        assert topic == f"kv@127.0.0.1:{http_port}@story".encode(), topic
        (count,) = struct.unpack(">Q", number)
        assert not counts or count == counts[-1] + 1, counts
        counts.append(count)
        seconds, events, rank = msgpack.unpackb(payload)
        assert abs(seconds - time.time()) < 60 and rank is None
        for event in events:
            if event[0] == "AllBlocksCleared":
                pages.clear()
            elif event[0] == "BlockStored":
                (page,), before, page_tokens, block_size, *rest = event[1:]
                assert block_size == len(page_tokens) == 32 and rest == [None, None, None]
                assert before is None or before in pages
                pages[page] = (before, page_tokens)
            else:
                assert event[0] == "BlockRemoved" and event[1][0] in pages
                del pages[event[1][0]]


pages, counts = {}, []
first = "Once upon a time there was a little girl who had a red ball. " * 8
assert len(stored(first)) >= 96
assert len(stored(first + "One day she lost the ball in the garden behind the house of her friend. " * 5)) >= 128
assert sum(before is None for before, _ in pages.values()) == 1, "both prompts have the same beginning"
assert len(stored("Another story begins here, with a cat. " * 10)) >= 64
assert sum(before is None for before, _ in pages.values()) == 2
