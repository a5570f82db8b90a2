"""Its first example by OpenAILike: complete, chat, streams, async, a forced tool, structured answers, an agent, cancelled."""
import asyncio
import typing

import pydantic
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

from . import same

ASK = [ChatMessage(role='user', content='Name three colours.')]


class City(pydantic.BaseModel):
    """A city."""
    city: typing.Literal['Paris', 'Oslo']


def get_weather(city: typing.Literal['Paris', 'Oslo']) -> str:
    """The weather of a city."""
    return f'It is sunny in {city}.'


def llm(t, **more):
    return OpenAILike(**{'model': t.model, 'api_base': t.url + '/v1', 'api_key': t.key, 'is_chat_model': True, 'is_function_calling_model': True, 'context_window': 2048,
                         'max_tokens': 40, 'temperature': 0, 'max_retries': 0, **more})


def check_first_example(t):
    """llama-index: complete and chat, also over /v1/completions"""
    assert str(llm(t).complete('Hello World!'))
    assert llm(t).chat(ASK).message.content
    plain = llm(t, is_chat_model=False)
    same(plain.complete('Once upon a time').text, t.post('/v1/completions', {'prompt': 'Once upon a time', 'max_tokens': 40, 'temperature': 0}).json()['choices'][0]['text'])


def check_stream(t):
    """llama-index: stream_chat, stream_complete, the deltas are the whole; async too"""
    whole = llm(t).chat(ASK).message.content
    same(''.join(each.delta or '' for each in llm(t).stream_chat(ASK)), whole)
    plain = llm(t, is_chat_model=False)
    same(''.join(each.delta or '' for each in plain.stream_complete('Once upon a time')), plain.complete('Once upon a time').text)

    async def main():
        return ''.join([each.delta or '' async for each in await llm(t).astream_chat(ASK)])
    same(asyncio.run(main()), whole)


def check_tool(t):
    """llama-index: chat_with_tools where one is required, predict_and_call, streamed"""
    tool = FunctionTool.from_defaults(get_weather)
    one = llm(t, max_tokens=120)
    calls = one.get_tool_calls_from_response(one.chat_with_tools([tool], user_msg='What is the weather in Oslo?', tool_required=True))
    same(calls[0].tool_name, 'get_weather')
    assert calls[0].tool_kwargs['city'] in ('Paris', 'Oslo')
    assert str(one.predict_and_call([tool], user_msg='What is the weather in Oslo?', tool_required=True)).startswith('It is sunny in ')
    last = None
    for last in one.stream_chat_with_tools([tool], user_msg='What is the weather in Oslo?', tool_required=True):
        pass
    same(one.get_tool_calls_from_response(last)[0].tool_name, 'get_weather')


def check_structured(t):
    """llama-index: as_structured_llm and structured_predict, streamed too"""
    structured = llm(t, max_tokens=120).as_structured_llm(City)
    assert isinstance(structured.chat(ASK).raw, City)
    # A stream of its own asks for a call with tool_choice "auto", whatever its caller says; by response_format the answer is held.
    held = llm(t, max_tokens=120, should_use_structured_outputs=True).as_structured_llm(City)
    last = None
    for last in held.stream_chat(ASK):
        pass
    assert last.raw.city in ('Paris', 'Oslo')


def check_agent(t):
    """llama-index: FunctionAgent.run comes to its end"""
    async def main():
        agent = FunctionAgent(tools=[get_weather], llm=llm(t), system_prompt='You are a helpful assistant.', timeout=120)
        return await agent.run('What is the weather in Oslo?')
    assert asyncio.run(main()).response is not None


def check_cancel(t):
    """llama-index: a stream that is left, and a call that is cancelled, end"""
    stream = llm(t, max_tokens=1500, additional_kwargs={'extra_body': {'ignore_eos': True}}).stream_chat(ASK)
    next(stream)
    stream.close()

    async def main():
        task = asyncio.create_task(llm(t, max_tokens=1500, additional_kwargs={'extra_body': {'ignore_eos': True}}).achat(ASK))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    asyncio.run(main())
    t.wait_until_idle()
