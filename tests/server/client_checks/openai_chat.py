"""Models, chat completions, completions, embeddings: whole, streams, tools, parse, sync and async, cancelled; replies strictly validated."""
import asyncio
import base64
import json
import struct

import openai
import pydantic

from . import raises, same

PROMPT = [{'role': 'user', 'content': 'Name three colours.'}]
WEATHER = {'type': 'function', 'function': {
    'name': 'get_weather', 'description': 'The weather of a city', 'strict': True,
    'parameters': {'type': 'object', 'additionalProperties': False, 'required': ['city', 'unit'], 'properties': {
        'city': {'type': 'string', 'enum': ['Paris', 'Oslo']}, 'unit': {'type': 'string', 'enum': ['celsius', 'fahrenheit']}}}}}
TIME = {'type': 'function', 'function': {'name': 'get_time', 'parameters': {
    'type': 'object', 'additionalProperties': False, 'required': ['zone'], 'properties': {'zone': {'type': 'integer', 'minimum': 0, 'maximum': 9}}}}}


class Colour(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=12)
    warm: bool


def sync(t, strict=True):
    return openai.OpenAI(base_url=t.url + '/v1', api_key=t.key, max_retries=0, timeout=300, _strict_response_validation=strict)


def chat(t, **more):
    given = {'model': t.model, 'messages': PROMPT, 'max_tokens': 16, 'temperature': 0, **more}
    return sync(t).chat.completions.create(**given)


def check_models(t):
    """models.list and models.retrieve; a name that is none is NotFoundError"""
    client = sync(t)
    same([each.id for each in client.models.list()], [t.model])
    same(client.models.retrieve(t.model).owned_by, 'tessera')
    raises(openai.NotFoundError, lambda: client.models.retrieve('gpt-none'), 404)


def check_chat_whole(t):
    """chat: content, usage that adds up, finish_reason length"""
    answer = chat(t, max_tokens=5)
    same(answer.choices[0].finish_reason, 'length')
    assert answer.choices[0].message.content
    same(answer.usage.completion_tokens, 5, 'completion_tokens')
    same(answer.usage.total_tokens, answer.usage.prompt_tokens + 5, 'total_tokens')
    assert answer.usage.prompt_tokens_details.cached_tokens >= 0
    same(answer.usage.completion_tokens_details.reasoning_tokens, 0)


def check_chat_stream(t):
    """chat stream: the deltas are the whole answer, usage comes last with no choices"""
    whole = chat(t).choices[0].message.content
    chunks = list(chat(t, stream=True, stream_options={'include_usage': True}))
    same(chunks[0].choices[0].delta.role, 'assistant')
    same(''.join(c.choices[0].delta.content or '' for c in chunks if c.choices), whole)
    same([c.choices[0].finish_reason for c in chunks if c.choices][-1], 'length')
    same(chunks[-1].choices, [])
    same(chunks[-1].usage.completion_tokens, 16)
    same({c.id for c in chunks}, {chunks[0].id})
    assert all(c.usage is None for c in chunks[:-1])


def check_chat_stream_helper(t):
    """chat.completions.stream(): events, get_final_completion()"""
    ended = {'extra_body': {'guided_regex': '[a-z]{4,9}[.]'}}  # it raises where an answer is cut
    with sync(t).chat.completions.stream(model=t.model, messages=PROMPT, temperature=0, **ended) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {'chunk', 'content.delta', 'content.done'} <= kinds, kinds
    same(final.choices[0].message.content, chat(t, **ended).choices[0].message.content)


def check_chat_abort(t):
    """chat stream closed in the middle: the request ends, the server goes on"""
    for _ in range(3):
        stream = chat(t, max_tokens=2000, stream=True, extra_body={'ignore_eos': True})
        for _, _ in zip(range(3), stream):
            pass
        stream.close()
    t.wait_until_idle()
    assert chat(t).choices[0].message.content


def check_chat_n(t):
    """n = 3: three choices by index, usage of them all"""
    answer = chat(t, n=3, temperature=1, seed=7, max_tokens=6, extra_body={'ignore_eos': True})
    same([c.index for c in answer.choices], [0, 1, 2])
    same(answer.usage.completion_tokens, 18)
    assert len({c.message.content for c in answer.choices}) > 1, 'three samples are one text'
    seen = {c.choices[0].index for c in chat(t, n=3, stream=True, max_tokens=4)}
    same(seen, {0, 1, 2})


