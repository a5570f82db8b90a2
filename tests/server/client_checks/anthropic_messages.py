"""Messages, count_tokens: whole, streams, tools, parse, thinking, cancelled; replies strictly validated."""
import asyncio
import json
import typing

import anthropic
import httpx
import pydantic

from . import raises, same

HELLO = [{'role': 'user', 'content': 'Name three colours.'}]
WEATHER = {'name': 'get_weather', 'description': 'The weather of a city', 'input_schema': {
    'type': 'object', 'additionalProperties': False, 'required': ['city'], 'properties': {'city': {'type': 'string', 'enum': ['Paris', 'Oslo']}}}}
TIME = {'name': 'get_time', 'input_schema': {'type': 'object', 'additionalProperties': False, 'required': ['zone'], 'properties': {'zone': {'type': 'integer', 'minimum': 0, 'maximum': 9}}}}


class Colour(pydantic.BaseModel):  # without lengths: the client takes them out of the schema, and checks them
    name: typing.Literal['red', 'blue']
    warm: bool


def sync(t):
    return anthropic.Anthropic(base_url=t.url, api_key=t.key, max_retries=0, timeout=300, _strict_response_validation=True)


def given(t, extra_body=None, **more):
    # The client's own signature has no temperature since 2.x; the API has.
    return {'model': t.model, 'max_tokens': 16, 'messages': HELLO, 'extra_body': {'temperature': 0, **(extra_body or {})}, **more}


def create(t, **more):
    return sync(t).messages.create(**given(t, **more))


def text_of(message):
    return ''.join(block.text for block in message.content if block.type == 'text')


def check_whole(t):
    """messages: text, stop_reason max_tokens, usage; the same text as chat completions"""
    answer = create(t)
    same((answer.role, answer.type, answer.stop_reason, answer.stop_sequence), ('assistant', 'message', 'max_tokens', None))
    same(answer.usage.output_tokens, 16)
    chat = t.post('/v1/chat/completions', {'messages': HELLO, 'max_tokens': 16, 'temperature': 0}).json()
    same(text_of(answer), chat['choices'][0]['message']['content'])
    same(answer.usage.input_tokens + answer.usage.cache_read_input_tokens, chat['usage']['prompt_tokens'])


def check_stream(t):
    """messages stream: the sequence of events; the deltas are the whole answer"""
    events = list(create(t, stream=True))
    kinds = [event.type for event in events if event.type != 'ping']
    same(kinds[:2], ['message_start', 'content_block_start'])
    same(kinds[-3:], ['content_block_stop', 'message_delta', 'message_stop'])
    same(set(kinds[2:-3]), {'content_block_delta'})
    same(''.join(event.delta.text for event in events if event.type == 'content_block_delta'), text_of(create(t)))
    same(events[-2].delta.stop_reason, 'max_tokens')
    same(events[-2].usage.output_tokens, 16)
    assert events[0].message.usage.input_tokens > 0


def check_stream_names(t):
    """messages stream: every event is named after its type, ping is one of them"""
    body = {'model': t.model, 'max_tokens': 16, 'messages': HELLO, 'stream': True}
    names, types = [], []
    for line in t.post('/v1/messages', body).text.splitlines():
        if line.startswith('event: '):
            names.append(line[7:])
        if line.startswith('data: '):
            types.append(json.loads(line[6:])['type'])
    same(names, types)
    assert 'ping' in names


def check_stream_helper(t):
    """messages.stream(): text_stream, get_final_message()"""
    with sync(t).messages.stream(**given(t)) as stream:
        text = ''.join(stream.text_stream)
        final = stream.get_final_message()
    same(text, text_of(create(t)))
    same((text_of(final), final.stop_reason), (text, 'max_tokens'))


def check_abort(t):
    """messages stream closed in the middle: the request ends"""
    stream = create(t, stream=True, max_tokens=4000, extra_body={'ignore_eos': True})
    for _, _ in zip(range(6), stream):
        pass
    stream.close()
    t.wait_until_idle()


def check_system(t):
    """system as text and as blocks; content as blocks with cache_control"""
    as_text = text_of(create(t, system='Answer in French.'))
    blocks = [{'type': 'text', 'text': 'Answer in French.', 'cache_control': {'type': 'ephemeral'}}]
    same(text_of(create(t, system=blocks)), as_text)
    content = [{'role': 'user', 'content': [{'type': 'text', 'text': 'Name three colours.', 'cache_control': {'type': 'ephemeral'}}]}]
    same(text_of(create(t, messages=content)), text_of(create(t)))


def check_turns(t):
    """neighbours of one role are one turn; thinking blocks are read back"""
    messages = [{'role': 'user', 'content': 'Hello'}, {'role': 'user', 'content': 'Are you there?'},
                {'role': 'assistant', 'content': [{'type': 'thinking', 'thinking': 'A greeting.', 'signature': ''}, {'type': 'text', 'text': 'Yes.'}]}, *HELLO]
    assert text_of(create(t, messages=messages))


def check_prefill(t):
    """an assistant's message in the end is gone on with"""
    more = create(t, messages=[*HELLO, {'role': 'assistant', 'content': 'Red, green and'}])
    chat = t.post('/v1/chat/completions', {'messages': [*HELLO, {'role': 'assistant', 'content': 'Red, green and'}], 'continue_final_message': True,
                                           'max_tokens': 16, 'temperature': 0}).json()
    same(text_of(more), chat['choices'][0]['message']['content'])


