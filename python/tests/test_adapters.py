from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import tessera

FILE = ROOT / "tests" / "data" / "stories-adapter.gguf"
PROMPT = "The cat"  # the adapter changes the text that follows


@pytest.fixture(scope="session")
def adapter(engine: tessera.Engine) -> tessera.Adapter:
    return engine.adapter(FILE)


@pytest.fixture(scope="session")
def alone(engine: tessera.Engine) -> str:
    """The 20 likeliest tokens' text after PROMPT, without an adapter."""
    session = engine.session()
    session.append(PROMPT)
    return session.generate(max_tokens=20).read()


@pytest.fixture(scope="session")
def changed(engine: tessera.Engine, adapter: tessera.Adapter) -> str:
    """The text of `alone`, with the adapter."""
    session = engine.session(adapters=[adapter])
    session.append(PROMPT)
    return session.generate(max_tokens=20).read()


def test_an_adapter_tells_what_it_is(engine: tessera.Engine, adapter: tessera.Adapter) -> None:
    assert adapter.name == "stories-adapter" and adapter.rank == 2 and adapter.bytes > 0 and adapter.matrices > 0 and adapter.invocation == []
    assert isinstance(adapter.base_name, str) and adapter.engine.name == engine.name
    assert "stories-adapter" in repr(adapter) and "rank 2" in repr(adapter)
    same = engine.adapter(str(FILE))
    assert same == adapter and len({same, adapter}) == 1 and adapter != FILE


def test_sessions_have_their_own_adapters(engine: tessera.Engine, adapter: tessera.Adapter, alone: str, changed: str) -> None:
    assert changed != alone
    session = engine.session(adapters=[(adapter, 0.0)])
    session.append(PROMPT)
    assert session.generate(max_tokens=20).read() == alone and session.adapters == []
    session = engine.session(adapters=adapter)
    assert session.adapters == [(adapter, 1.0, 0)]
    session.append(PROMPT)
    assert session.verify() and session.generate(max_tokens=20).read() == changed
    fork = session.fork()
    assert fork.adapters == session.adapters


def test_a_session_changes_its_adapters(engine: tessera.Engine, adapter: tessera.Adapter, changed: str) -> None:
    session = engine.session()
    tokens = engine.tokenizer.encode(PROMPT)
    before = session.append(tokens).copy()
    session.use_adapters([(adapter, 1.0, 2)])
    assert session.position == 2 and len(session) == len(tokens) and session.adapters == [(adapter, 1.0, 2)]
    session.use_adapters([adapter])
    assert session.position == 0
    assert session.generate(max_tokens=20).read() == changed
    session.truncate(len(tokens))
    session.use_adapters(())
    assert (session.append([]) == before).all()


def test_a_saved_session_keeps_its_adapters(model: Path, engine: tessera.Engine, adapter: tessera.Adapter) -> None:
    session = engine.session(adapters=[(adapter, 0.5)])
    session.append(PROMPT)
    saved = session.save()
    assert saved is not None
    restored = engine.restore(saved)
    assert restored.adapters == [(adapter, 0.5, 0)]
    assert (restored.append("!") == session.append("!")).all()
    assert engine.restore(saved, adapters=[adapter]).adapters == [(adapter, 1.0, 0)]
    with pytest.raises(tessera.NotFound, match="stories-adapter"):
        tessera.Engine(model, threads=1).restore(saved)


def test_requests_with_different_adapters_are_as_alone(engine: tessera.Engine, scheduler: tessera.Scheduler, adapter: tessera.Adapter, alone: str, changed: str) -> None:
    uses = [None, [adapter], [], [(adapter, 0.0)], adapter, [(adapter, 1, None)]]
    requests = [scheduler.submit(PROMPT, max_tokens=20, adapters=one) for one in uses]
    assert [request.read() for request in requests] == [alone, changed, alone, alone, changed, changed]
    session = engine.session(adapters=[adapter])
    assert scheduler.submit(PROMPT, max_tokens=20, session=session).read() == changed


def test_asyncio(engine: tessera.Engine, adapter: tessera.Adapter, alone: str, changed: str) -> None:
    async def main() -> list[str]:
        async with tessera.AsyncScheduler(engine) as many:
            return list(await asyncio.gather(*(many.submit(PROMPT, max_tokens=20, adapters=one).read() for one in ([adapter], None))))

    assert asyncio.run(main()) == [changed, alone]


