from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tessera


def text(engine: tessera.Engine, sampler: tessera.Sampler, prompt: str = "Once upon a time", n: int = 20) -> str:
    session = engine.session()
    session.append(prompt)
    return session.generate(sampler, max_tokens=n).read()


def test_the_seed_decides(engine: tessera.Engine) -> None:
    one = text(engine, tessera.Sampler(temperature=1.5, seed=1))
    assert one == text(engine, tessera.Sampler(temperature=1.5, seed=1)) != text(engine, tessera.Sampler(temperature=1.5, seed=2))
    fresh = tessera.Sampler(temperature=1.5)
    assert text(engine, fresh.clone()) == text(engine, tessera.Sampler(temperature=1.5, seed=fresh.seed))


def test_a_chain_is_the_keywords_in_another_order(engine: tessera.Engine) -> None:
    chain = tessera.Chain().temperature(0.8).top_k(40).top_p(0.9).seed(3).build()
    assert text(engine, chain) == text(engine, tessera.Sampler(temperature=0.8, top_k=40, top_p=0.9, seed=3))
    assert "top_k=40" in repr(chain)


def test_distribution(session: tessera.Session) -> None:
    assert session.logits is not None
    tokens, probabilities = tessera.Sampler(top_k=5).distribution(session.logits, session.tokens)
    assert len(tokens) == 5 and abs(probabilities.sum() - 1) < 1e-5


def test_a_stage_in_python_changes_in_place_or_returns(engine: tessera.Engine) -> None:
    def in_place(tokens: np.ndarray[Any, Any], logits: np.ndarray[Any, Any]) -> None:
        logits[tokens != 7] = -np.inf

    def returns(tokens: np.ndarray[Any, Any], logits: np.ndarray[Any, Any], context: tessera.StageContext) -> np.ndarray[Any, Any]:
        assert len(context.history) == context.position and 0 <= context.uniform() < 1
        return np.where(tokens == 7, logits, -np.inf)

    for stage in (in_place, returns):
        session = engine.session()
        session.append("Once")
        assert [piece.token for piece in session.generate(tessera.Sampler(stages=[stage]), max_tokens=3)] == [7, 7, 7]


def test_arrays_of_a_stage_may_be_kept(engine: tessera.Engine) -> None:
    kept: list[np.ndarray[Any, Any]] = []
    text(engine, tessera.Chain().stage(lambda tokens, logits: kept.append(logits)).greedy().build(), n=3)
    assert len(kept) == 3 and not (kept[0] == kept[1]).all()


class Mine(Exception):
    pass


def test_exceptions_of_a_stage_come_through_as_themselves(engine: tessera.Engine, scheduler: tessera.Scheduler, alone: str) -> None:
    def wrong(tokens: object, logits: object) -> None:
        raise Mine("here")

    sampler = tessera.Sampler(stages=[wrong])
    session = engine.session()
    session.append("Once upon a time")
    with pytest.raises(Mine, match="here"):
        session.generate(sampler, max_tokens=3).read()
    with pytest.raises(Mine, match="here"):
        scheduler.submit("Once", sampler=sampler, max_tokens=3).read()
    assert session.generate(max_tokens=20).read() == alone  # the session is as it was


def test_a_stage_that_remembers_has_a_state_for_each_sampler(engine: tessera.Engine, scheduler: tessera.Scheduler) -> None:
    class Counting:
        def __init__(self) -> None:
            self.taken: list[int] = []

        def __call__(self, tokens: np.ndarray[Any, Any], logits: np.ndarray[Any, Any]) -> None:
            logits[tokens != 10 + len(self.taken)] = -np.inf

        def accept(self, token: int, probability: float) -> None:
            self.taken.append(token)

        def rollback(self, n: int) -> None:
            del self.taken[len(self.taken) - n :]

    sampler = tessera.Sampler(stages=[Counting()])
    for _ in range(2):
        assert [piece.token for piece in scheduler.submit("Once", sampler=sampler, max_tokens=3)] == [10, 11, 12]


def test_a_stage_that_computes_is_refused(engine: tessera.Engine) -> None:
    other = engine.session()

    def computes(tokens: object, logits: object) -> None:
        other.append("x")

    with pytest.raises(tessera.InvalidState, match="stage"):
        text(engine, tessera.Sampler(stages=[computes]))


def test_grammars_hold_the_text(engine: tessera.Engine) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": False}
    grammar = tessera.Grammar.json_schema(schema)
    for sampler in (tessera.Sampler(grammar=grammar, seed=1), tessera.Chain().grammar(grammar).seed(1).build()):
        assert isinstance(json.loads(text(engine, sampler, "Record: ", 60))["age"], int)
    assert text(engine, tessera.Sampler(grammar=tessera.Grammar.choice(["yes", "no"]))) in ("yes", "no")
    assert text(engine, tessera.Sampler(grammar=tessera.Grammar.regex("[0-9]{3}"))).isdigit()
    assert set(text(engine, tessera.Sampler(grammar=tessera.Grammar.ebnf('root ::= "a" "b"')))) == {"a", "b"}
    both = tessera.Grammar.literal("x") + (tessera.Grammar.literal("y") | tessera.Grammar.literal("z"))
    assert text(engine, tessera.Sampler(grammar=both)) in ("xy", "xz")
    assert engine.compile(grammar).check('{"age": 1}') is None and engine.compile(grammar).check('{"name"')
    matcher = tessera.Matcher(engine.compile(tessera.Grammar.literal("the")))
    assert matcher.mask().dtype == np.uint64 and matcher.forced() == b"the" and not matcher.may_end


def test_pydantic_models(engine: tessera.Engine) -> None:
    pydantic = pytest.importorskip("pydantic")
    person = pydantic.create_model("Person", age=(int, ...), __config__={"extra": "forbid"})
    found = text(engine, tessera.Sampler(grammar=tessera.Grammar.json_schema(person), seed=1), "Record: ", 60)
    assert person.model_validate_json(found).age is not None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: tessera.Sampler(temperature=-1),
        lambda: tessera.Sampler(top_p=2),
        lambda: tessera.Sampler(stages=[42]),
        lambda: tessera.Grammar.json_schema(42),
        lambda: tessera.Grammar.json_schema("{"),
        lambda: tessera.Grammar.regex("("),
        lambda: tessera.Grammar.ebnf("root ::= nothing"),
        lambda: tessera.Grammar.choice([]),
        lambda: tessera.Grammar.json_schema({}, whitespace="some"),
    ],
)
def test_wrong_options_are_value_errors(wrong: Any) -> None:
    with pytest.raises(ValueError) as caught:
        wrong()
    assert isinstance(caught.value, tessera.Error) and len(str(caught.value)) > 10


def test_unsupported_keywords_are_named() -> None:
    with pytest.raises(NotImplementedError, match="pattern"):
        tessera.Grammar.json_schema({"type": "string", "pattern": r"(a)\1"})


def test_a_grammar_needs_a_vocabulary(session: tessera.Session) -> None:
    assert session.logits is not None
    sampler = tessera.Sampler(grammar=tessera.Grammar.choice(["yes"]))
    with pytest.raises(tessera.InvalidState, match="bind"):
        sampler.sample(session.logits)
    sampler.bind(session.engine)
    assert sampler.sample(session.logits) >= 0
