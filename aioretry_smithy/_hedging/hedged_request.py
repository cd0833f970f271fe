"""Send a request and its hedges, until one of them brings a good answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from .._call.time_limits import time_left
from .._clock import loop_time
from .._failures.kept_cause import drop_frames
from .._failures.retry_info import RetryInfo
from .._failures.safety import RetrySafety, mark_seen, peel, retry_safety, was_queued
from .._retry.config import RETRY_COUNT_HEADER
from .._retry.http_exchange import HTTP
from .._retry.limiter_calls import acquired, notify

if TYPE_CHECKING:
    from collections.abc import Coroutine

    import aiohttp

    from .._call.client import HttpClient
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .._retry.limiter import RetryLimiter
    from .recent_times import FixedDelay, RecentTimes

_THROTTLED: Final = frozenset({408, 429})

_given_up: Final[set[asyncio.Task[Any]]] = set()
"""Tasks that are to end, some in their own time: the loop alone does not keep them."""


def is_good(status: int) -> bool:
    """Say whether no retry strategy would want another answer."""
    return status < 500 and status not in _THROTTLED


def _stays_open(response: aiohttp.ClientResponse | None) -> bool:
    """Say whether a body may keep its connection until it is read."""
    if response is None or response.connection is None:
        return False
    length, (buffer, _) = (
        response.content_length,
        response.content.get_read_buffer_limits(),
    )
    return length is None or length > buffer


class _Sent:
    """One of the requests, from when it is decided on."""

    __slots__ = ("cause", "ctx", "leave", "response", "started", "task")

    task: asyncio.Task[aiohttp.ClientResponse | None]

    ctx: ClientRequestContext | None
    """None where a limiter has not said yes."""

    leave: ClientRequestContext | None
    """The attempt for which a limiter gave a permit."""

    cause: Exception | None
    response: aiohttp.ClientResponse | None

    def __init__(self, ctx: ClientRequestContext | None = None) -> None:
        self.ctx = ctx
        self.started = loop_time()
        self.leave = self.cause = self.response = None


class HedgedRequest:
    """One request on its way through a hedging client, with its hedges.

    Each is sent in a task of its own, the first one too: one that ignores that it is
    cancelled must not hold up the caller, whose own task is left alone.

    Args:
        delegate: What sends them.
        ctx: The attempt. It gets the log of the request whose outcome counts.
        request: The request.
        times: Learn from the answers.
        delay: Seconds to wait for an answer before each hedge.
        max_hedges: How many there may be.
        limiter: Asked before each hedge.
    """

    def __init__(
        self,
        delegate: HttpClient,
        ctx: ClientRequestContext,
        request: HttpRequest,
        times: FixedDelay | RecentTimes,
        delay: float,
        max_hedges: int,
        limiter: RetryLimiter | None,
    ) -> None:
        self._delegate = delegate
        self._ctx = ctx
        self._request = request
        self._times = times
        self._delay = delay
        self._hedges_left = max_hedges
        self._limiter = limiter
        self._first = _Sent(ctx._twin())
        self._sent = [self._first]
        self._under_way: list[_Sent] = []
        # What counts if nothing good comes.
        self._best: _Sent | None = None

    async def run(self) -> aiohttp.ClientResponse:
        """Return the first good answer.

        Where there is none, return the last answer; without any, raise the first
        failure.
        """
        first: Any = self._first.ctx
        self._start(self._first, self._delegate.execute(first, self._request))
        try:
            await self._race()
            for sent in self._under_way:
                if sent.ctx is not None:
                    sent.ctx.log._supersede()
            await self._end()
        except BaseException as error:
            self._close_best()
            # A coroutine that is thrown away must not wait.
            await self._end(0 if isinstance(error, GeneratorExit) else 1)
            raise
        return self._hand_over()

    async def _race(self) -> None:
        """Send hedges until an answer is good, or nothing is under way any more."""
        while self._under_way:
            pause = self._delay if self._may_hedge() else None
            done, _ = await asyncio.wait(
                [sent.task for sent in self._under_way],
                timeout=pause,
                return_when=asyncio.FIRST_COMPLETED,
            )
            before = next(sent for sent in reversed(self._sent) if sent.ctx is not None)
            for sent in [each for each in self._under_way if each.task in done]:
                self._under_way.remove(sent)
                if self._take(sent):
                    return
                before = sent
            if self._may_hedge():
                self._hedge(before)

    def _may_hedge(self) -> bool:
        return self._hedges_left > 0 and time_left(self._ctx) > 0

    def _hedge(self, before: _Sent) -> None:
        self._hedges_left -= 1
        hedge = _Sent()
        self._sent.append(hedge)
        self._start(hedge, self._ask_and_send(hedge, before.ctx, before.cause))

    def _start(
        self, sent: _Sent, answer: Coroutine[Any, Any, aiohttp.ClientResponse | None]
    ) -> None:
        self._under_way.append(sent)
        sent.task = asyncio.get_running_loop().create_task(answer)

    async def _ask_and_send(
        self, hedge: _Sent, before: Any, cause: Exception | None
    ) -> aiohttp.ClientResponse | None:
        """Send a hedge; return None where the limiter gives no leave, or too late."""
        limiter, ctx = self._limiter, self._ctx
        if limiter is not None:
            if not await acquired(limiter, before, cause):
                ctx.log._call.refused_hedges += 1
                return None
            # It may have taken its time, and may even have ignored that it is over.
            if hedge not in self._under_way or time_left(ctx) <= 0:
                await notify(limiter, limiter.release, before)
                return None
            hedge.leave = before
        config: Any = ctx.root._retry_config
        name = getattr(config, "retry_count_header", RETRY_COUNT_HEADER)
        request = self._request
        if name is not None:
            made_before = ctx.root.log._count_attempts()
            request = HTTP.with_count(request, name, made_before)
        hedge.started = loop_time()
        hedge.ctx = attempt = ctx.derive(request)
        self._let_go()
        attempt.log._deadline = ctx.log._deadline
        attempt.log._hedge(ctx.log)
        return await self._delegate.execute(attempt, request)

    def _take(self, sent: _Sent) -> bool:
        """Look at the outcome of a request; say whether it is a good answer."""
        task = sent.task
        del sent.task  # it has the failure, whose frames have this object
        failure = task.exception()
        if isinstance(failure, Exception) and sent.ctx is not None:
            self._fail(sent, failure)
            return False
        del failure
        # Raises what did not come from a request.
        response = task.result()
        if response is None:
            self._hedges_left = 0
            return False
        self._close_best()
        self._best, sent.response = sent, response
        if is_good(response.status):
            self._learn(sent)
            return True
        if HTTP.hint(response) is not None:
            self._hedges_left = 0
        if any(other.ctx is not None for other in self._under_way):
            self._let_go()
        return False

    def _close_best(self) -> None:
        if self._best is not None and self._best.response is not None:
            self._best.response.close()

    def _let_go(self) -> None:
        """Close a bad answer that keeps a connection which others may wait for."""
        if self._best is not None and _stays_open(self._best.response):
            self._close_best()
            self._best = None

    def _fail(self, sent: _Sent, cause: Exception) -> None:
        sent.cause = cause
        self._best = self._best or sent
        if (
            retry_safety(cause) is RetrySafety.NO
            or was_queued(cause)
            or RetryInfo.of(peel(cause)).retry_after is not None
        ):
            self._hedges_left = 0

    def _learn(self, winner: _Sent) -> None:
        """Note how long the winner took, and the first request at least."""
        now = loop_time()
        self._times.note(now - winner.started)
        if self._first in self._under_way:
            self._times.note(now - self._first.started)

    def _cancel(self) -> None:
        for sent in self._under_way:
            task = sent.task
            _given_up.add(task)
            task.add_done_callback(_discard)
            task.cancel()

    async def _end(self, turns: int = 1) -> None:
        """Cancel what is under way, and wait for so many turns of the loop."""
        self._cancel()
        rest, self._under_way = self._under_way, []
        try:
            if rest and turns:
                await asyncio.sleep(0)
        finally:
            for sent in rest:
                _settle(sent)
            await self._end_permits()

    async def _end_permits(self) -> None:
        limiter = self._limiter
        for sent in self._sent:
            leave, sent.leave = sent.leave, None
            if limiter is not None and leave is not None:
                await notify(limiter, limiter.on_retry_end, leave)

    def _hand_over(self) -> aiohttp.ClientResponse:
        """Give the attempt the log of what counts, and return or raise that."""
        best: Any = self._best
        self._ctx.log, self._ctx.attempt = best.ctx.log, best.ctx.attempt
        cause, response = best.cause, best.response
        was_sent = False
        for sent in self._sent:
            if sent is not best:
                drop_frames(sent.cause)
                was_sent |= sent.ctx is not None and sent.ctx.log.sent
            sent.cause = None
        if response is not None:
            return response  # type: ignore[no-any-return]
        if was_sent:
            mark_seen(cause)
        try:
            raise cause
        finally:
            # It has this frame, which must not have it.
            del cause


def _settle(sent: _Sent) -> None:
    """Let the log of a request that was given up be complete."""
    if sent.ctx is None:
        return
    log, resources = sent.ctx.log, sent.ctx.root._resources
    if resources is not None:
        # A decorator may have dropped one, as it was cancelled.
        resources.close_responses(log)
    if log.duration is None:
        log._sent = log._sent or not sent.task.done()
        log._record_failure(asyncio.CancelledError())
    log._is_settled = True


def _discard(task: asyncio.Task[aiohttp.ClientResponse | None]) -> None:
    _given_up.discard(task)
    if not task.cancelled() and task.exception() is None:
        response = task.result()
        if response is not None:
            response.close()