def check_chat_logprobs(t):
    """logprobs and top_logprobs: a token each, sorted, bytes that are the text; streamed too"""
    answer = chat(t, logprobs=True, top_logprobs=3, max_tokens=6, extra_body={'ignore_eos': True})
    content = answer.choices[0].logprobs.content
    same(len(content), 6)
    for token in content:
        same(len(token.top_logprobs), 3)
        tops = [each.logprob for each in token.top_logprobs]
        same(tops, sorted(tops, reverse=True))
        same(token.logprob, tops[0], 'the greedy token')
        assert token.logprob <= 0
    joined = b''.join(bytes(each.bytes) for each in content).decode()
    assert answer.choices[0].message.content.strip() in joined
    chunks = chat(t, logprobs=True, max_tokens=6, stream=True, extra_body={'ignore_eos': True})
    streamed = [each for c in chunks if c.choices and c.choices[0].logprobs for each in c.choices[0].logprobs.content]
    same([each.token for each in streamed], [each.token for each in content])


def check_chat_logit_bias(t):
    """logit_bias: -100 bans the greedy token, a large bias chooses one"""
    first = chat(t, logprobs=True, max_tokens=1).choices[0].logprobs.content[0].token
    token = t.post('/tokenize', {'prompt': ' banana', 'add_special_tokens': False}).json()['tokens'][0]
    chosen = chat(t, max_tokens=3, logit_bias={str(token): 99}).choices[0].message.content
    same(len(set(chosen.split())), 1, 'words of the answer')
    ids = t.post('/tokenize', {'prompt': first, 'add_special_tokens': False}).json()['tokens']
    if len(ids) == 1:
        other = chat(t, logprobs=True, max_tokens=1, logit_bias={str(ids[0]): -100}).choices[0].logprobs.content[0].token
        assert other != first, f'{first!r} came although it is banned'


def check_chat_seed(t):
    """seed: the same seed draws the same answer, another one another"""
    draw = lambda seed: chat(t, temperature=1, seed=seed, max_tokens=24).choices[0].message.content  # noqa: E731
    same(draw(11), draw(11))
    assert len({draw(seed) for seed in range(4)}) > 1


def check_chat_stop(t):
    """stop: the answer ends before it, with finish_reason stop"""
    text = chat(t, max_tokens=24).choices[0].message.content
    word = text.split()[2]
    answer = chat(t, max_tokens=24, stop=[word]).choices[0]
    same(answer.message.content, text[:text.index(word)])
    same(answer.finish_reason, 'stop')


def check_chat_parse(t):
    """chat.completions.parse() into a pydantic class, at temperature 1"""
    for seed in range(3):
        answer = sync(t).chat.completions.parse(model=t.model, messages=PROMPT, response_format=Colour, max_tokens=60, temperature=1, seed=seed)
        assert isinstance(answer.choices[0].message.parsed, Colour)


def check_chat_json_object(t):
    """response_format json_object: the answer is an object"""
    answer = chat(t, response_format={'type': 'json_object'}, max_tokens=120, temperature=1, seed=3)
    if answer.choices[0].finish_reason == 'length':  # the model may write more than that
        assert answer.choices[0].message.content.lstrip().startswith('{')
    else:
        assert isinstance(json.loads(answer.choices[0].message.content), dict)


def checked_call(call, names):
    arguments = json.loads(call.function.arguments)
    assert call.function.name in names, call.function.name
    assert call.id and call.type == 'function'
    if call.function.name == 'get_weather':
        same(set(arguments), {'city', 'unit'})
        assert arguments['city'] in ('Paris', 'Oslo')
    else:
        assert 0 <= arguments['zone'] <= 9
    return call


def check_chat_tools(t):
    """tools: required, named, allowed_tools, none; parallel_tool_calls false; arguments hold to their schema"""
    tools = [WEATHER, TIME]
    for seed in range(3):
        more = {'tools': tools, 'max_tokens': 120, 'temperature': 1, 'seed': seed, 'parallel_tool_calls': False}
        answer = chat(t, tool_choice='required', **more).choices[0]
        same(answer.finish_reason, 'tool_calls')
        same(len(answer.message.tool_calls), 1)
        checked_call(answer.message.tool_calls[0], ('get_weather', 'get_time'))
        named = chat(t, tool_choice={'type': 'function', 'function': {'name': 'get_time'}}, **more).choices[0]
        checked_call(named.message.tool_calls[0], ('get_time',))
        allowed = {'type': 'allowed_tools', 'allowed_tools': {'mode': 'required', 'tools': [{'type': 'function', 'function': {'name': 'get_weather'}}]}}
        checked_call(chat(t, tool_choice=allowed, **more).choices[0].message.tool_calls[0], ('get_weather',))
        assert not chat(t, tool_choice='none', **more).choices[0].message.tool_calls
    chat(t, tools=tools)  # auto: what the model makes of it


