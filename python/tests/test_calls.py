"""Calls with wrong arguments raise one sentence that names the argument."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import tessera

CASES: list[tuple[str, type[Exception], str]] = [
    # unknown options
    ("Engine(model, thread=1)", TypeError, "Engine() has no option 'thread'; did you mean 'threads'?"),
    ("Engine.load(model, thread=1)", TypeError, "Engine.load() has no option 'thread'; did you mean 'threads'?"),
    ("Engine(model, n_ctx=1)", TypeError, "Engine() has no option 'n_ctx'; did you mean 'context'?"),
    ("Engine(model, zzz=1)", TypeError, "Engine() has no option 'zzz': help(tessera.Engine) lists its options"),
    ("LLM(model, thread=1)", TypeError, "LLM() has no option 'thread'; did you mean 'threads'?"),
    ("Sampler(temprature=1)", TypeError, "Sampler() has no option 'temprature'; did you mean 'temperature'?"),
    ("Sampler(stop='x')", TypeError, "Sampler() has no option 'stop': pass it to Session.generate() or Scheduler.submit()"),
    ("session.generate(temperature=0.5)", TypeError, "Session.generate() has no option 'temperature': pass Sampler(temperature=...)"),
    ("scheduler.submit('x', top_k=5)", TypeError, "Scheduler.submit() has no option 'top_k': pass sampler=Sampler(top_k=...)"),
    ("session.generate(max_new_tokens=5)", TypeError, "Session.generate() has no option 'max_new_tokens'; did you mean 'max_tokens'?"),
    ("Drafter.ngram(x=1)", TypeError, "Drafter.ngram() has no option 'x': it has shortest, longest"),
    # too many and too few
    ("Sampler(0.5)", TypeError, "Sampler() takes its options by name: Sampler(temperature=...)"),
    ("Engine(model, 512)", TypeError, "Engine() takes 1 argument without a name, and got 2: give the others by name (context=...)"),
    ("Engine(model, path=model)", TypeError, "Engine(): path is given twice, in order and by name"),
    ("session.fork(5)", TypeError, "Session.fork() takes no arguments, and got 1"),
    ("session.append()", TypeError, "Session.append() needs 'prompt'"),
    ("Session.append('x', 'y')", TypeError, "Session.append() is a function of a Session, not of a str"),
    # types
    ("Engine(5)", TypeError, "Engine(): path is a path, not an int"),
    ("Engine(model, threads=1.5)", TypeError, "Engine(): threads is an int, not a float"),
    ("Engine(model, merge=[5])", TypeError, "Engine(): merge[0] is a path or a tuple (a path, a float), not an int"),
    ("Engine(model, log=5)", TypeError, "Engine(): log is a callable or None, not an int"),
    ("Engine(model, progress=5)", TypeError, "Engine(): progress is a callable, True, False or None, not an int"),
    ("LLM(5)", TypeError, "LLM(): model is a path, not an int"),
    ("Sampler(temperature='a')", TypeError, "Sampler(): temperature is a float, not a str"),
    ("Sampler(stages=print)", TypeError, "; give a list: stages=[print]"),
    ("Sampler(grammar={})", TypeError, "Sampler(): grammar is a Grammar or None, not a dict; use Grammar.json_schema()"),
    ("Sampler(logit_bias={'a': 1})", TypeError, "Sampler(): the key 'a' of logit_bias is no token: a token is an int"),
    ("Sampler(logit_bias={5: 'x'})", TypeError, "Sampler(): logit_bias[5] is a float, not a str"),
    ("Sampler(logit_bias=[1])", TypeError, "Sampler(): logit_bias is a dict of int to float, not a list"),
    ("Chain().logit_bias({'a': 1})", TypeError, "Chain.logit_bias(): the key 'a' of biases is no token: a token is an int"),
    ("Chain().temperature('a')", TypeError, "Chain.temperature(): temperature is a float, not a str"),
    ("session.generate(SamplingParams())", TypeError, "sampler is a Sampler or None, not a SamplingParams; use params.sampler()"),
    ("session.generate(Chain())", TypeError, "sampler is a Sampler or None, not a Chain; call .build()"),
    ("session.generate(Sampler)", TypeError, "sampler is a Sampler or None, not the class Sampler: Sampler() makes one"),
    ("session.generate(stop=['a', 5])", TypeError, "Session.generate(): stop[1] is a str, not an int"),
    ("session.append([1, 'a'])", TypeError, "Session.append(): prompt[1] is an int, not a str"),
    ("session.append([{'role': 'user'}])", TypeError, "Engine.apply_chat_template() makes the tokens of messages"),
    ("session.append('x', progress=5)", TypeError, "Session.append(): progress is a callable, True, False or None, not an int"),
    ("session.append('\\ud800')", tessera.InvalidArgument, "Session.append(): prompt is no valid text: it has half of a surrogate pair"),
    ("engine.embed('a')", TypeError, "Engine.embed(): texts is a list, not a str; give a list: texts=[...]"),
    ("engine.rerank('q', 'd')", TypeError, "Engine.rerank(): documents is a list of str, not a str; give a list: documents=[...]"),
    ("engine.apply_chat_template([], arguments=5)", TypeError, "Engine.apply_chat_template(): arguments is a dict or None, not an int"),
    ("engine.apply_chat_template('hi')", TypeError, "Engine.apply_chat_template(): messages is a list of dicts, not a str"),
    ("engine.restore(5)", TypeError, "Engine.restore(): source is bytes, a bytearray, a memoryview or a path, not an int"),
    ("Grammar.choice('yes')", TypeError, "Grammar.choice(): texts is a list of str, not a str; give a list: texts=[...]"),
    ("Matcher(Grammar.json())", TypeError, "Matcher(): grammar is a CompiledGrammar, not a Grammar"),
    ("Scheduler(model)", TypeError, "; Engine(path) loads one"),
    ("Scheduler(engine, weights={'a': 'b'})", TypeError, "Scheduler(): weights['a'] is a float, not a str"),
    ("Scheduler(engine, weights={5: 1})", TypeError, "Scheduler(): the key 5 of weights is a str, not an int"),
    ("scheduler.submit('x', on_ready=5)", TypeError, "Scheduler.submit(): on_ready is a callable or None, not an int"),
    ("AsyncScheduler(engine, max_runing=5)", TypeError, "AsyncScheduler() has no option 'max_runing'; did you mean 'max_running'?"),
    # ranges
    ("Engine(model, threads=-1)", tessera.InvalidArgument, "Engine(): threads is -1: expected 0 or more"),
    ("Engine(model, context=2**40)", tessera.InvalidArgument, "Engine(): context is 1099511627776: expected at most 4294967295"),
    ("Sampler(seed=2**70)", tessera.InvalidArgument, "expected at most 18446744073709551615"),
    ("session.append([2**40])", tessera.InvalidArgument, "Session.append(): prompt[0] is 1099511627776: expected at most 2147483647"),
    ("scheduler.submit('x', priority=2**40)", tessera.InvalidArgument, "Scheduler.submit(): priority is 1099511627776: expected at most 2147483647"),
    ("engine.session(stream=(1, -2))", tessera.InvalidArgument, "Engine.session(): stream[1] is -2: expected 0 or more"),
    ("session.generate(max_tokens=-1)", tessera.InvalidArgument, "Session.generate(): max_tokens is -1: expected 0 or more"),
    # classes without a constructor
    ("Session()", TypeError, "Session() cannot be called: Engine.session() makes a session"),
    ("Grammar('x')", TypeError, "Grammar.regex()"),
    # the library's own words, in Python's
    ("Sampler(top_p=2)", tessera.InvalidArgument, "top_p is 2: it must be above 0 and at most 1"),
    ("Sampler(repetition_penalty=-1)", tessera.InvalidArgument, "repetition_penalty is -1"),
    ("Scheduler(engine, max_running=0)", tessera.InvalidArgument, "rows=512, step_seconds=0.05 and max_running=0 must be above 0"),
    ("LLM(engine, max_num_seqs=0)", tessera.InvalidArgument, "LLM(): max_num_seqs is 0: expected 1 or more"),
    ("LLM(engine, threads=2)", TypeError, "LLM(): threads is an option of loading"),
    ("Engine('HuggingFaceTB/SmolLM2-135M')", tessera.NotFound, "tessera downloads nothing: give the path of a GGUF file or of a folder"),
    ("session.generate(drafter=Drafter.heads(), max_tokens=2).read()", tessera.InvalidArgument, "Engine(draft_heads=...)"),
]


@pytest.mark.parametrize(("call", "kind", "words"), CASES)
def test_the_error_names_the_argument(call: str, kind: type[Exception], words: str, engine: tessera.Engine, session: tessera.Session,
                                      scheduler: tessera.Scheduler, model: Any) -> None:  # fmt: skip
    names = {**vars(tessera), "engine": engine, "session": session, "scheduler": scheduler, "model": str(model)}
    with pytest.raises(kind) as caught:
        eval(call, names)
    text = str(caught.value)
    assert words in text and "\n" not in text and "::" not in text and len(text) < 200


def test_every_function_of_the_module_explains_itself() -> None:
    for kind in vars(tessera._core).values():
        for name, function in vars(kind).items() if isinstance(kind, type) else ():
            if type(function).__name__ in ("nb_func", "nb_method") and name not in ("__eq__", "__add__", "__or__"):
                with pytest.raises(TypeError) as caught:
                    function(*[object()] * 9)
                assert "incompatible" not in str(caught.value) and "\n" not in str(caught.value)


def test_other_type_errors_stay_as_they_are(session: tessera.Session) -> None:
    def stage(tokens: object, logits: object) -> None:
        raise TypeError("mine")

    with pytest.raises(TypeError, match="^mine$"):
        session.generate(tessera.Sampler(stages=[stage]), max_tokens=2).read()


def test_good_calls_take_numpys_numbers(engine: Any) -> None:
    import numpy as np

    session = engine.session(context=np.int64(128))
    session.append(np.array([1, 2], dtype=np.int64))
    sampler: Any = tessera.Sampler
    cut: Any = session.truncate
    assert sampler(temperature=0, logit_bias={"5": 1, 6: np.float32(1)})
    cut(np.int32(1))
    assert len(session) == 1


def test_the_async_scheduler_names_itself(engine: tessera.Engine) -> None:
    async def main() -> None:
        async with tessera.AsyncScheduler(engine) as scheduler:
            with pytest.raises(TypeError, match=r"AsyncScheduler.submit\(\) has no option 'temperature': pass sampler=Sampler"):
                scheduler.submit("x", temperature=1)
            with pytest.raises(TypeError, match=r"AsyncScheduler.submit\(\): samples is an int, not a str"):
                await scheduler.generate("x", samples="a")

    asyncio.run(main())


def test_messages_are_in_pythons_words(engine: tessera.Engine) -> None:
    session = engine.session()
    session.append("Once")
    with session.generate(max_tokens=5) as pieces:
        next(pieces)
        with pytest.raises(tessera.InvalidState, match=r"read it to its end, or call its close\(\)$"):
            session.append("x")
    scheduler = tessera.Scheduler(engine)
    request = scheduler.submit(" upon", session=session, max_tokens=400, ignore_eos=True)
    for use in (lambda: session.append("x"), lambda: scheduler.submit("x", session=session)):
        with pytest.raises(tessera.InvalidState, match="^the session was given to a request"):
            use()
    scheduler.close()
    with pytest.raises(tessera.Cancelled, match="the scheduler was closed before"):
        request.read()
    with pytest.raises(tessera.InvalidState, match="^the scheduler is closed"):
        scheduler.cancel(1)


talk: Any = tessera.Conversation
params: Any = tessera.SamplingParams
LLM_CASES: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda llm: llm.generate(123), TypeError, "LLM.generate(): prompts is a text, a list of texts, or tokens, not an int"),
    (lambda llm: llm.generate(["a", None]), TypeError, "LLM.generate(): prompts[1] is a text, tokens or a dict, not None"),
    (lambda llm: llm.generate(["a", [1, "x"]]), TypeError, "prompts[1] has a str where a token is expected, an int"),
    (lambda llm: llm.generate(["a", [10**5]]), tessera.InvalidArgument, "prompts[1]: token 100000 is not in the vocabulary"),
    (lambda llm: llm.generate([{"x": 1}]), tessera.InvalidArgument, 'prompts[0] is a dict without "prompt" and without "prompt_token_ids"'),
    (lambda llm: llm.generate("a", {"n": 1}), TypeError, "not a dict: write SamplingParams(**options)"),
    (lambda llm: llm.generate("a", [5]), TypeError, "sampling_params[0] is a SamplingParams, not an int"),
    (lambda llm: llm.generate("a", params(temperature="x")), TypeError, "SamplingParams(): temperature is a float"),
    (lambda llm: llm.generate("a", params(stop=5)), TypeError, "SamplingParams(): stop is a str"),
    (lambda llm: llm.chat("hi"), TypeError, "LLM.chat(): messages is a list of dicts, or a list of such lists, not a str"),
    (lambda llm: llm.chat([{"role": "user", "content": 5}]), TypeError, 'messages[0]["content"] is a str'),
    (lambda llm: llm.chat([{"role": "user", "content": "x"}], tools=[{"name": "f"}]), ValueError, 'tools[0] has no "function"'),
    (
        lambda llm: llm.chat([{"role": "user", "content": "x"}], tools=[{"type": "function", "function": {"name": "f"}}]),
        tessera.Unsupported,
        "chat template does not show tools",
    ),
    (lambda llm: llm.embed(5), TypeError, "LLM.embed(): texts is a str or a list of str, not an int"),
]


@pytest.mark.parametrize(("use", "kind", "words"), LLM_CASES)
def test_llm_says_what_is_wrong(use: Callable[[Any], object], kind: type[Exception], words: str, engine: tessera.Engine) -> None:
    with tessera.LLM(engine) as llm, pytest.raises(kind) as caught:
        use(llm)
    assert words in str(caught.value)


TALK_CASES: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda e: talk(e, "hello"), TypeError, "Conversation(): messages is a list of dicts, not a str"),
    (lambda e: talk(e, tools=[{"name": "f"}]), ValueError, 'tools[0] has no "function"'),
    (lambda e: talk("x"), TypeError, "Conversation(): engine is an Engine, not a str"),
    (lambda e: talk(e).say("hi", max_tokens=0), tessera.InvalidArgument, "max_tokens=0: ask for at least one token"),
    (lambda e: talk(e).say(5), TypeError, "content is a str, not an int"),
    (lambda e: talk(e, sampler=5).say("hi"), TypeError, "sampler is a Sampler, not an int"),
]


@pytest.mark.parametrize(("use", "kind", "words"), TALK_CASES)
def test_conversations_say_what_is_wrong(use: Callable[[tessera.Engine], object], kind: type[Exception], words: str, engine: tessera.Engine) -> None:
    with pytest.raises(kind) as caught:
        use(engine)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_say_removes_the_message_after_an_exception(kind: type[BaseException], engine: tessera.Engine) -> None:
    calls = 0

    def stage(tokens: object, logits: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise kind

    talk = tessera.Conversation(engine, system="Be brief.")
    with pytest.raises(kind):
        talk.say("Tell me a story.", sampler=tessera.Sampler(stages=[stage]), max_tokens=10)
    assert [message["role"] for message in talk.messages] == ["system"]
    calls = 0
    with pytest.raises(kind):
        talk.answer("Tell me a story.", sampler=tessera.Sampler(stages=[stage]), max_tokens=10).read()
    assert [message["role"] for message in talk.messages] == ["system", "user"]  # answer() leaves it
    assert talk.answer(max_tokens=5).read() and len(talk.messages) == 3


def test_a_stage_gets_the_context_only_where_it_asks_for_it(session: tessera.Session) -> None:
    seen: list[Any] = []
    stages: list[Callable[..., None]] = [
        lambda tokens, logits: seen.append(None),
        lambda tokens, logits, k=3: seen.append(k),
        lambda *both: seen.append(len(both)),
        lambda tokens, logits, c: seen.append(c),
        lambda tokens, logits, context=None: seen.append(context),
        lambda tokens, logits, k=3, context=None: seen.append(context),
        lambda tokens, logits, *, context: seen.append(context),
    ]
    session.generate(tessera.Sampler(stages=stages), max_tokens=1).read()
    assert seen[:3] == [None, 3, 2] and all(isinstance(one, tessera.StageContext) for one in seen[3:]) and len(seen) == 7
    with pytest.raises(tessera.InvalidArgument, match="several dimensions"):
        session.generate(tessera.Sampler(stages=[lambda tokens, logits: [logits]]), max_tokens=1).read()


def test_restore_takes_every_kind_of_bytes(engine: tessera.Engine, session: tessera.Session) -> None:
    saved = session.save()
    assert saved is not None
    assert [engine.restore(kind(saved)).tokens for kind in (bytes, bytearray, memoryview)] == [session.tokens] * 3


def test_figures_and_words_of_an_engine(model: Any) -> None:
    engine = tessera.Engine(model, threads=1)
    assert "1 thread>" in repr(engine) and engine.kv_figures["room_bytes"] is None
    assert tessera.Engine(model, kv_budget=1 << 24).kv_figures["room_bytes"] == 1 << 24
    session = engine.session()
    session.append("Once upon")
    session.truncate(1000)
    assert len(session) == 3 or session.text == "Once upon"


def test_a_read_that_is_stopped_keeps_the_tokens(session: tessera.Session) -> None:
    calls, before = 0, len(session)

    def stage(tokens: object, logits: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt

    pieces = session.generate(tessera.Sampler(stages=[stage]), max_tokens=10)
    with pytest.raises(KeyboardInterrupt):
        pieces.read()
    assert len(session) == before + 3 and pieces.finish_reason == "error"


def with_template(source: bytes, template: str) -> bytes:
    """Returns a GGUF file with a chat template."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def number(at: int, size: int) -> int:
        return int.from_bytes(source[at : at + size], "little")

    def text_end(at: int) -> int:
        return at + 8 + number(at, 8)

    def value_end(at: int, kind: int) -> int:
        if kind == 8:
            return text_end(at)
        if kind != 9:
            return at + sizes[kind]
        of, count, at = number(at, 4), number(at + 4, 8), at + 12
        for _ in range(count if of == 8 else 0):
            at = text_end(at)
        return at if of == 8 else at + count * sizes[of]

    at = 24
    for _ in range(number(16, 8)):
        at = text_end(at)
        at = value_end(at + 4, number(at, 4))
    pairs_end = at
    for _ in range(number(8, 8)):
        at = text_end(at)
        at += 4 + 8 * number(at, 4) + 12
    data = (at + 31) // 32 * 32
    key, value = b"tokenizer.chat_template", template.encode()
    pair = len(key).to_bytes(8, "little") + key + (8).to_bytes(4, "little") + len(value).to_bytes(8, "little") + value
    head = source[:16] + (number(16, 8) + 1).to_bytes(8, "little") + source[24:pairs_end] + pair + source[pairs_end:at]
    return head + bytes(-len(head) % 32) + source[data:]


def test_a_template_must_show_the_tools(model: Any, tmp_path: Any) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    messages = [{"role": "user", "content": "hi"}]
    said = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    for template, shows in ((said, False), ("{% if tools %}{{ tools | tojson }}{% endif %}" + said, True)):
        (tmp_path / "model.gguf").write_bytes(with_template(model.read_bytes(), template))
        engine = tessera.Engine(tmp_path / "model.gguf", threads=1)
        assert engine.apply_chat_template(messages, tools=[], tokenize=False) == "user: hi\n"
        if shows:
            text = engine.apply_chat_template(messages, tools=tools, tokenize=False)
            assert isinstance(text, str) and '"name": "f"' in text
            with tessera.LLM(engine) as llm:
                assert llm.chat(messages, tessera.SamplingParams(max_tokens=2), tools=tools)[0].outputs[0].token_ids
        else:
            with pytest.raises(tessera.Unsupported, match="does not show tools"):
                engine.apply_chat_template(messages, tools=tools)
