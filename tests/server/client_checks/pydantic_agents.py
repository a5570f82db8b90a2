"""Its first example over Chat Completions, Responses and Messages; streams, a forced tool, output types (also Decimal), cancelled."""
import asyncio
import decimal
import typing

import pydantic
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.direct import model_request_stream_sync, model_request_sync
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from . import same


class City(pydantic.BaseModel):
    city: typing.Literal['Paris', 'Oslo']
    population: int = pydantic.Field(ge=1, le=9)


class Price(pydantic.BaseModel):
    amount: decimal.Decimal = pydantic.Field(max_digits=4, decimal_places=1)
    currency: typing.Literal['EUR', 'NOK']


def models(t):
    openai = lambda: OpenAIProvider(base_url=t.url + '/v1', api_key=t.key)  # noqa: E731
    yield OpenAIChatModel(t.model, provider=openai())
    yield OpenAIResponsesModel(t.model, provider=openai())
    yield AnthropicModel(t.model, provider=AnthropicProvider(base_url=t.url, api_key=t.key))


SETTINGS = {'max_tokens': 60, 'temperature': 0}


def check_first_example(t):
    """pydantic-ai: run, the same text from three APIs, usage"""
    texts = set()
    for model in models(t):
        result = asyncio.run(Agent(model, instructions='Be concise, reply with one sentence.', model_settings=SETTINGS).run('Where does "hello world" come from?'))
        assert result.usage.output_tokens > 0 and result.usage.input_tokens > 0
        texts.add(result.output)
    same(len(texts), 1, 'different answers')


def check_stream(t):
    """pydantic-ai: run_stream, the deltas are the output"""
    async def main(model):
        async with Agent(model, model_settings=SETTINGS).run_stream('Name three colours.') as result:
            text = ''.join([delta async for delta in result.stream_text(delta=True, debounce_by=None)])
            same(await result.get_output(), text)
            assert text
    for model in models(t):
        asyncio.run(main(model))


def check_output_tool(t):
    """pydantic-ai: output_type by a tool that is forced, streamed too"""
    async def main(model):
        agent = Agent(model, output_type=City, model_settings=SETTINGS)
        assert isinstance((await agent.run('The city of light')).output, City)
        async with agent.run_stream('The city of light') as result:
            assert isinstance(await result.get_output(), City)
    for model in models(t):
        asyncio.run(main(model))


def check_output_native(t):
    """pydantic-ai: NativeOutput over Chat Completions and Responses, also of a class with Decimal"""
    for model in list(models(t))[:2]:  # over Messages the client knows by the model's name that it cannot
        run = lambda kind: asyncio.run(Agent(model, output_type=NativeOutput(kind), model_settings=SETTINGS).run('The city of light'))  # noqa: E731
        assert isinstance(run(City).output, City)
        try:
            assert isinstance(run(Price).output, Price)
        except UnexpectedModelBehavior as error:
            # The schema says "a number or any text", and the model may choose a text that is none.
            assert 'decimal' in str(error) + str(error.__cause__), error


def check_tool(t):
    """pydantic-ai: a function tool that must be called, by name too, streamed too, and what becomes of its result"""
    schema = {'type': 'object', 'additionalProperties': False, 'required': ['city'], 'properties': {'city': {'type': 'string', 'enum': ['Paris', 'Oslo']}}}
    tools = [ToolDefinition(name=name, description='How many live there', parameters_json_schema=schema) for name in ('get_population', 'get_area')]
    given = {'model_request_parameters': ModelRequestParameters(function_tools=tools, allow_text_output=True)}
    for model in models(t):
        asked = ModelRequest.user_text_prompt('How many live in Oslo?')
        for choice, names in (('required', {'get_population', 'get_area'}), (['get_area'], {'get_area'})):
            answer = model_request_sync(model, [asked], model_settings={**SETTINGS, 'tool_choice': choice, 'parallel_tool_calls': False}, **given)
            call, = [part for part in answer.parts if isinstance(part, ToolCallPart)]
            assert call.tool_name in names, call
            assert call.args_as_dict()['city'] in ('Paris', 'Oslo')
        result = ModelRequest(parts=[ToolReturnPart(tool_name=call.tool_name, content='700000', tool_call_id=call.tool_call_id)])
        assert model_request_sync(model, [asked, answer, result], model_settings={**SETTINGS, 'tool_choice': 'none'}, **given).parts
        with model_request_stream_sync(model, [asked], model_settings={**SETTINGS, 'tool_choice': 'required', 'parallel_tool_calls': False}, **given) as stream:
            assert list(stream)
            assert any(isinstance(part, ToolCallPart) for part in stream.response.parts)


def check_cancel(t):
    """pydantic-ai: a stream that is left, and a run that is cancelled, end"""
    async def main(model):
        agent = Agent(model, model_settings={**SETTINGS, 'max_tokens': 1500})
        async with agent.run_stream('Tell a long story.') as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                break
        task = asyncio.create_task(agent.run('Tell a long story.'))
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    for model in models(t):
        asyncio.run(main(model))
        t.wait_until_idle()