def check_chat_tool_stream(t):
    """tools streamed: id and name first, the pieces of the arguments are the whole"""
    with sync(t).chat.completions.stream(model=t.model, messages=PROMPT, tools=[WEATHER], tool_choice='required', parallel_tool_calls=False,
                                         max_tokens=120, temperature=0) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    call = checked_call(final.choices[0].message.tool_calls[0], ('get_weather',))
    assert any(event.type == 'tool_calls.function.arguments.done' for event in events)
    pieces = [d for e in events if e.type == 'chunk' and e.chunk.choices for d in e.chunk.choices[0].delta.tool_calls or []]
    same(pieces[0].function.name, 'get_weather')
    same(''.join(piece.function.arguments or '' for piece in pieces), call.function.arguments)


def check_chat_tool_results(t):
    """a call and its result in the messages are read, and answered"""
    call = chat(t, tools=[WEATHER], tool_choice='required', parallel_tool_calls=False, max_tokens=120).choices[0].message
    messages = [*PROMPT, call.model_dump(exclude_none=True), {'role': 'tool', 'tool_call_id': call.tool_calls[0].id, 'content': '21 degrees'}]
    answer = chat(t, messages=messages, tools=[WEATHER])
    assert answer.choices[0].finish_reason in ('stop', 'length', 'tool_calls')


def check_chat_content(t):
    """content parts, developer messages, continue_final_message; an image is BadRequestError that names it"""
    parts = chat(t, messages=[{'role': 'user', 'content': [{'type': 'text', 'text': 'Name three'}, {'type': 'text', 'text': ' colours.'}]}])
    same(parts.choices[0].message.content, chat(t).choices[0].message.content)
    chat(t, messages=[{'role': 'developer', 'content': 'Be brief.'}, *PROMPT])
    more = chat(t, messages=[*PROMPT, {'role': 'assistant', 'content': 'Red, green and'}], extra_body={'continue_final_message': True})
    assert more.choices[0].message.content
    image = [{'role': 'user', 'content': [{'type': 'image_url', 'image_url': {'url': 'https://example.com/a.png'}}]}]
    raises(openai.BadRequestError, lambda: chat(t, messages=image), 400, 'messages[0].content[0].type')


def check_chat_errors(t):
    """errors: the right classes, status and param; a context that is too long is a 400"""
    raises(openai.BadRequestError, lambda: chat(t, temperature=9), 400, 'temperature')
    raises(openai.BadRequestError, lambda: chat(t, messages=[]), 400, 'messages')
    raises(openai.BadRequestError, lambda: chat(t, extra_body={'guided_decoding_backend': 'x'}), 400, 'guided_decoding_backend')
    assert chat(t, extra_body={'no_such_field': 1}).choices
    raises(openai.BadRequestError, lambda: chat(t, n=0), 400, 'n')
    raises(openai.BadRequestError, lambda: chat(t, tool_choice='required'), 400, 'tool_choice')
    raises(openai.BadRequestError, lambda: chat(t, response_format={'type': 'json_schema', 'json_schema': {'name': 'x', 'schema': {'type': 'nothing'}}}), 400,
           'response_format')
    assert chat(t, model='gpt-none').model != 'gpt-none'
    context = t.get('/v1/models').json()['data'][0]['max_model_len']
    error = raises(openai.BadRequestError, lambda: chat(t, messages=[{'role': 'user', 'content': 'word ' * context}]), 400)
    same(error.code, 'context_length_exceeded')
    raises(openai.BadRequestError, lambda: chat(t, temperature=9, stream=True), 400, 'temperature')
    if t.key != 'none':
        wrong = sync(t).with_options(api_key='wrong')
        raises(openai.AuthenticationError, lambda: wrong.models.list(), 401)


