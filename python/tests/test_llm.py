from __future__ import annotations

from collections.abc import Iterator

import pytest

import tessera


@pytest.fixture(scope="module")
def llm(engine: tessera.Engine) -> Iterator[tessera.LLM]:
    with tessera.LLM(engine) as llm:
        yield llm


def test_generate_has_vllms_shapes(llm: tessera.LLM, alone: str) -> None:
    outputs = llm.generate(["Once upon a time"] * 3, tessera.SamplingParams(temperature=0, max_tokens=20, logprobs=2))
    assert [output.outputs[0].text for output in outputs] == [alone] * 3
    first = outputs[0]
    assert first.prompt == "Once upon a time" and first.prompt_token_ids[0] == 0 and first.finished
    completion = first.outputs[0]
    assert completion.finish_reason == "length" and len(completion.token_ids) == 20 and len(completion.logprobs or []) == 20
    assert llm.get_metrics()["submitted"] >= 3


def test_prompts_have_several_forms(llm: tessera.LLM) -> None:
    params = tessera.SamplingParams(temperature=0, max_tokens=5)
    tokens = llm.engine.tokenizer.encode("Once")
    texts = {llm.generate(prompt, params)[0].outputs[0].text for prompt in ("Once", ["Once"], tokens, [tokens], {"prompt": "Once"}, {"prompt_token_ids": tokens})}
    assert len(texts) == 1


def test_several_answers_and_stops(llm: tessera.LLM) -> None:
    output = llm.generate("Once upon a time", tessera.SamplingParams(n=3, temperature=1.2, seed=1, max_tokens=30, stop=["."]))[0]
    assert [completion.index for completion in output.outputs] == [0, 1, 2]
    assert all(c.stop_reason == "." and c.finish_reason == "stop" for c in output.outputs if c.finish_reason == "stop")
    assert llm.generate("x", tessera.SamplingParams(grammar=tessera.Grammar.choice(["yes"])))[0].outputs[0].text == "yes"


def test_chat(llm: tessera.LLM) -> None:
    messages = [{"role": "user", "content": "Tell me a story."}]
    one = llm.chat(messages, tessera.SamplingParams(temperature=0, max_tokens=8))
    two = llm.chat([messages, messages], tessera.SamplingParams(temperature=0, max_tokens=8))
    assert len(one) == 1 and len(two) == 2 and one[0].outputs[0].text == two[1].outputs[0].text


@pytest.mark.parametrize(
    ("prompts", "params"),
    [
        (["a", "b"], [tessera.SamplingParams()]),
        ({"text": "a"}, None),
        ("a", tessera.SamplingParams(temperature=-1)),
        ("a", tessera.SamplingParams(max_tokens=0)),
        ([[10**6]], None),
    ],
)
def test_wrong_uses_are_value_errors(llm: tessera.LLM, prompts: object, params: object) -> None:
    with pytest.raises(ValueError):
        llm.generate(prompts, params)  # type: ignore[arg-type]


def test_a_conversation_keeps_its_session(engine: tessera.Engine) -> None:
    talk = tessera.Conversation(engine, system="Be brief.", sampler=tessera.Sampler(temperature=0))
    first = "".join(str(delta) for delta in talk.answer("Tell me a story.", max_tokens=10))
    assert talk.messages[-1] == {"role": "assistant", "content": first} and len(talk.messages) == 3
    answer = talk.answer("And then?", max_tokens=10)
    assert answer.read() and answer.finish_reason == "max_tokens" and answer._answer.kept_tokens > 5
    fresh = tessera.Conversation(engine, talk.messages[:-1], sampler=tessera.Sampler(temperature=0))
    assert fresh.answer(max_tokens=10).read() == talk.messages[-1]["content"]
    assert not talk.has_template and talk.prompt() and "5 messages" in repr(talk)


def test_an_answer_that_is_left_is_no_message(engine: tessera.Engine) -> None:
    talk = tessera.Conversation(engine)
    with talk.answer("Tell me a story.", max_tokens=30) as answer:
        next(answer)
    assert [message["role"] for message in talk.messages] == ["user"]
    with pytest.raises(tessera.InvalidState):
        tessera.Conversation(engine).answer()
    with pytest.raises(tessera.NotFound, match="hermes"):
        tessera.Conversation(engine, output_format="mine")
    with pytest.raises(ValueError):
        tessera.Conversation(engine, chat_template="{% if %}")
    with pytest.raises(ValueError):
        tessera.Conversation(engine, [{"content": "no role"}]).answer()
