"""Its first example by from_openai and from_vllm: classes, Literal, regex, grammars (guided fields), streams, async, cancelled."""
import asyncio
import json
import typing

import openai
import outlines
import pydantic
from outlines.types import CFG, Regex

from . import same

ASK = 'Name a colour.'
GIVEN = {'max_tokens': 60, 'temperature': 0}


class Character(pydantic.BaseModel):
    name: typing.Literal['Ann', 'Bob']
    age: int = pydantic.Field(ge=1, le=99)


def client(t, kind=openai.OpenAI):
    return kind(base_url=t.url + '/v1', api_key=t.key, max_retries=0)


def check_first_example(t):
    """outlines: from_openai, a text and a pydantic class"""
    model = outlines.from_openai(client(t), t.model)
    assert model(ASK, **GIVEN)
    Character.model_validate_json(model('Create a character.', Character, **GIVEN))
    Character.model_validate_json(outlines.Generator(model, Character)('Create a character.', **GIVEN))


def check_vllm_types(t):
    """outlines: from_vllm, a class, Literal, int, a regular expression"""
    model = outlines.from_vllm(client(t), t.model)
    Character.model_validate_json(model('Create a character.', Character, **GIVEN))
    assert model('Is it good?', typing.Literal['Positive', 'Negative'], **GIVEN) in ('Positive', 'Negative')
    int(model('How many?', int, **{**GIVEN, 'max_tokens': 300, 'temperature': 1}))
    text = model('Give an IP address.', Regex(r'(\d{1,2}\.){3}\d{1,2}'), **GIVEN)
    same(len(text.split('.')), 4)


def check_vllm_grammar(t):
    """outlines: from_vllm, a grammar in Lark, as vLLM takes it"""
    model = outlines.from_vllm(client(t), t.model)
    text = model('2 + 2', CFG('?start: sum\n?sum: NUMBER | NUMBER ("+" | "-") NUMBER\nNUMBER: /[0-9]{1,3}/\n'), **GIVEN)
    assert all(c in '0123456789+-' for c in text) and text, text
    text = model('2 + 2', CFG('root ::= [0-9] " + " [0-9]\n'), **GIVEN)
    same(len(text), 5)


def check_guided_fields(t):
    """vLLM's fields by extra_body: guided_json, guided_regex, guided_choice, guided_grammar, structured_outputs"""
    for field, value, pattern in (('guided_json', {'type': 'boolean'}, ('true', 'false')), ('guided_regex', '(red|blue)', ('red', 'blue')), ('guided_choice', ['red', 'blue'], ('red', 'blue')),
                                  ('guided_grammar', 'root ::= "red" | "blue"', ('red', 'blue')), ('structured_outputs', {'choice': ['red', 'blue']}, ('red', 'blue'))):
        answer = client(t).chat.completions.create(model=t.model, messages=[{'role': 'user', 'content': ASK}], extra_body={field: value}, **GIVEN)
        assert answer.choices[0].message.content.strip() in pattern, (field, answer.choices[0].message.content)


def check_stream(t):
    """outlines: stream(), both models, the pieces are the whole"""
    for make in (outlines.from_openai, outlines.from_vllm):
        model = make(client(t), t.model)
        same(''.join(model.stream(ASK, **GIVEN)), model(ASK, **GIVEN))
        same(''.join(model.stream(ASK, Character, **GIVEN)), model(ASK, Character, **GIVEN))


def check_async(t):
    """outlines: async models; a call that is cancelled ends"""
    async def main():
        model = outlines.from_vllm(client(t, openai.AsyncOpenAI), t.model)
        json.loads(await model('Create a character.', Character, **GIVEN))
        task = asyncio.create_task(model(ASK, **{**GIVEN, 'max_tokens': 1500}, extra_body={'ignore_eos': True}))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    asyncio.run(main())
    t.wait_until_idle()
