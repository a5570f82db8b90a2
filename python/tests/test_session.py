from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tessera


def test_append_returns_logits_and_all_rows(engine: tessera.Engine) -> None:
    tokens = engine.tokenizer.encode("Once upon a time")
    last = engine.session().append(tokens)
    rows = engine.session().append(tokens, rows="all")
    assert last.dtype == np.float32 and last.shape == (2048,) and rows.shape == (len(tokens), 2048) and (rows[-1] == last).all()
    assert engine.session().append(tokens, rows="none") is None
    assert engine.session().append(np.array(tokens, dtype=np.int32)).argmax() == last.argmax()
    hidden = engine.session().append(tokens, want="hidden", rows="all")
    assert hidden.shape == (len(tokens), engine.d_model)


def test_arrays_outlive_everything_and_never_change(model: Path) -> None:
    engine = tessera.Engine(model, threads=1)
    session = engine.session()
    first = session.append("Once upon")
    copy = first.copy()
    assert np.shares_memory(first, session.logits)  # no copy
    second = session.append(" a time")
    assert (first == copy).all() and not (first == second).all()
    del session, engine
    gc.collect()
    assert (first == copy).all()


def test_dlpack(session: tessera.Session) -> None:
    logits = session.logits
    assert logits is not None
    view = np.from_dlpack(logits)
    assert np.shares_memory(view, logits)


def test_generate(session: tessera.Session, alone: str) -> None:
    generation = session.generate(max_tokens=20)
    pieces = list(generation)
    assert "".join(map(str, pieces)) == alone and pieces[-1].finish_reason == "max_tokens" == generation.finish_reason
    assert len(pieces) == 20 and generation.figures["tokens"] == 20 and "token" in repr(pieces[0])
    assert session.text.endswith(alone) and session.position == len(session) - 1


def test_stop_strings_and_logprobs(session: tessera.Session, alone: str) -> None:
    word = alone.split()[3]
    pieces = list(session.generate(max_tokens=20, stop=["zzz", word], logprobs=3))
    assert pieces[-1].finish_reason == "stop_string" and pieces[-1].stop_string == 1
    assert "".join(piece.text for piece in pieces) == alone.split(word)[0]
    assert len(pieces[0].top) == 3 and pieces[0].top[0][1] == pieces[0].logprob <= 0


def test_leaving_early_frees_the_session(session: tessera.Session) -> None:
    with session.generate() as pieces:
        next(pieces)
        with pytest.raises(tessera.InvalidState):
            session.append("x")
    session.append("x")
    assert list(pieces) == []


def test_fork_clone_truncate_remove(session: tessera.Session, alone: str) -> None:
    fork, clone = session.fork(), session.clone()
    assert (fork.logits == session.logits).all()
    assert [copy.generate(max_tokens=20).read() for copy in (fork, clone)] == [alone, alone]
    n = len(session)
    session.append(" there was")
    session.truncate(n)
    assert session.logits is None and len(session) == n
    assert session.generate(max_tokens=20).read() == alone
    assert session.verify()
    session.append([1])
    session.remove(1, 2)
    assert session.edited


def test_save_and_restore(engine: tessera.Engine, session: tessera.Session, alone: str, tmp_path: Path) -> None:
    data = session.save()
    assert isinstance(data, bytes)
    path = tmp_path / "session"
    assert session.save(path) is None and path.read_bytes() == data
    for restored in (engine.restore(data), engine.restore(path), engine.restore(str(path))):
        assert restored.tokens == session.tokens and (restored.logits == session.logits).all()
        assert restored.generate(max_tokens=20).read() == alone
    with pytest.raises(tessera.CorruptFile):
        engine.restore(data[:-5])


def test_score_and_beams(engine: tessera.Engine) -> None:
    session = engine.session()
    session.append("Once upon")
    scores = session.score(" a time")
    assert len(scores) == 2 and (scores <= 0).all()
    beams = session.beam_search(beams=3, max_tokens=5)
    assert len(beams) == 3 and beams[0][1] >= beams[1][1]


def test_by_hand_gives_the_same_tokens(session: tessera.Session, alone: str) -> None:
    sampler = tessera.Sampler(temperature=0)
    tokens = []
    logits = session.logits
    for _ in range(20):
        assert logits is not None
        token = sampler.sample(logits, session.tokens, position=session.next_position)
        sampler.accept(token)
        tokens.append(token)
        logits = session.append([token])
    assert session.engine.tokenizer.decode(tokens, continuation=True) == alone


def test_batch(engine: tessera.Engine) -> None:
    first, second = engine.session(), engine.session()
    tokens = engine.tokenizer.encode("Once upon a time")
    batch = tessera.Batch()
    assert batch.add(first, tokens) == (0, 5) and batch.add(second, tokens[:2], want="embedding") == (5, 7)
    outputs = engine.forward(batch)
    assert (outputs.row(4) == engine.session().append(tokens)).all() and outputs[6].shape == (engine.d_model,) and len(outputs) == 7
    third = engine.session()
    batch = tessera.Batch()
    batch.add(third, tokens, want="token", sampler=tessera.Sampler(temperature=0))
    assert engine.forward(batch).token(4) == outputs.row(4).argmax()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda s: s.append([10**6]), ValueError),
        (lambda s: s.append("x" * 5000), tessera.CacheFull),
        (lambda s: s.append("x", rows="some"), ValueError),
        (lambda s: s.append([], want="hidden"), ValueError),
        (lambda s: s.generate(max_tokens=0), ValueError),
        (lambda s: s.remove(3, 99), ValueError),
        (lambda s: s.append(3.5), TypeError),
        (lambda s: s.generate(42), TypeError),
    ],
)
def test_wrong_uses_are_errors_and_the_session_stays(session: tessera.Session, alone: str, wrong: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        wrong(session)  # type: ignore[operator]
        raise AssertionError("no error")
    assert session.generate(max_tokens=20).read() == alone


def test_two_threads_on_one_session_get_errors_not_races(engine: tessera.Engine) -> None:
    session = engine.session()
    errors: list[Exception] = []

    def work() -> None:
        for _ in range(20):
            try:
                session.append([5, 6, 7])
                session.clear()
            except tessera.InvalidState as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.clear()
    session.append([5])


def test_sessions_in_threads_give_the_same_text(engine: tessera.Engine, alone: str) -> None:
    texts: list[str] = []

    def work() -> None:
        session = engine.session()
        session.append("Once upon a time")
        texts.append(session.generate(max_tokens=20).read())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [alone] * 8


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_comes_through_while_computing(engine: tessera.Engine) -> None:
    def interrupt() -> None:
        time.sleep(0.1)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            session = engine.session(prefix=False)
            session.append([5] * 500)
            session.verify()
    thread.join()
    assert engine.session().append("Once") is not None
