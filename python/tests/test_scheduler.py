from __future__ import annotations

import asyncio
import os
import threading
import time

import pytest

import tessera

MANY = int(os.environ.get("TESSERA_TEST_REQUESTS", "1000"))


def test_requests_give_the_text_of_a_session_alone(scheduler: tessera.Scheduler, alone: str) -> None:
    requests = [scheduler.submit("Once upon a time", max_tokens=20) for _ in range(10)]
    assert [request.read() for request in requests] == [alone] * 10
    assert requests[0].state == "ended" and requests[0].finish_reason == "max_tokens" and requests[0].figures["tokens"] == 20
    scheduler.drain()  # figures are counted at the end of a step
    figures = scheduler.figures
    assert figures["finished"] == 10 and figures["time_to_first_token"]["count"] == 10 and figures["tenants"] is not None


def test_pieces_stream_and_samples_are_told_apart(scheduler: tessera.Scheduler) -> None:
    texts = ["", ""]
    for piece in scheduler.submit("Once", max_tokens=5, samples=2, sampler=tessera.Sampler(temperature=1.5, seed=1)):
        texts[piece.sample] += piece.text
    samples = scheduler.submit("Once", max_tokens=5, samples=2, sampler=tessera.Sampler(temperature=1.5, seed=1)).result()
    assert [sample.text for sample in samples] == texts and texts[0] != texts[1] and samples[0].finish_reason == "max_tokens"


def test_a_request_is_cancelled(scheduler: tessera.Scheduler) -> None:
    request = scheduler.submit("Once", ignore_eos=True)
    assert request.next() is not None
    request.cancel()
    with pytest.raises(tessera.Cancelled):
        request.read()
    with scheduler.submit("Once", ignore_eos=True) as left:
        next(left)
    with pytest.raises(tessera.Cancelled):
        left.read()
    scheduler.submit("Once", ignore_eos=True)  # destroyed at once
    deadline = time.monotonic() + 10
    while not scheduler.idle and time.monotonic() < deadline:
        time.sleep(0.01)
    assert scheduler.idle


def test_timeouts_and_pauses(scheduler: tessera.Scheduler) -> None:
    request = scheduler.submit("Once", max_tokens=3)
    request.pause()
    while request.try_next() is not None or request.state == "running":
        pass
    if request.state == "paused":
        assert request.next(timeout=0.05) is None
    request.resume()
    request.read()
    assert request.state == "ended" and request.next(timeout=1) is None


def test_sessions_go_into_requests_and_come_back(engine: tessera.Engine, scheduler: tessera.Scheduler, alone: str) -> None:
    session = engine.session()
    session.append("Once upon a time")
    request = scheduler.submit([], session=session, max_tokens=20, keep_session=True)
    with pytest.raises(tessera.InvalidState):
        session.append("x")
    assert request.read() == alone
    back = request.take_session()
    assert back.text.endswith(alone)
    with pytest.raises(tessera.InvalidState, match="taken"):
        request.take_session()


def test_without_a_driver_the_host_drives(engine: tessera.Engine, alone: str) -> None:
    scheduler = tessera.Scheduler(engine, driver=False)
    request = scheduler.submit("Once upon a time", max_tokens=20)
    while scheduler.step():
        pass
    text = ""
    while (piece := request.try_next()) is not None:
        text += piece.text
    assert text == alone
    assert scheduler.submit("Once upon a time", max_tokens=20).read() == alone


def test_on_ready_is_called_and_may_not_call_back(scheduler: tessera.Scheduler) -> None:
    called, refused = threading.Event(), threading.Event()

    def ready() -> None:
        try:
            scheduler.submit("x")
        except tessera.InvalidState:
            refused.set()
        called.set()

    request = scheduler.submit("Once", max_tokens=5, on_ready=ready)
    assert called.wait(10) and refused.is_set()
    request.read()


def test_speculation_is_not_seen(scheduler: tessera.Scheduler, alone: str) -> None:
    assert scheduler.submit("Once upon a time", max_tokens=20, drafter=tessera.Drafter.ngram()).read() == alone


def test_64_threads_on_one_scheduler(scheduler: tessera.Scheduler, alone: str) -> None:
    texts: list[str] = []

    def work() -> None:
        for _ in range(2):
            texts.append("".join(piece.text for piece in scheduler.submit("Once upon a time", max_tokens=20)))

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [alone] * 128


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda s: s.submit([]), ValueError),
        (lambda s: s.submit([10**6]), ValueError),
        (lambda s: s.submit("x", samples=0), ValueError),
        (lambda s: s.submit("x" * 5000), tessera.Error),
        (lambda s: s.submit("x", sampler=3), TypeError),
        (lambda s: s.step(), tessera.InvalidState),
        (lambda s: tessera.Scheduler(s.engine, policy="random"), ValueError),
        (lambda s: (s.close(), s.submit("x")), tessera.InvalidState),
    ],
)
def test_wrong_uses_are_errors(scheduler: tessera.Scheduler, wrong: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        wrong(scheduler)  # type: ignore[operator]


def test_too_many_requests_are_busy(engine: tessera.Engine) -> None:
    with tessera.Scheduler(engine, max_waiting=2, max_running=1, driver=False) as scheduler:
        kept = []
        with pytest.raises(tessera.Busy):
            for _ in range(10):
                kept.append(scheduler.submit("x"))


def test_many_asyncio_requests(engine: tessera.Engine, alone: str) -> None:
    async def read(scheduler: tessera.AsyncScheduler) -> str:
        return "".join([piece.text async for piece in scheduler.submit("Once upon a time", max_tokens=20)])

    async def main() -> list[str]:
        async with tessera.AsyncScheduler(engine, max_waiting=MANY) as scheduler:
            return list(await asyncio.gather(*[read(scheduler) for _ in range(MANY)]))

    assert asyncio.run(main()) == [alone] * MANY


def test_a_cancelled_task_cancels_its_request(engine: tessera.Engine) -> None:
    async def main() -> None:
        async with tessera.AsyncScheduler(engine) as scheduler:
            requests: list[tessera.AsyncRequest] = []

            async def read() -> None:
                requests.append(scheduler.submit("Once", ignore_eos=True))
                async for _ in requests[0]:
                    pass

            task = asyncio.create_task(read())
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for _ in range(1000):
                if scheduler.scheduler.idle:
                    break
                await asyncio.sleep(0.01)
            assert scheduler.scheduler.idle and scheduler.figures["cancelled"] == 1
            samples = await scheduler.generate("Once", max_tokens=3, samples=2)
            assert len(samples) == 2 and samples[0].text

    asyncio.run(main())


def test_closing_ends_readers(engine: tessera.Engine) -> None:
    async def main() -> None:
        scheduler = tessera.AsyncScheduler(engine)
        request = scheduler.submit("Once", ignore_eos=True)
        await request.__anext__()

        async def read() -> None:
            async for _ in request:
                pass

        task = asyncio.create_task(read())
        await asyncio.sleep(0.01)
        await scheduler.aclose()
        with pytest.raises(tessera.Error):
            await asyncio.wait_for(task, 10)

    asyncio.run(main())


def test_errors_of_a_request_reach_the_task(engine: tessera.Engine) -> None:
    def wrong(tokens: object, logits: object) -> None:
        raise KeyError("mine")

    async def main() -> None:
        async with tessera.AsyncScheduler(engine) as scheduler:
            with pytest.raises(KeyError, match="mine"):
                await scheduler.submit("Once", sampler=tessera.Sampler(stages=[wrong])).read()

    asyncio.run(main())