def check_stop(t):
    """stop_sequences: stop_reason stop_sequence, and which"""
    text = text_of(create(t, max_tokens=24))
    word = text.split()[2]
    answer = create(t, max_tokens=24, stop_sequences=['nowhere to be found', word])
    same((answer.stop_reason, answer.stop_sequence), ('stop_sequence', word))
    same(text_of(answer), text[:text.index(word)])


def check_tools(t):
    """tools: any, tool, none, disable_parallel_tool_use; inputs hold to their schema; results are read"""
    for seed in range(3):
        more = {'tools': [WEATHER, TIME], 'max_tokens': 120, 'extra_body': {'seed': seed, 'temperature': 1}}
        answer = create(t, tool_choice={'type': 'any', 'disable_parallel_tool_use': True}, **more)
        same(answer.stop_reason, 'tool_use')
        calls = [block for block in answer.content if block.type == 'tool_use']
        same(len(calls), 1)
        assert calls[0].name in ('get_weather', 'get_time')
        named = create(t, tool_choice={'type': 'tool', 'name': 'get_weather'}, **more)
        first = [block for block in named.content if block.type == 'tool_use'][0]
        same(first.name, 'get_weather')
        assert first.input['city'] in ('Paris', 'Oslo')
        assert all(block.type == 'text' for block in create(t, tool_choice={'type': 'none'}, **more).content)
    result = [{'type': 'tool_result', 'tool_use_id': first.id, 'content': [{'type': 'text', 'text': '21 degrees'}]}, {'type': 'text', 'text': 'And now?'}]
    messages = [*HELLO, {'role': 'assistant', 'content': [first.model_dump(exclude_none=True)]}, {'role': 'user', 'content': result}]
    assert create(t, messages=messages, tools=[WEATHER, TIME]).stop_reason
    raises(anthropic.BadRequestError, lambda: create(t, messages=[*HELLO, {'role': 'user', 'content': result}]), 400)


def check_tool_stream(t):
    """a call streamed: input_json_delta pieces are the input"""
    with sync(t).messages.stream(**given(t, tools=[WEATHER], tool_choice={'type': 'any', 'disable_parallel_tool_use': True}, max_tokens=100)) as stream:
        pieces = [event.partial_json for event in stream if event.type == 'input_json']
        final = stream.get_final_message()
    call = [block for block in final.content if block.type == 'tool_use'][0]
    same(json.loads(''.join(pieces)), call.input)
    same((final.stop_reason, set(call.input)), ('tool_use', {'city'}))


def check_parse(t):
    """messages.parse(): output_config.format into a pydantic class"""
    answer = sync(t).messages.parse(**given(t, max_tokens=60, extra_body={'temperature': 1}), output_format=Colour)
    assert isinstance(answer.parsed_output, Colour)


def check_count(t):
    """count_tokens is what messages reads, with system and tools"""
    client = sync(t)
    for more in ({}, {'system': 'Be brief.'}, {'tools': [WEATHER]}):
        counted = client.messages.count_tokens(model=t.model, messages=HELLO, **more).input_tokens
        usage = create(t, **more).usage
        same(counted, usage.input_tokens + usage.cache_read_input_tokens)


def check_thinking(t):
    """thinking disabled, adaptive and enabled; top_k, top_p, metadata"""
    for thinking in ({'type': 'disabled'}, {'type': 'adaptive'}, {'type': 'enabled', 'budget_tokens': 1024}):
        assert create(t, thinking=thinking, max_tokens=1025 if thinking['type'] == 'enabled' else 8).content
    assert create(t, extra_body={'temperature': 1, 'top_k': 4, 'top_p': 0.9}, metadata={'user_id': 'someone'}).content


def check_async(t):
    """AsyncAnthropic: 8 at once equal one by one; a stream that is cancelled ends"""
    whole = text_of(create(t))

    async def main():
        client = anthropic.AsyncAnthropic(base_url=t.url, api_key=t.key, max_retries=0, _strict_response_validation=True)
        answers = await asyncio.gather(*[client.messages.create(**given(t)) for _ in range(8)])
        same({text_of(answer) for answer in answers}, {whole})

        async def endless():
            async with client.messages.stream(**given(t, max_tokens=4000, extra_body={'ignore_eos': True})) as stream:
                async for _ in stream:
                    pass
        task = asyncio.create_task(endless())
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()
    asyncio.run(main())
    t.wait_until_idle()


def check_errors(t):
    """errors: the right classes, in Anthropic's shape"""
    error = raises(anthropic.BadRequestError, lambda: create(t, extra_body={'temperature': 9}), 400)
    same((error.body['type'], error.body['error']['type']), ('error', 'invalid_request_error'))
    assert 'temperature' in error.body['error']['message']
    raises(anthropic.BadRequestError, lambda: create(t, extra_body={'output_schema': {}}), 400)
    assert create(t, extra_body={'no_such_field': 1}).content
    raises(anthropic.BadRequestError, lambda: create(t, messages=[]), 400)
    assert create(t, model='claude-none').model != 'claude-none'
    assert create(t, tools=[{'type': 'web_search_20250305', 'name': 'web_search'}]).content
    image = [{'role': 'user', 'content': [{'type': 'image', 'source': {'type': 'url', 'url': 'https://example.com/a.png'}}]}]
    raises(anthropic.BadRequestError, lambda: create(t, messages=image), 400)
    missing = httpx.post(t.url + '/v1/messages', json={'messages': HELLO}, headers=t.headers)
    same((missing.status_code, missing.json()['error']['type']), (400, 'invalid_request_error'))
    if t.key != 'none':
        wrong = anthropic.Anthropic(base_url=t.url, api_key='wrong', max_retries=0)
        raises(anthropic.AuthenticationError, lambda: wrong.messages.create(**given(t)), 401)
