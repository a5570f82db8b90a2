"""PyPI's ollama client, sync and async."""
import asyncio
import json

import httpx
import ollama
import pydantic

from . import raises, same

HELLO = [{'role': 'user', 'content': 'Say hello.'}]
SHORT = {'num_predict': 16, 'temperature': 0}


class Forced(httpx.HTTPTransport):
    """Ollama's API cannot demand a call, and a small model does not call of itself: the server's tool_choice is put into the body."""

    def handle_request(self, request):
        body = json.loads(request.read())
        if body.get('tools') and body['messages'][-1]['role'] != 'tool':
            body['tool_choice'] = 'required'
        content = json.dumps(body).encode()
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b'content-length']
        return super().handle_request(httpx.Request(request.method, request.url, headers=headers, content=content, extensions=request.extensions))


def client(t, **more):
    return ollama.Client(host=t.url, headers=t.headers, **more)


def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
      a: the first number
      b: the second number
    """
    return a + b


class Pet(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=12)
    age: int = pydantic.Field(ge=0, le=20)


def check_chat(t):
    """chat: the answer, counts, durations, why it ended"""
    got = client(t).chat(t.model, messages=HELLO, options=SHORT)
    same(got.model, t.model)
    same(got.message.role, 'assistant')
    assert got.message.content and got.done and got.done_reason in ('stop', 'length'), got
    assert 0 < got.eval_count <= 16 and got.prompt_eval_count > 0 and got.total_duration >= got.eval_duration > 0, got


def check_chat_stream(t):
    """chat: a stream says what the whole answer says"""
    whole = client(t).chat(t.model, messages=HELLO, options=SHORT)
    parts = list(client(t).chat(t.model + ':latest', messages=HELLO, options=SHORT, stream=True))
    same(''.join(part.message.content for part in parts), whole.message.content)
    same([part.done for part in parts], [False] * (len(parts) - 1) + [True])
    same(parts[-1].eval_count, whole.eval_count)
    same({part.model for part in parts}, {t.model + ':latest'})


def check_generate(t):
    """generate: with a system text, raw, streamed"""
    c = client(t)
    turn = c.generate(t.model, 'Say hello.', system='Be brief.', options=SHORT)
    same(turn.response, c.chat(t.model, [{'role': 'system', 'content': 'Be brief.'}, *HELLO], options=SHORT).message.content)
    raw = c.generate(t.model, 'Once upon a time', raw=True, options=SHORT)
    same(''.join(part.response for part in c.generate(t.model, 'Once upon a time', raw=True, options=SHORT, stream=True)), raw.response)
    assert raw.prompt_eval_count < turn.prompt_eval_count, (raw, turn)


def check_load(t):
    """load and unload: done_reason"""
    same(client(t).generate(t.model, keep_alive='5m').done_reason, 'load')
    same(client(t).chat(t.model, keep_alive=0).done_reason, 'unload')


def check_options(t):
    """options: seed, stop, num_ctx and those of a machine"""
    c = client(t)
    drawn = [c.generate(t.model, 'Tell me a story.', options={'seed': seed, 'temperature': 1.5, 'num_predict': 24, 'num_gpu': 0}).response for seed in (1, 1, 2)]
    same(drawn[0], drawn[1])
    assert drawn[0] != drawn[2], drawn
    stopped = c.generate(t.model, 'Tell me a story.', options=ollama.Options(temperature=0, stop=[' the']))
    assert ' the' not in stopped.response and stopped.done_reason == 'stop', stopped
    same(c.generate(t.model, 'a', raw=True, options={'num_ctx': 8, 'num_predict': 100, 'ignore_eos': True}).done_reason, 'length')


def check_tools(t):
    """tools: a Python function, its call (forced), and the answer to its result"""
    c = client(t, transport=Forced())
    messages = [{'role': 'user', 'content': 'What is 3 plus 4?'}]
    got = c.chat(t.model, messages=messages, tools=[add], options={'temperature': 0, 'num_predict': 200})
    call = got.message.tool_calls[0].function
    same(call.name, 'add')
    same(sorted(call.arguments), ['a', 'b'])
    result = add(**call.arguments)
    messages += [got.message, {'role': 'tool', 'tool_name': call.name, 'content': str(result)}]
    assert c.chat(t.model, messages=messages, tools=[add], options=SHORT).done
    parts = list(c.chat(t.model, messages=messages[:1], tools=[add], options={'temperature': 0, 'num_predict': 200}, stream=True))
    calls = [each for part in parts for each in part.message.tool_calls or []]
    same([each.function.arguments for each in calls], [each.function.arguments for each in got.message.tool_calls])


def check_format(t):
    """format: json, and a pydantic schema, in chat and generate"""
    c = client(t)
    for kind in (c.chat, c.generate):
        given = {'messages': [{'role': 'user', 'content': 'Make up a pet.'}]} if kind == c.chat else {'prompt': 'Make up a pet.'}
        got = kind(t.model, **given, format=Pet.model_json_schema(), options={'temperature': 0})
        Pet.model_validate_json(got.message.content if kind == c.chat else got.response)
    free = c.chat(t.model, messages=[{'role': 'user', 'content': 'Make up a pet, as JSON.'}], format='json', options={'num_predict': 200, 'temperature': 0, 'repeat_penalty': 1.3})
    if free.done_reason == 'stop':
        json.loads(free.message.content)


def check_think(t):
    """think: refused where the model has no reasoning, and false is nothing"""
    c = client(t)
    if 'thinking' in c.show(t.model).capabilities:
        assert c.chat(t.model, messages=HELLO, think=True, options={'num_predict': 64}).message.thinking
    else:
        error = raises(ollama.ResponseError, lambda: c.chat(t.model, messages=HELLO, think=True), 400)
        assert 'does not support thinking' in error.error, error
    assert not c.chat(t.model, messages=HELLO, think=False, options=SHORT).message.thinking


def check_logprobs(t):
    """logprobs and top_logprobs"""
    got = client(t).chat(t.model, messages=HELLO, logprobs=True, top_logprobs=3, options={'num_predict': 4, 'temperature': 0})
    same(len(got.logprobs), got.eval_count)
    same([len(each.top_logprobs) for each in got.logprobs], [3] * len(got.logprobs))


def check_embed(t):
    """embed: one text, several, dimensions; the old embeddings"""
    c = client(t)
    two = c.embed(t.model, ['a dog', 'a cat'])
    same(len(two.embeddings), 2)
    same(c.embed(t.model, 'a dog').embeddings[0], two.embeddings[0])
    assert abs(sum(x * x for x in two.embeddings[1]) - 1) < 1e-3
    same(len(c.embed(t.model, 'a dog', dimensions=16).embeddings[0]), 16)
    same(list(c.embeddings(t.model, 'a dog').embedding), list(two.embeddings[0]))


def check_models(t):
    """list, show, ps"""
    c = client(t)
    listed = c.list().models
    same([each.model for each in listed], [t.model + ':latest'])
    assert listed[0].size > 0 and listed[0].modified_at and len(listed[0].digest) == 64
    shown = c.show(t.model)
    assert 'completion' in shown.capabilities and shown.modelinfo['general.architecture'] == shown.details.family, shown
    assert shown.modelinfo[shown.details.family + '.context_length'] > 0
    running = c.ps().models
    same(running[0].name, t.model + ':latest')
    assert running[0].context_length > 0 and running[0].expires_at


def check_errors(t):
    """errors: a field that is wrong, pictures, and what would change the models"""
    c = client(t)
    error = raises(ollama.ResponseError, lambda: c.chat(t.model, messages=HELLO, options={'top_p': 7}), 400)
    assert error.error.startswith('options.top_p: '), error.error
    error = raises(ollama.ResponseError, lambda: c.chat(t.model, messages=[{**HELLO[0], 'images': [b'\x89PNG']}]), 400)
    assert 'pictures' in error.error, error.error
    raises(ollama.ResponseError, lambda: list(c.generate(t.model, 'a', suffix='b', stream=True)), 400)
    for call in (lambda: c.pull('llama3'), lambda: c.push('llama3'), lambda: c.copy('a', 'b'), lambda: c.delete('a'), lambda: c.create('a', from_='b')):
        raises(ollama.ResponseError, call, 501)


def check_cancel(t):
    """a stream that is left in the middle ends its request"""
    stream = client(t).chat(t.model, messages=HELLO, options={'ignore_eos': True, 'num_predict': 4000}, stream=True)
    next(stream)
    stream.close()
    t.wait_until_idle()


def check_async(t):
    """AsyncClient: several at once, streamed, and one that is cancelled"""
    async def run():
        c = ollama.AsyncClient(host=t.url, headers=t.headers)

        async def say():
            return ''.join([part.message.content async for part in await c.chat(t.model, messages=HELLO, options=SHORT, stream=True)])
        same(len(set(await asyncio.gather(*(say() for _ in range(4))))), 1)
        long = asyncio.create_task(c.chat(t.model, messages=HELLO, options={'ignore_eos': True, 'num_predict': 4000}))
        await asyncio.sleep(0.3)
        long.cancel()
        await asyncio.wait([long])
        await asyncio.sleep(0.1)  # for the loop to close the connection
    asyncio.run(run())
    t.wait_until_idle()
