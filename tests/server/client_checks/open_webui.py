"""Its server beside ours: chats through its API over its OpenAI and its Ollama connection, streamed, a forced tool, cancelled."""
import atexit
import functools
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import httpx

from . import NotApplicable, same

ASK = [{'role': 'user', 'content': 'Name three colours.'}]
TOOLS = [{'type': 'function', 'function': {'name': 'get_weather', 'parameters': {'type': 'object', 'properties': {'city': {'enum': ['Paris', 'Oslo']}}, 'required': ['city']}}}]


@functools.cache
def started(url, key):
    """Its API, when it answers: a client with a token. It is ended with this program."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    folder = tempfile.TemporaryDirectory()
    told = {'DATA_DIR': folder.name, 'WEBUI_AUTH': 'False', 'WEBUI_SECRET_KEY': 'none', 'OPENAI_API_BASE_URL': url + '/v1', 'OPENAI_API_KEY': key, 'OLLAMA_BASE_URL': url,
            'OFFLINE_MODE': 'True', 'HF_HUB_OFFLINE': '1', 'RAG_EMBEDDING_ENGINE': 'openai', 'ENABLE_VERSION_UPDATE_CHECK': 'False', 'ANONYMIZED_TELEMETRY': 'False', 'DO_NOT_TRACK': 'true'}
    log = pathlib.Path(folder.name, 'log')
    with log.open('w') as to:
        program = subprocess.Popen([pathlib.Path(sys.executable).parent / 'open-webui', 'serve', '--host', '127.0.0.1', '--port', str(port)],
                                   cwd=folder.name, env={**os.environ, **told}, stdout=to, stderr=to)

    def end():
        program.terminate()
        program.wait(20)
        folder.cleanup()
    atexit.register(end)
    until = time.monotonic() + 240
    while True:
        try:
            token = httpx.post(f'http://127.0.0.1:{port}/api/v1/auths/signin', json={'email': '', 'password': ''}, timeout=60).json()['token']
            break
        except (httpx.TransportError, KeyError, ValueError):
            assert program.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
            time.sleep(1)
    return httpx.Client(base_url=f'http://127.0.0.1:{port}', headers={'Authorization': f'Bearer {token}'}, timeout=300)


def models(t):
    """The names of the model by connection; both connections have it."""
    return {each['owned_by']: each['id'] for each in started(t.url, t.key).get('/api/models').json()['data']}


def chat(t, model, **more):
    fixed = {'options': {'temperature': 0}} if model.endswith(':latest') else {'temperature': 0}  # beside max_tokens it hands on to Ollama what is in options
    reply = started(t.url, t.key).post('/api/chat/completions', json={'model': model, 'messages': ASK, 'max_tokens': 20, **fixed, **more})
    same(reply.status_code, 200, reply.text[:300])
    return reply


def both(t):
    """The connections that a key lets be asked: Ollama's has none."""
    return [name for connection, name in models(t).items() if connection == 'openai' or t.key == 'none']


def check_models(t):
    """open-webui: the model over both connections"""
    if t.key != 'none':
        raise NotApplicable('its Ollama connection sends no key')
    same(models(t), {'openai': t.model, 'ollama': t.model + ':latest'})


def check_first_example(t):
    """open-webui: a chat over both connections"""
    for model in both(t):
        assert chat(t, model, stream=False).json()['choices'][0]['message']['content']


def check_stream(t):
    """open-webui: a chat over both connections, streamed: the deltas are the whole"""
    for model in both(t):
        whole = chat(t, model, stream=False).json()['choices'][0]['message']['content']
        events = [json.loads(line[6:]) for line in chat(t, model, stream=True).text.splitlines() if line.startswith('data: {')]
        same(''.join(choice['delta'].get('content') or '' for event in events for choice in event.get('choices', [])), whole)


def check_tool(t):
    """open-webui: a tool that must be called, through /openai"""
    reply = started(t.url, t.key).post('/openai/chat/completions', json={'model': t.model, 'messages': ASK, 'max_tokens': 120, 'tools': TOOLS, 'tool_choice': 'required', 'stream': False})
    call = reply.json()['choices'][0]['message']['tool_calls'][0]['function']
    same(call['name'], 'get_weather')
    assert json.loads(call['arguments'])['city'] in ('Paris', 'Oslo')


def check_ollama(t):
    """open-webui: Ollama's chat, generate and embed, through /ollama"""
    if t.key != 'none':
        raise NotApplicable('its Ollama connection sends no key')
    model, ask = t.model + ':latest', started(t.url, t.key)
    for path, body, field in (('chat', {'messages': ASK}, 'message'), ('generate', {'prompt': 'Once'}, 'response'), ('embed', {'input': ['a dog', 'a cat']}, 'embeddings')):
        reply = ask.post('/ollama/api/' + path, json={'model': model, 'stream': False, 'options': {'num_predict': 8}, **body})
        same(reply.status_code, 200, path + reply.text[:300])
        assert reply.json()[field], path


def check_cancel(t):
    """open-webui: a stream over each connection that is left ends ours"""
    for model in both(t):
        with started(t.url, t.key).stream('POST', '/api/chat/completions', json={'model': model, 'messages': ASK, 'max_tokens': 4000, 'stream': True}) as reply:
            next(reply.iter_lines())
        t.wait_until_idle()
