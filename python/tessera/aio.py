"""A scheduler for asyncio: requests are read by `async for`.

    async with tessera.AsyncScheduler(engine) as scheduler:
        async for piece in scheduler.submit("Once upon a time", max_tokens=50):
            print(piece, end="")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any

from ._calls import renamed
from ._core import Engine, Piece, ReadyQueue, Request, Sample, Scheduler, Session
from ._errors import Cancelled, InvalidArgument, InvalidState


class AsyncRequest(AsyncIterator[Piece]):
    """An asynchronous iterator over the pieces of the answer to a request. Only one task may read a request. If this task is cancelled while
    it waits for a piece, the request is cancelled.
    """

    def __init__(self, scheduler: AsyncScheduler, key: int) -> None:
        self._scheduler = scheduler
        self._key = key
        self._request: Request | None = None
        self._ready = False
        self._waiter: asyncio.Future[None] | None = None

    def _begin(self, request: Request) -> None:
        self._request = request

    def _wake(self) -> None:
        self._ready = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def request(self) -> Request:
        """The request itself, for its state and figures."""
        if self._request is None:
            raise InvalidState("the request was not submitted")
        return self._request

    def __aiter__(self) -> AsyncRequest:
        return self

    async def __anext__(self) -> Piece:
        request = self.request
        while True:
            ended = request.state == "ended"  # asked first: a request may end between the two calls
            piece = request.try_next()
            if piece is not None:
                return piece
            if ended or self._scheduler.closed:
                self._scheduler._forget(self._key)
                request.check()
                if not ended:
                    raise Cancelled("the scheduler was closed before the request had ended")
                raise StopAsyncIteration
            await self._wait()

    async def _wait(self) -> None:
        if not self._ready:
            if self._waiter is not None:
                raise InvalidState("two tasks read the same request: let one of them read")
            self._waiter = self._scheduler._loop_here().create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
            finally:
                self._waiter = None
        self._ready = False

    async def read(self) -> str:
        """Waits for the end and returns the rest of the first sample's text."""
        return "".join([piece.text async for piece in self if piece.sample == 0])

    def cancel(self) -> None:
        """Ends the request at the next step. Reading then raises Cancelled."""
        if self._request is not None:
            self._request.cancel()

    async def aclose(self) -> None:
        """Cancels the request if it has not ended."""
        self.cancel()
        self._scheduler._forget(self._key)

    async def __aenter__(self) -> AsyncRequest:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def take_session(self, sample: int = 0) -> Session:
        """Returns the session of a request that has ended. The request must have been submitted with keep_session=True."""
        return self.request.take_session(sample)

    def __repr__(self) -> str:
        return f"<tessera.AsyncRequest of {self._request!r}>"


class AsyncScheduler:
    """Runs many requests on one engine for an asyncio program. The options are those of Scheduler. Call the methods on the event loop's thread.

    Reading does not block the event loop: a thread of its own wakes the loop when a request has something to read.
    """

    def __init__(self, engine: Engine, **options: Any) -> None:
        if options.get("driver") is False:
            raise InvalidState("an AsyncScheduler needs the driver's thread: leave driver=False out")
        try:
            self._scheduler = Scheduler(engine, **options)
        except (TypeError, InvalidArgument) as error:
            raise renamed(error, "Scheduler(", "AsyncScheduler(") from None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue = ReadyQueue(self._wake_loop)
        self._requests: dict[int, AsyncRequest] = {}
        self._next_key = 0

    def _loop_here(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and self._requests and not self._loop.is_closed():
                raise InvalidState("the scheduler's requests belong to another event loop: make an AsyncScheduler for each loop")
            self._loop = loop
        return loop

    def _wake_loop(self) -> None:  # on the queue's thread
        loop = self._loop
        if loop is not None and not loop.is_closed():
            try:
                loop.call_soon_threadsafe(self._wake_requests)
            except RuntimeError:  # the loop was closed meanwhile
                pass

    def _wake_requests(self) -> None:
        for key in self._queue.take():
            request = self._requests.get(key)
            if request is not None:
                request._wake()

    def _forget(self, key: int) -> None:
        self._requests.pop(key, None)

    def submit(self, prompt: str | list[int], **options: Any) -> AsyncRequest:
        """Submits a request and returns at once. The options are those of Scheduler.submit()."""
        self._loop_here()
        key = self._next_key
        self._next_key += 1
        request = AsyncRequest(self, key)
        self._requests[key] = request
        try:
            request._begin(self._scheduler.submit(prompt, ready_queue=self._queue, ready_key=key, **options))
        except (TypeError, InvalidArgument) as error:
            self._forget(key)
            raise renamed(error, "Scheduler.", "AsyncScheduler.") from None
        except BaseException:
            self._forget(key)
            raise
        return request

    async def generate(self, prompt: str | list[int], **options: Any) -> list[Sample]:
        """Submits a request, waits for its end, and returns all of its samples."""
        request = self.submit(prompt, **options)
        samples: list[tuple[list[str], list[Piece]]] = [([], []) for _ in range(options.get("samples", 1))]
        async for piece in request:
            samples[piece.sample][0].append(piece.text)
            samples[piece.sample][1].append(piece)
        return [
            Sample("".join(texts), [piece.token for piece in pieces], pieces[-1].finish_reason if pieces else None, pieces[-1].stop_string if pieces else None)
            for texts, pieces in samples
        ]

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler itself, for its figures."""
        return self._scheduler

    @property
    def figures(self) -> dict[str, Any]:
        return self._scheduler.figures

    @property
    def closed(self) -> bool:
        return self._scheduler.closed

    async def drain(self) -> None:
        """Refuses further requests, and waits until all submitted requests have ended. Other tasks must read these requests, because a request
        with max_unread unread pieces is not computed further.
        """
        self._scheduler.drain(wait=False)
        while not self._scheduler.idle:
            await asyncio.sleep(0.01)

    async def aclose(self) -> None:
        """Cancels all requests and ends the scheduler's thread."""
        await asyncio.to_thread(self._close)
        for request in list(self._requests.values()):
            request._wake()
        self._requests.clear()

    def _close(self) -> None:
        self._scheduler.close()
        self._queue.close()

    async def __aenter__(self) -> AsyncScheduler:
        self._loop_here()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<tessera.AsyncScheduler of {self._scheduler!r}, {len(self._requests)} requests>"
