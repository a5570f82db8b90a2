"""Starts a tessera-server, asks it, ends it with Ctrl-C, and prints its answers: python3 ask_server.py COMMAND...

check-windows compares what the servers of two systems print. Standard error has the time that the server took to end.
"""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request


def read(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Accept": "text/html, application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=120) as answer:
        return answer.read().decode()


def main():
    server = subprocess.Popen([*sys.argv[1:], "--port", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        found = re.search(r"http://[0-9.]+:\d+", line)
        if not found:
            sys.exit(f"the server did not begin: {line!r}")
        url = found[0]
        print("health:", json.loads(read(url + "/health")))
        prompt = {"prompt": "Once upon a time", "max_tokens": 48, "temperature": 0.8, "seed": 7}
        whole = json.loads(read(url + "/v1/completions", prompt))
        print("completion:", repr(whole["choices"][0]["text"]), whole["usage"]["completion_tokens"])
        events = [line[6:] for line in read(url + "/v1/completions", {**prompt, "stream": True}).splitlines() if line.startswith("data: ")]
        pieces = [json.loads(event)["choices"][0]["text"] for event in events if event != "[DONE]"]
        print("stream:", len(pieces) > 10, events[-1], repr("".join(pieces)))
        messages = [{"role": "user", "content": "Tell of a dog."}]
        chat = json.loads(read(url + "/v1/chat/completions", {"messages": messages, "max_tokens": 24, "temperature": 0}))
        print("chat:", repr(chat["choices"][0]["message"]["content"]))
        print("page:", "<title>" in read(url + "/"))
        begun = time.monotonic()
        server.send_signal(signal.SIGINT)
        print("exit status:", server.wait(60))
        print(f"ended in {time.monotonic() - begun:.1f} s", file=sys.stderr)
    finally:
        server.kill()
        server.wait()


main()
