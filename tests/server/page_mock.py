#!/usr/bin/env python3
"""A stand-in for tessera-server in front of its page: page_mock.py [--port N] PAGE_FOLDER

It serves the folder as the server does, with the same content security policy, and answers what the page asks for with
text that depends on the last message ("slow", "think", "tool", "script", "markdown", "error 429", "cut", ...). What it
was asked is at /mock; POST /mock changes its key. browser.py starts it; a person may, to work on the page.
"""

import argparse
import http.server
import json
import math
import pathlib
import random
import threading
import time

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
TYPES = {
    '.html': 'text/html; charset=utf-8',
    '.css': 'text/css; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
    '.svg': 'image/svg+xml',
    '.json': 'application/json',
}
CONTEXT = 8192

HOSTILE = (
    'Before <script>window.hacked = 1</script> and <img src=x onerror="window.hacked = 2"> '
    '[a link](javascript:window.hacked=3) ![a picture](https://example.com/x.png)\n\n'
    '<iframe src="javascript:window.hacked=4"></iframe>\n\n```html\n<script>window.hacked = 5</script>\n```\n\n'
    '| a | b |\n|---|---|\n| <b onmouseover="window.hacked=6">x</b> | [y](data:text/html,z) |\n'
)

MARKDOWN = r'''## A short tour
Each KV **page** holds the keys and values of 16 tokens, so a sequence of `n` tokens takes ⌈n / 16⌉ pages. Two sequences that begin alike *share* pages until one of them writes, see <https://example.com/paged>.

1. The scheduler takes requests in order.
2. It packs their rows into one step:
   - prompts in pieces,
   - one row for each running sequence.
3. ~~Padding~~ is not needed.

```cpp
// Pages that n tokens need.
constexpr std::size_t pages(std::size_t n, std::size_t page_tokens = 16) {
  return (n + page_tokens - 1) / page_tokens;  /* rounds up */
}
static_assert(pages(17) == 2, "seventeen tokens need two pages");
```

| Policy | Requests/s | p99 TTFT | Note |
|:--|--:|--:|:--|
| first come | 41.2 | 180 ms | simple |
| fair share | 40.8 | 95 ms | a neighbour's long prompt does not hurt |

> A request that waits is one that was promised something.

- [x] measured on two cores
- [ ] measured on a GPU

The cost is \(O(n \cdot d)\) a step. In Python:

```python
def pages(n: int, page_tokens: int = 16) -> int:
    """Pages that n tokens need."""
    return -(-n // page_tokens)  # rounds up
```
'''

FORMULAS = r'''Attention, with $d$ the size of a head and $q_i, k_j \in \mathbb{R}^d$:

$$
\operatorname{softmax}\left(\frac{Q K^\top}{\sqrt{d}}\right) V, \qquad p_j = \frac{e^{s_j}}{\sum_{k=1}^{n} e^{s_k}}
$$

It costs \(O(n^2 \cdot d)\); a coffee is $3 and a cake is $4. The rest:

\[
\begin{aligned} f(x) &= \int_0^\infty e^{-x t}\, dt \\ &= \frac{1}{x}, \quad x > 0 \end{aligned}
\]

$$|x| = \begin{cases} x & \text{if } x \ge 0 \\ -x & \text{otherwise} \end{cases} \qquad A = \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}$$

What cannot be read stays as it is: $\frac{1}{2$.
'''

THOUGHTS = (
    'The question is about pages. A page has 16 tokens.\n\nSo 17 tokens need two pages: 17 / 16 is 1.06, and that '
    'rounds up to **2**.'
)


MODEL = {
    'id': 'SmolLM2-135M-Instruct',
    'object': 'model',
    'owned_by': 'tessera',
    'max_model_len': CONTEXT,
    'meta': {
        'context_length': CONTEXT,
        'vocabulary': 49152,
        'parameters': 134515008,
        'weights_bytes': 144811968,
        'architecture': 'llama',
        'has_chat_template': True,
        'capabilities': ['completion'],
    },
}
OTHER_MODEL = {
    'id': 'Qwen3-0.6B',
    'object': 'model',
    'owned_by': 'tessera',
    'max_model_len': 4 * CONTEXT,
    'meta': {
        'context_length': 4 * CONTEXT,
        'vocabulary': 151936,
        'weights_bytes': 639446016,
        'architecture': 'qwen3',
        'has_chat_template': True,
        'capabilities': ['completion', 'tools', 'thinking'],
    },
}


class State:
    def __init__(self):
        self.lock = threading.Lock()
        self.key = None
        self.two_models = False
        self.counted = 0  # requests of /tokenize
        self.last = None  # the last request's body
        self.asked = 0
        self.aborted = 0
        self.begun = time.time()
        self.tokens = 0


def words(text):
    """Pieces like a tokenizer's: they join to the text."""
    pieces, start = [], 0
    for i, c in enumerate(text):
        if c in ' \n' and i > start:
            pieces.append(text[start:i])
            start = i
    return pieces + [text[start:]]