def test_llm(engine: tessera.Engine, adapter: tessera.Adapter, alone: str, changed: str) -> None:
    params = tessera.SamplingParams(temperature=0, max_tokens=20)
    with tessera.LLM(engine) as llm:

        def texts(adapters: object) -> list[str]:
            return [output.outputs[0].text for output in llm.generate([PROMPT, PROMPT], params, adapters=adapters)]  # type: ignore[arg-type]

        assert texts(adapter) == texts([adapter]) == texts(((adapter, 1.0),)) == [changed, changed]
        assert texts([[adapter], None]) == texts([adapter, []]) == [changed, alone]
        assert texts(None) == texts([]) == [alone, alone]
        with pytest.raises(tessera.InvalidArgument, match="give one list for all"):
            texts([[adapter], None, None])
        messages = [{"role": "user", "content": "Tell me of a dog."}]
        with_adapter, without = (llm.chat(messages, params, adapters=one)[0].outputs[0].text for one in (adapter, None))
        assert with_adapter != without


def test_a_conversation_changes_its_adapters(engine: tessera.Engine, adapter: tessera.Adapter) -> None:
    greedy = tessera.Sampler(temperature=0)
    texts = [tessera.Conversation(engine, adapters=one).say("Tell me of a dog.", sampler=greedy, max_tokens=12) for one in ((), [adapter])]
    assert texts[0] != texts[1]
    talk = tessera.Conversation(engine)
    talk.use_adapters([adapter])
    assert talk.adapters == [(adapter, 1.0, 0)] and talk.say("Tell me of a dog.", sampler=greedy, max_tokens=12) == texts[1]
    talk.use_adapters(())
    talk.messages.clear()
    assert talk.say("Tell me of a dog.", sampler=greedy, max_tokens=12) == texts[0]


def test_an_adapter_lives_as_long_as_its_users(model: Path, changed: str) -> None:
    engine = tessera.Engine(model, threads=1)
    session = engine.session(adapters=[engine.adapter(FILE)])
    del engine
    gc.collect()
    session.append(PROMPT)
    assert session.generate(max_tokens=20).read() == changed


def test_a_budget_holds_all_adapters(model: Path, adapter: tessera.Adapter) -> None:
    engine = tessera.Engine(model, threads=1, adapter_budget=adapter.bytes)
    assert engine.plan.adapters == adapter.bytes == tessera.Engine.plan_for(model, adapter_budget=adapter.bytes).adapters
    engine.adapter(FILE)
    with pytest.raises(tessera.OverBudget, match="budget"):
        tessera.Engine(model, threads=1, adapter_budget=1000).adapter(FILE)


def test_adapters_become_part_of_the_weights(model: Path, alone: str, tmp_path: Path) -> None:
    def told(**options: Any) -> str:
        session = tessera.Engine(model, threads=1, **options).session()
        session.append(PROMPT)
        return session.generate(max_tokens=20).read()

    assert told(merge=[(FILE, 0.0)]) == alone
    assert told(merge=[FILE]) == told(merge=[(str(FILE), 1.0)]) != told(merge=[(FILE, -3.0)])
    with pytest.raises(tessera.NotFound, match="nothing.gguf"):
        tessera.Engine(model, merge=[tmp_path / "nothing.gguf"])
    for wrong in (FILE, "x", [(FILE,)], [(FILE, "x")], [None]):
        with pytest.raises(TypeError):
            tessera.Engine(model, merge=wrong)  # type: ignore[arg-type]


def test_wrong_uses(engine: tessera.Engine, model: Path, adapter: tessera.Adapter, tmp_path: Path) -> None:
    with pytest.raises(tessera.NotFound, match="nothing.gguf"):
        engine.adapter(tmp_path / "nothing.gguf")
    with pytest.raises(tessera.Error, match="README"):
        engine.adapter(ROOT / "README.md")
    with pytest.raises(tessera.InvalidArgument):
        engine.session(adapters=[(adapter, float("nan"))])
    with pytest.raises(tessera.InvalidArgument, match="another engine"):
        tessera.Engine(model, threads=1).session(adapters=[adapter])
    for wrong in (3, "x", [None], [(adapter,)], [(adapter, "x")], [(adapter, 1.0, -1)], [(adapter, 1.0, 0, 0)], [adapter, [adapter]]):
        with pytest.raises((TypeError, ValueError), match=r"^Engine.session\(\): adapters"):
            engine.session(adapters=wrong)  # type: ignore[arg-type]
