"""Its first example (a pipeline), chat and Responses generators, streams, forced tools, structured outputs, embedders, cancelled."""
import asyncio
import json
import typing

import pydantic
from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

from . import same

ASK = [ChatMessage.from_user('Name three colours.')]


class City(pydantic.BaseModel):
    city: typing.Literal['Paris', 'Oslo']


def get_weather(city: typing.Annotated[typing.Literal['Paris', 'Oslo'], 'The city']) -> str:
    """The weather of a city."""
    return f'It is sunny in {city}.'


def chat(t, **more):
    settings = {'max_tokens': 40, 'temperature': 0, **more.pop('generation_kwargs', {})}
    return OpenAIChatGenerator(api_key=Secret.from_token(t.key), model=t.model, api_base_url=t.url + '/v1', generation_kwargs=settings, max_retries=0, **more)


def responses(t, **more):
    settings = {'max_output_tokens': 40, 'temperature': 0, **more.pop('generation_kwargs', {})}
    return OpenAIResponsesChatGenerator(api_key=Secret.from_token(t.key), model=t.model, api_base_url=t.url + '/v1', generation_kwargs=settings, max_retries=0, **more)


def check_first_example(t):
    """haystack: a pipeline of a prompt builder and a chat generator"""
    pipeline = Pipeline()
    pipeline.add_component('prompt', ChatPromptBuilder(template=[ChatMessage.from_user('Tell me about {{topic}}')], required_variables=['topic']))
    pipeline.add_component('llm', chat(t))
    pipeline.connect('prompt.prompt', 'llm.messages')
    reply = pipeline.run({'prompt': {'topic': 'Oslo'}})['llm']['replies'][0]
    assert reply.text and reply.meta['usage']['completion_tokens'] > 0
    same(chat(t).run(ASK)['replies'][0].text, responses(t).run(ASK)['replies'][0].text)


def check_stream(t):
    """haystack: streaming_callback, the chunks are the reply, over both APIs"""
    for make in (chat, responses):
        pieces = []
        reply = make(t, streaming_callback=lambda chunk: pieces.append(chunk.content or '')).run(ASK)['replies'][0]
        same(''.join(pieces), reply.text)
        same(reply.text, make(t).run(ASK)['replies'][0].text)


def check_tool(t):
    """haystack: a tool that must be called, its result in the messages, over both APIs, streamed too"""
    tool = create_tool_from_function(get_weather)
    for make, most in ((chat, 'max_tokens'), (responses, 'max_output_tokens')):
        for more in ({}, {'streaming_callback': lambda chunk: None}):
            settings = {most: 120, 'tool_choice': 'required', 'parallel_tool_calls': False}
            reply = make(t, tools=[tool], generation_kwargs=settings, **more).run(ASK)['replies'][0]
            call, = reply.tool_calls
            same(call.tool_name, 'get_weather')
            result = ChatMessage.from_tool(tool_result=tool.invoke(**call.arguments), origin=call)
            assert make(t, tools=[tool], generation_kwargs={'tool_choice': 'none'}, **more).run([*ASK, reply, result])['replies'][0].text


def check_structured(t):
    """haystack: response_format is a pydantic class, text_format over Responses"""
    reply = chat(t, generation_kwargs={'response_format': City, 'max_tokens': 60}).run(ASK)['replies'][0]
    assert json.loads(reply.text)['city'] in ('Paris', 'Oslo')
    reply = responses(t, generation_kwargs={'text_format': City, 'max_output_tokens': 60}).run(ASK)['replies'][0]
    assert json.loads(reply.text)['city'] in ('Paris', 'Oslo')


def check_embedders(t):
    """haystack: OpenAITextEmbedder and OpenAIDocumentEmbedder"""
    given = {'api_key': Secret.from_token(t.key), 'api_base_url': t.url + '/v1', 'model': t.model}
    one = OpenAITextEmbedder(**given).run('I love pizza!')['embedding']
    documents = OpenAIDocumentEmbedder(**given, progress_bar=False).run([Document(content='I love pizza!'), Document(content='Oslo')])['documents']
    assert max(abs(a - b) for a, b in zip(one, documents[0].embedding)) < 1e-5


def check_cancel(t):
    """haystack: run_async that is cancelled ends"""
    async def main():
        task = asyncio.create_task(chat(t, generation_kwargs={'max_tokens': 1500, 'extra_body': {'ignore_eos': True}}).run_async(ASK))
        await asyncio.sleep(0.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    asyncio.run(main())
    t.wait_until_idle()
