"""Responses: whole, streams, tools, parse, reasoning, cancelled; replies strictly validated."""
import json

import openai

from . import raises, same
from .openai_chat import Colour, sync

FLAT = {'type': 'function', 'name': 'get_weather', 'description': 'The weather of a city', 'strict': True, 'parameters': {
    'type': 'object', 'additionalProperties': False, 'required': ['city'], 'properties': {'city': {'type': 'string', 'enum': ['Paris', 'Oslo']}}}}


def create(t, **more):
    return sync(t).responses.create(**{'model': t.model, 'input': 'Name three colours.', 'max_output_tokens': 24, 'temperature': 0, 'store': False, **more})


def check_whole(t):
    """responses: text, the five fields of usage, incomplete with its reason"""
    answer = create(t, max_output_tokens=5)
    same((answer.status, answer.incomplete_details.reason), ('incomplete', 'max_output_tokens'))
    assert answer.output_text
    usage = answer.usage
    same(usage.output_tokens, 5)
    same(usage.total_tokens, usage.input_tokens + 5)
    same((usage.output_tokens_details.reasoning_tokens, answer.store, answer.error), (0, False, None))
    assert usage.input_tokens_details.cached_tokens >= 0
    done = create(t, max_output_tokens=400, text={'format': {'type': 'json_schema', 'name': 'yes', 'schema': {'type': 'boolean'}}})
    same((done.status, done.incomplete_details), ('completed', None))


def check_input(t):
    """responses: items, instructions and developer messages read as chat messages are"""
    text = create(t).output_text
    same(create(t, input=[{'role': 'user', 'content': 'Name three colours.'}]).output_text, text)
    parts = [{'type': 'message', 'role': 'user', 'content': [{'type': 'input_text', 'text': 'Name three colours.'}]}]
    same(create(t, input=parts).output_text, text)
    told = create(t, instructions='Answer in French.')
    same(told.instructions, 'Answer in French.')
    same(create(t, input=[{'role': 'developer', 'content': 'Answer in French.'}, {'role': 'user', 'content': 'Name three colours.'}]).output_text, told.output_text)


def check_stream(t):
    """responses stream: the sequence of events, numbers without gaps, deltas that are the whole"""
    whole = create(t)
    events = list(create(t, stream=True))
    same([event.sequence_number for event in events], list(range(len(events))))
    kinds = [event.type for event in events]
    same(kinds[:4], ['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added'])
    last = 'response.completed' if whole.status == 'completed' else 'response.incomplete'
    same(kinds[-4:], ['response.output_text.done', 'response.content_part.done', 'response.output_item.done', last])
    same(set(kinds[4:-4]), {'response.output_text.delta'})
    same(''.join(event.delta for event in events if event.type == 'response.output_text.delta'), whole.output_text)
    same(events[-1].response.output_text, whole.output_text)
    same(events[-1].response.usage.output_tokens, whole.usage.output_tokens)


def check_stream_helper(t):
    """responses.stream(): get_final_response()"""
    with sync(t).responses.stream(model=t.model, input='Name three colours.', temperature=0, store=False, text_format=Colour, max_output_tokens=60) as stream:
        for _ in stream:
            pass
        final = stream.get_final_response()
    assert isinstance(final.output_parsed, Colour)


def check_abort(t):
    """responses stream closed in the middle: the request ends"""
    stream = create(t, stream=True, max_output_tokens=4000, extra_body={'ignore_eos': True})
    for _, _ in zip(range(6), stream):
        pass
    stream.close()
    t.wait_until_idle()


def check_parse(t):
    """responses.parse() into a pydantic class, at temperature 1"""
    for seed in range(3):
        answer = sync(t).responses.parse(model=t.model, input='A colour', text_format=Colour, temperature=1, max_output_tokens=60, store=False, extra_body={'seed': seed})
        assert isinstance(answer.output_parsed, Colour)


def check_tools(t):
    """responses tools: required and named calls, streamed too; their results are read"""
    more = {'tools': [FLAT], 'parallel_tool_calls': False, 'max_output_tokens': 100}
    answer = create(t, tool_choice='required', **more)
    call = answer.output[-1]
    same((call.type, call.name, answer.status), ('function_call', 'get_weather', 'completed'))
    assert json.loads(call.arguments)['city'] in ('Paris', 'Oslo')
    named = create(t, tool_choice={'type': 'function', 'name': 'get_weather'}, **more)
    same(named.output[-1].name, 'get_weather')
    events = list(create(t, tool_choice='required', stream=True, **more))
    pieces = ''.join(event.delta for event in events if event.type == 'response.function_call_arguments.delta')
    done = [event for event in events if event.type == 'response.function_call_arguments.done'][0]
    same((pieces, done.name), (done.arguments, 'get_weather'))
    same(events[-1].response.output[-1].arguments, pieces)
    items = [{'role': 'user', 'content': 'Weather?'}, *[item.model_dump(exclude_none=True) for item in answer.output],
             {'type': 'function_call_output', 'call_id': call.call_id, 'output': '21 degrees'}]
    assert create(t, input=items, **more).output
    raises(openai.BadRequestError, lambda: create(t, input=items[-1:]), 400, 'input[0].call_id')


def check_reasoning(t):
    """responses: reasoning items are read back, reasoning.effort and include are accepted"""
    items = [{'role': 'user', 'content': 'Hi'}, {'type': 'reasoning', 'id': 'rs_1', 'summary': [], 'content': [{'type': 'reasoning_text', 'text': 'A greeting.'}]},
             {'role': 'assistant', 'content': 'Hello'}, {'role': 'user', 'content': 'Name three colours.'}]
    answer = create(t, input=items, reasoning={'effort': 'low'}, include=['reasoning.encrypted_content'])
    same(answer.reasoning.effort, 'low')
    likely = create(t, include=['message.output_text.logprobs'], top_logprobs=2, max_output_tokens=4)
    logprobs = likely.output[-1].content[0].logprobs
    assert logprobs and all(len(each.top_logprobs) == 2 for each in logprobs)


def check_store(t):
    """responses: previous_response_id and conversation are BadRequestErrors that name the field; store and any model are accepted"""
    raises(openai.BadRequestError, lambda: create(t, previous_response_id='resp_1'), 400, 'previous_response_id')
    raises(openai.BadRequestError, lambda: create(t, conversation='conv_1'), 400, 'conversation')
    assert create(t, store=True).store is False
    assert create(t, tools=[{'type': 'web_search'}]).output
    assert create(t, input=[]).output
    same(create(t, model='gpt-none').model, t.model)