def check_chat_extensions(t):
    """extensions: top_k, min_p, repetition_penalty, priority, deadline_ms, guided_regex, grammar, guided_json"""
    answer = chat(t, temperature=1, extra_body={'top_k': 5, 'min_p': 0.05, 'repetition_penalty': 1.1, 'repeat_last_n': 32, 'priority': -1, 'deadline_ms': 600000})
    assert answer.choices[0].message.content is not None
    text = chat(t, temperature=1, extra_body={'guided_regex': '(red|blue) [0-9]{3}'}).choices[0].message.content
    assert text.split()[0] in ('red', 'blue') and len(text.split()[1]) == 3, text
    same(chat(t, extra_body={'grammar': 'root ::= "yes"'}).choices[0].message.content, 'yes')
    same(json.loads(chat(t, max_tokens=40, extra_body={'guided_json': {'enum': [4, 'four']}}).choices[0].message.content) in (4, 'four'), True)


def check_async(t):
    """AsyncOpenAI: 8 at once equal one by one; a stream that is cancelled ends"""
    whole = chat(t).choices[0].message.content

    async def main():
        client = openai.AsyncOpenAI(base_url=t.url + '/v1', api_key=t.key, max_retries=0, _strict_response_validation=True)
        given = {'model': t.model, 'messages': PROMPT, 'temperature': 0}
        answers = await asyncio.gather(*[client.chat.completions.create(max_tokens=16, **given) for _ in range(8)])
        same({answer.choices[0].message.content for answer in answers}, {whole})
        text = ''
        async for chunk in await client.chat.completions.create(max_tokens=16, stream=True, **given):
            text += chunk.choices[0].delta.content or ''
        same(text, whole)

        async def endless():
            async for _ in await client.chat.completions.create(max_tokens=4000, stream=True, extra_body={'ignore_eos': True}, **given):
                pass
        task = asyncio.create_task(endless())
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()
    asyncio.run(main())
    t.wait_until_idle()


def check_completions(t):
    """completions: whole, stream, several prompts, token ids, echo, logprobs, n"""
    client = sync(t)
    given = {'model': t.model, 'temperature': 0, 'max_tokens': 8}
    one = client.completions.create(prompt='Once upon a time', **given)
    # Not strict: the client's type has no null for finish_reason, which is what OpenAI streams until the end.
    streamed = ''.join(c.choices[0].text for c in sync(t, strict=False).completions.create(prompt='Once upon a time', stream=True, **given) if c.choices)
    same(streamed, one.choices[0].text)
    two = client.completions.create(prompt=['Once upon a time', 'The cat'], **given)
    same(two.choices[0].text, one.choices[0].text)
    same([c.index for c in two.choices], [0, 1])
    ids = t.post('/tokenize', {'prompt': 'Once upon a time'}).json()['tokens']
    same(client.completions.create(prompt=ids, **given).choices[0].text, one.choices[0].text)
    echo = client.completions.create(prompt='Once upon a time', echo=True, **given)
    same(echo.choices[0].text, 'Once upon a time' + one.choices[0].text)
    likely = client.completions.create(prompt='Once', logprobs=2, **given).choices[0].logprobs
    same(len(likely.tokens), len(likely.token_logprobs))
    assert all(len(each) <= 2 for each in likely.top_logprobs)
    same(len(client.completions.create(prompt=['a', 'b'], n=2, **given).choices), 4)


def check_embeddings(t):
    """embeddings: float and base64 are the same numbers, of length 1; several texts"""
    client = sync(t)
    whole = client.embeddings.create(model=t.model, input=['a cat', 'a dog'], encoding_format='float')
    same([each.index for each in whole.data], [0, 1])
    assert abs(sum(x * x for x in whole.data[0].embedding) - 1) < 1e-4
    raw = t.post('/v1/embeddings', {'input': 'a cat', 'encoding_format': 'base64'}).json()['data'][0]['embedding']
    numbers = struct.unpack(f'<{len(whole.data[0].embedding)}f', base64.b64decode(raw))
    assert max(abs(a - b) for a, b in zip(numbers, whole.data[0].embedding)) < 1e-5
    # Asked for nothing, the client asks for base64 and opens it after its own validation, which a strict one does not pass.
    opened = sync(t, strict=False).embeddings.create(model=t.model, input='a cat').data[0].embedding
    same(list(numbers), list(opened))
