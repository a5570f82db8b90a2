"""Its first example (CodeAgent), ToolCallingAgent with a forced tool, structured outputs, streams, cancelled."""
import json

from smolagents import ChatMessage, CodeAgent, MessageRole, OpenAIModel, Tool, ToolCallingAgent

from . import same

ASK = [ChatMessage(role=MessageRole.USER, content=[{'type': 'text', 'text': 'Name three colours.'}])]


class Weather(Tool):
    name = 'get_weather'
    description = 'The weather of a city'
    inputs = {'city': {'type': 'string', 'description': 'The city', 'enum': ['Paris', 'Oslo']}}
    output_type = 'string'

    def forward(self, city):
        return f'It is sunny in {city}.'


def model(t, **more):
    return OpenAIModel(model_id=t.model, api_base=t.url + '/v1', api_key=t.key, client_kwargs={'max_retries': 0}, **{'max_tokens': 60, 'temperature': 0, **more})


def check_generate(t):
    """smolagents: generate, usage"""
    answer = model(t).generate(ASK)
    assert answer.content and answer.token_usage.output_tokens > 0


def check_stream(t):
    """smolagents: generate_stream, the deltas are the whole, usage comes with them"""
    deltas = list(model(t).generate_stream(ASK))
    same(''.join(delta.content or '' for delta in deltas), model(t).generate(ASK).content)
    assert any(delta.token_usage and delta.token_usage.output_tokens > 0 for delta in deltas)


def check_tool(t):
    """smolagents: a tool of several that must be called, whole and streamed"""
    answer = model(t, max_tokens=120).generate(ASK, tools_to_call_from=[Weather()])
    call = answer.tool_calls[0].function
    same(call.name, 'get_weather')
    arguments = call.arguments if isinstance(call.arguments, dict) else json.loads(call.arguments)
    assert arguments['city'] in ('Paris', 'Oslo'), arguments
    deltas = list(model(t, max_tokens=120).generate_stream(ASK, tools_to_call_from=[Weather()]))
    assert any(delta.tool_calls for delta in deltas)


def check_code_agent(t):
    """smolagents: CodeAgent.run goes through its steps, also with structured outputs"""
    for structured in (False, True):
        agent = CodeAgent(tools=[], model=model(t, max_tokens=120), max_steps=2, verbosity_level=0, use_structured_outputs_internally=structured)
        agent.run('What is the 5th number of Fibonacci?')  # what comes of it is the model's
        assert len(agent.memory.steps) >= 2
        errors = [step.error for step in agent.memory.steps if getattr(step, 'error', None)]
        assert not any('Error code' in str(error) or 'Connection' in str(error) for error in errors), errors


def check_tool_agent(t):
    """smolagents: ToolCallingAgent.run calls a tool in every step, streamed"""
    agent = ToolCallingAgent(tools=[Weather()], model=model(t, max_tokens=120), max_steps=2, verbosity_level=0, stream_outputs=True)
    agent.run('What is the weather in Oslo?')
    called = [call.name for step in agent.memory.steps for call in getattr(step, 'tool_calls', None) or []]
    assert set(called) & {'get_weather', 'final_answer'}, called


def check_cancel(t):
    """smolagents: a stream that is left ends"""
    stream = model(t, max_tokens=1500).generate_stream(ASK, extra_body={'ignore_eos': True})
    next(stream)
    stream.close()
    t.wait_until_idle()
