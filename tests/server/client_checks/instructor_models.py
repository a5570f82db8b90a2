"""Its first example in the modes TOOLS, JSON, JSON_SCHEMA and RESPONSES_TOOLS; partial objects and lists streamed, async, cancelled."""
import asyncio
import typing

import instructor
import openai
import pydantic

from . import same


class User(pydantic.BaseModel):
    name: typing.Literal['Jason', 'Ivan']
    age: int = pydantic.Field(ge=0, le=99)


ASK = [{'role': 'user', 'content': 'Extract Jason is 25 years old.'}]


def given(t, mode=None):
    more = {'max_output_tokens': 120} if mode == instructor.Mode.RESPONSES_TOOLS else {'max_tokens': 120, 'messages': ASK}
    if mode == instructor.Mode.RESPONSES_TOOLS:
        more['input'] = ASK[0]['content']
    return {'model': t.model, 'temperature': 0, **more}


def sync(t, mode):
    return instructor.from_openai(openai.OpenAI(base_url=t.url + '/v1', api_key=t.key, max_retries=0), mode=mode)


def check_first_example(t):
    """instructor: response_model in the modes TOOLS, JSON and JSON_SCHEMA"""
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        assert isinstance(sync(t, mode).chat.completions.create(response_model=User, max_retries=1, **given(t)), User), mode
    try:
        assert isinstance(sync(t, instructor.Mode.JSON).chat.completions.create(response_model=User, max_retries=1, **given(t)), User)
    except instructor.core.InstructorRetryException as error:  # the schema is said in words alone, and the model may write another object
        assert 'validation error' in str(error), error


def check_responses(t):
    """instructor: mode RESPONSES_TOOLS"""
    assert isinstance(sync(t, instructor.Mode.RESPONSES_TOOLS).responses.create(response_model=User, max_retries=1, **given(t, instructor.Mode.RESPONSES_TOOLS)), User)


def check_with_completion(t):
    """instructor: create_with_completion has the raw answer"""
    user, raw = sync(t, instructor.Mode.TOOLS).chat.completions.create_with_completion(response_model=User, max_retries=1, **given(t))
    assert isinstance(user, User) and raw.usage.completion_tokens > 0
    same(raw.choices[0].message.tool_calls[0].function.name, 'User')


def check_partial(t):
    """instructor: create_partial, objects that grow"""
    users = list(sync(t, instructor.Mode.TOOLS).chat.completions.create_partial(response_model=User, max_retries=1, **given(t)))
    assert len(users) > 1 and users[-1].age is not None and users[-1].name in ('Jason', 'Ivan'), users


def check_iterable(t):
    """instructor: create_iterable, a list of objects"""
    class Few(pydantic.BaseModel):
        users: list[User] = pydantic.Field(min_length=1, max_length=2)
    assert sync(t, instructor.Mode.TOOLS).chat.completions.create(response_model=Few, max_retries=1, **given(t)).users
    stream = sync(t, instructor.Mode.TOOLS).chat.completions.create_iterable(response_model=User, max_retries=1, **given(t))
    assert isinstance(next(iter(stream)), User)


def check_async(t):
    """instructor: async; a call that is cancelled ends"""
    async def main():
        client = instructor.from_openai(openai.AsyncOpenAI(base_url=t.url + '/v1', api_key=t.key, max_retries=0))
        assert isinstance(await client.chat.completions.create(response_model=User, max_retries=1, **given(t)), User)
        raw = {**given(t), 'max_tokens': 1500, 'extra_body': {'ignore_eos': True}}
        task = asyncio.create_task(client.chat.completions.create(response_model=None, **raw))
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    asyncio.run(main())
    t.wait_until_idle()
