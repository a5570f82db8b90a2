"""Its first example over Chat Completions and Responses; streams, a forced tool, handoff, output types, cancelled."""
import asyncio
import typing

import pydantic
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from . import same

set_tracing_disabled(True)


class Weather(pydantic.BaseModel):
    city: typing.Literal['Paris', 'Oslo']
    warm: bool


@function_tool
def get_weather(city: typing.Literal['Paris', 'Oslo']) -> str:
    """The weather of a city."""
    return f'It is sunny in {city}.'


def models(t):
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        yield kind(model=t.model, openai_client=AsyncOpenAI(base_url=t.url + '/v1', api_key=t.key, max_retries=0))


def agent(model, choice=None, most=200, **more):
    settings = ModelSettings(temperature=0, max_tokens=most, tool_choice=choice, parallel_tool_calls=False if 'tools' in more else None,
                             **({'store': False} if isinstance(model, OpenAIResponsesModel) else {}))
    return Agent(name='Assistant', instructions='You are a helpful assistant.', model=model, model_settings=settings, **more)


def check_first_example(t):
    """agents: Runner.run, both APIs give the same text"""
    outputs = [asyncio.run(Runner.run(agent(model), 'Write a haiku about recursion in programming.')) for model in models(t)]
    same(outputs[0].final_output, outputs[1].final_output)
    assert outputs[0].final_output
    same([len(each.raw_responses) for each in outputs], [1, 1])
    assert all(each.raw_responses[0].usage.output_tokens > 0 for each in outputs)


def check_stream(t):
    """agents: run_streamed, the deltas are the final output"""
    async def main(model):
        result = Runner.run_streamed(agent(model), 'Name three colours.')
        text = ''
        async for event in result.stream_events():
            if event.type == 'raw_response_event' and event.data.type == 'response.output_text.delta':
                text += event.data.delta
        assert text
        same(result.final_output, text)
    for model in models(t):
        asyncio.run(main(model))


def check_tool(t):
    """agents: a tool that is required is called, and its result goes back to the model"""
    async def main(model):
        one = agent(model, choice='required', tools=[get_weather], tool_use_behavior='stop_on_first_tool')
        assert (await Runner.run(one, 'What is the weather in Oslo?')).final_output.startswith('It is sunny in ')
        on = agent(model, choice='required', tools=[get_weather])  # the second turn is the model's own choice
        result = await Runner.run(on, 'What is the weather in Oslo?', max_turns=4)
        assert any(item.type == 'tool_call_output_item' for item in result.new_items)
        assert len(result.raw_responses) >= 2
    for model in models(t):
        asyncio.run(main(model))


def check_handoff(t):
    """agents: a handoff that is forced, streamed"""
    async def main(model):
        spanish = agent(model, output_type=Weather)  # so that its answer comes to an end
        spanish.name, spanish.handoff_description = 'Spanish agent', 'Speaks Spanish'
        triage = agent(model, choice='required', handoffs=[spanish])
        result = Runner.run_streamed(triage, 'Hola, como estas?', max_turns=3)
        async for _ in result.stream_events():
            pass
        same(result.last_agent.name, 'Spanish agent')
        assert isinstance(result.final_output, Weather)
    for model in models(t):
        asyncio.run(main(model))


def check_output_type(t):
    """agents: output_type is a pydantic class"""
    for model in models(t):
        result = asyncio.run(Runner.run(agent(model, output_type=Weather), 'It is warm in Paris.'))
        assert isinstance(result.final_output, Weather)


def check_cancel(t):
    """agents: a streamed run that is cancelled ends"""
    async def main(model):
        result = Runner.run_streamed(agent(model, most=1500), 'Tell a long story.')
        seen = 0
        async for event in result.stream_events():
            seen += event.type == 'raw_response_event'
            if seen == 5:
                result.cancel()
    for model in models(t):
        asyncio.run(main(model))
        t.wait_until_idle()