def prompt_tokens(messages):
    return sum(len(m['content'].split()) + 4 for m in messages)


def scored(piece):
    """A piece as tokens with log-probabilities: a character beyond ASCII is a token a byte, as in many vocabularies."""
    parts = []
    for c in piece:
        if ord(c) > 127:
            parts += [bytes([b]) for b in c.encode()]
        elif parts and parts[-1][-1] < 128:
            parts[-1] += c.encode()
        else:
            parts.append(c.encode())

    def one(data, share):
        return {'token': data.decode(errors='replace'), 'logprob': math.log(share), 'bytes': list(data)}

    shares = (0.97, 0.6, 0.3, 0.1, 0.01)
    tokens = []
    for i, data in enumerate(parts):
        share = shares[(len(piece) + i) % len(shares)]
        others = [one(other, (1 - share) * part) for other, part in ((b' perhaps', 0.5), (b'\n', 0.3), (b'\xf0\x9f', 0.05))]
        top = sorted([one(data, share), *others], key=lambda t: -t['logprob'])
        tokens.append({**one(data, share), 'top_logprobs': top if share > 0.02 else [t for t in top if t['bytes'] != list(data)]})
    return tokens


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    state = State()
    folder = None

    def log_message(self, *_):
        pass

    def reply(self, status, body, kind='application/json', headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(data)))
        self.send_header('Content-Security-Policy', POLICY)
        self.send_header('X-Content-Type-Options', 'nosniff')
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def error(self, status, message, code=None, param=None, headers=()):
        self.reply(
            status,
            {'error': {'message': message, 'type': 'invalid_request_error', 'param': param, 'code': code}},
            headers=headers,
        )

    def allowed(self):
        if self.state.key and self.headers.get('Authorization') != f'Bearer {self.state.key}':
            self.error(401, 'Incorrect API key provided.', 'invalid_api_key')
            return False
        return True

    def do_GET(self):
        path = self.path.split('?')[0]
        if path == '/':
            path = '/page/index.html'
        elif path == '/status':
            path = '/page/status.html'
        if path == '/mock':
            s = self.state
            self.reply(200, {'last': s.last, 'asked': s.asked, 'aborted': s.aborted, 'counted': s.counted})
        elif path == '/v1/models':
            if self.allowed():
                self.reply(
                    200,
                    {
                        'object': 'list',
                        'data': [MODEL] + ([OTHER_MODEL] if self.state.two_models else []),
                    },
                )
        elif path == '/status.json':
            if self.allowed():
                self.reply(200, self.status())
        elif path.startswith('/page/') and '/' not in path[6:] and (self.folder / path[6:]).is_file():
            file = self.folder / path[6:]
            self.reply(200, file.read_bytes(), TYPES[file.suffix])
        else:
            self.error(404, 'There is nothing here.')

    def status(self):
        now = time.time() - self.state.begun
        wave = lambda period, low, high: (
            low + (high - low) * (0.5 + 0.5 * math.sin(now * 2 * math.pi / period)) * random.uniform(0.9, 1.1)
        )
        running = round(wave(40, 4, 32))
        self.state.tokens += round(wave(40, 200, 900))
        spread = lambda mean, p50: {
            'p50': p50,
            'p95': p50 * 2.1,
            'p99': p50 * 3.4,
            'max': p50 * 5,
            'mean': mean,
            'count': int(now * 20),
        }
        return {
            'model': 'SmolLM2-135M-Instruct',
            'uptime_s': now,
            'running': running,
            'waiting': round(wave(25, 0, 9)),
            'paused': round(wave(60, 0, 2)),
            'max_running': 32,
            'requests_total': 1200 + int(now * 3),
            'tokens_generated_total': 250000 + self.state.tokens,
            'tokens_prompt_total': 900000 + int(now * 1500),
            'kv_used_bytes': running * 24 * 2**20,
            'kv_total_bytes': 2**30,
            'prefix_hit_rate': 0.42,
            'preemptions_total': 3,
            'refused_total': 17,
            'step_ms': spread(12 + wave(30, -0.5, 0.5), 11),
            'batch_rows': spread(20 + wave(40, -1, 1), 18),
            'ttft_ms': spread(90 + wave(50, -3, 3), 70),
            'itl_ms': spread(15 + wave(40, -0.5, 0.5), 13),
            'e2e_ms': spread(1500 + wave(45, -50, 50), 1200),
            'draining': False,
        }

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get('Content-Length', 0))) or b'{}')
        if self.path == '/mock':
            if 'key' in body:
                self.state.key = body['key']
            self.state.two_models = body.get('two_models', self.state.two_models)
            self.reply(200, {})
        elif self.path == '/tokenize':
            if self.allowed():
                self.tokenize(body)
        elif self.path != '/v1/chat/completions':
            self.error(404, 'There is nothing here.')
        elif self.allowed():
            self.complete(body)

    def tokenize(self, body):
        self.state.counted += 1
        if 'messages' in body:
            tokens = prompt_tokens(body['messages'])
        else:
            tokens = len(words(body['content']))
        self.reply(200, {'tokens': list(range(tokens)), 'count': tokens, 'max_model_len': CONTEXT})

    def complete(self, body):
        state = self.state
        with state.lock:
            state.last = body
            state.asked += 1
            number = state.asked
        begun = body['messages'][-1]['content'] if body.get('continue_final_message') else ''
        said = body['messages'][-2 if begun else -1]['content']
        if 'error 429' in said:
            return self.error(
                429, 'All 64 places in the queue are taken.', 'rate_limit_exceeded', headers=[('Retry-After', '2')]
            )
        if 'error 503' in said:
            return self.error(503, 'The server is draining.')
        if 'error 400' in said:
            return self.error(400, 'temperature must be between 0 and 2.', param='temperature')
        if 'error context' in said:
            return self.error(
                400,
                f"This model's maximum context length is {CONTEXT} tokens; the request asks for 9310.",
                'context_length_exceeded',
                'messages',
            )
        if 'error 500' in said:
            return self.error(500, 'The step failed.')

        delay = 0.02 if 'slow' in said else 0.002
        thoughts, calls = [], []
        if 'think' in said:
            thoughts = words(THOUGHTS)
        if 'response_format' in body:
            text = '{"name": "Ada", "year": 1843}'
        elif 'script' in said or 'onerror' in said:
            text = HOSTILE
        elif 'markdown' in said or 'think' in said:
            text = MARKDOWN
        elif 'formula' in said:
            text = FORMULAS
        elif 'tool' in said:
            text, calls = 'I look it up.', ['{"city": ', '"Zürich", "unit": "°C"}']
        elif 'slow' in said:
            text = ' '.join(f'word{i}' for i in range(400))
        else:
            text = f'Answer {number}. You said: {said}'
        if begun:
            # An answer that was begun goes on where it ends; what the mock would have said first it has said.
            text = text[len(begun) :] if text.startswith(begun) else ' and so on.'
        length = 'be brief' in said.lower() and not begun
        if length:
            text = text[:20]
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Cache-Control', 'no-store')
        self.send_header('Connection', 'close')
        self.end_headers()
        self.close_connection = True
        made = 0

        prompt = prompt_tokens(body['messages'])
        continuous = body['stream_options'].get('continuous_usage_stats')

        def send(delta=None, finish=None, last=False, tokens=()):
            choice = {'index': 0, 'delta': delta or {}, 'finish_reason': finish}
            if body.get('logprobs') and tokens:
                choice['logprobs'] = {'content': list(tokens)}
            chunk = {
                'id': f'chatcmpl-{number}',
                'object': 'chat.completion.chunk',
                'model': body['model'],
                'choices': [] if last else [choice],
            }
            if last or continuous:
                chunk['usage'] = {'prompt_tokens': prompt, 'completion_tokens': made, 'total_tokens': prompt + made}
            data = b'data: ' + json.dumps(chunk, ensure_ascii=False).encode() + b'\n\n'
            # In two pieces, so that events and characters arrive cut.
            cut = random.randrange(1, len(data))
            for part in (data[:cut], data[cut:]):
                self.wfile.write(part)
                self.wfile.flush()

        try:
            time.sleep(0.05)
            send({'role': 'assistant', 'content': ''})
            for piece in thoughts:
                made += 1
                send({'reasoning_content': piece}, tokens=scored(piece))
                time.sleep(delay)
            for piece in words(text):
                made += 1
                send({'content': piece}, tokens=scored(piece))
                time.sleep(delay)
                if 'cut' in said and made > 3:
                    return None
                if 'error midway' in said and made > 3:
                    self.wfile.write(b'data: {"error": {"message": "The step failed.", "code": 500}}\n\n')
                    return None
            for i, piece in enumerate(calls):
                send(
                    {
                        'tool_calls': [
                            {
                                'index': 0,
                                **({'id': 'call_1', 'type': 'function'} if i == 0 else {}),
                                'function': {'name': 'get_weather' if i == 0 else '', 'arguments': piece},
                            }
                        ]
                    }
                )
                time.sleep(delay)
            send(finish='tool_calls' if calls else 'length' if length else 'stop')
            send(last=True)
            self.wfile.write(b'data: [DONE]\n\n')
        except (BrokenPipeError, ConnectionResetError):
            with state.lock:
                state.aborted += 1
        return None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a browser that goes away


def serve(folder, port=0):
    """A running server; its port is server.server_address[1]."""
    Handler.folder = pathlib.Path(folder)
    server = Server(('127.0.0.1', port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder')
    parser.add_argument('--port', type=int, default=8089)
    options = parser.parse_args()
    server = serve(options.folder, options.port)
    print(f'http://127.0.0.1:{server.server_address[1]}/', flush=True)
    threading.Event().wait()


if __name__ == '__main__':
    main()
