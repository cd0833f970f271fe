"""Send a request and hedges, until the first good answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .._call.outcome import connection_of
from .._call.record import Race, Record
from .._call.recorder import (
    begin_beside,
    record_failure,
    record_race,
    record_superseded,
)
from .._call.time_limits import time_left
from .._clock import loop_time
from .._context.context import AttemptContext, ClientRequestContext
from .._context.holdings import hand_over
from .._failures.failure import TRANSIENT, RetrySafety, failure_of, judge, ran_out
from .._failures.hints import NO_HEADERS
from .._failures.kept_cause import drop_frames
from .._retry.call_adapter import HTTP
from .._retry.config import RETRY_COUNT_HEADER
from .._retry.ending import is_refusal
from .._retry.limiter import RetryLimiter, acquired, notify, until_it_waits

if TYPE_CHECKING:
    from collections.abc import Coroutine

    import aiohttp

    from .._call.call import Exchange
    from .._context.client import HttpClient
    from .._request.request import HttpRequest
    from .delay import FixedDelay, RecentTimes

    Answer: TypeAlias = aiohttp.ClientResponse | None
    """None where a limiter has not said yes."""


_given_up: Final[set[asyncio.Task[Answer]]] = set()
"""Tasks that are to end, some in their own time: the loop alone does not keep them."""


@dataclass(slots=True, eq=False)
class SentRequest:
    """A request of a race: the first one, or a hedge, from the decision on."""

    task: asyncio.Task[Answer] = field(init=False)

    ctx: AttemptContext = field(init=False)
    """The context that the request is sent with."""

    is_sent: bool = False
    """Whether it is not waiting for a limiter any more."""

    permit: ClientRequestContext | None = None
    """The attempt for which a limiter gave a permit."""

    cause: Exception | None = None
    response: aiohttp.ClientResponse | None = None
    started: float = field(init=False)

    def send(self, ctx: AttemptContext) -> None:
        """Note that the request is sent now."""
        self.ctx, self.is_sent, self.started = ctx, True, loop_time()

    def close(self) -> None:
        """Close the answer."""
        if self.response is not None:
            self.response.close()

    def was_refused(self) -> bool:
        """Say whether the failure is a refusal on this side, and no injected fault."""
        is_injected = self.is_sent and self.ctx.log.injected
        return is_refusal(self.cause) and not is_injected

    def holds_connection(self) -> bool:
        """Say whether the body is incomplete, with the connection in use."""
        response = self.response
        return response is not None and connection_of(response) is not None

    def give_up(self) -> None:
        """Cancel the task without waiting, and close a late response."""
        if self.task.get_loop().is_closed():
            # Nobody runs it any more.
            return
        _given_up.add(self.task)
        self.task.add_done_callback(_discard)
        self.task.cancel()

    def let_go(self) -> None:
        """Release the permits that the request holds for calls made inside."""
        if self.is_sent and self.ctx.holdings is not None:
            self.ctx.holdings.end()

    def settle(self) -> None:
        """Complete the log of the request after it was given up."""
        task = self.task
        del self.task  # it may have a failure, whose frames have this object
        if not self.is_sent:
            return
        call, record = self.ctx.call, self.ctx.record
        if call.resources is not None:
            # A decorator may have dropped one, as it was cancelled.
            call.resources.close_responses(self.ctx)
        if record.outcome.ended is None:
            record.was_sent = record.was_sent or not task.done()
            record_failure(self.ctx, asyncio.CancelledError())
        record.is_final = True


class Candidates:
    """The best answer of a race so far, and the failure that counts without answers.

    The first good answer of a server wins. Where there is none, when all requests are
    over, comes the first good answer of something on this side, then the last bad
    answer, then the first failure, then the first refusal on this side.
    """

    __slots__ = ("_answer", "_failure", "_is_good")

    def __init__(self, first: SentRequest) -> None:
        self._answer: SentRequest | None = None
        self._failure = first
        self._is_good = False

    @property
    def best(self) -> SentRequest:
        """The request whose outcome counts."""
        return self._answer or self._failure

    def win(self, sent: SentRequest) -> None:
        """Take the good answer of a server; close the answer kept before."""
        self.close()
        self._answer = sent

    def answer(self, sent: SentRequest, *, is_good: bool) -> None:
        """Keep an answer, unless a good one is kept; close the other answer.

        Args:
            sent: The request.
            is_good: Whether the answer is good, though it is none of a server.
        """
        if self._is_good:
            sent.close()
        else:
            self.win(sent)
            self._is_good = is_good

    def fail(self, sent: SentRequest) -> None:
        """Keep the first failure; a refusal only until a failure of the server."""
        before = self._failure
        if before.cause is None or (before.was_refused() and not sent.was_refused()):
            self._failure = sent

    def free_connection(self) -> None:
        """Close a bad answer whose connection or permit is in demand."""
        answer = self._answer
        if answer is not None and not self._is_good and answer.holds_connection():
            self.close()
            self._answer = None

    def close(self) -> None:
        """Close the answer, if any."""
        if self._answer is not None:
            self._answer.close()


def came_from_server(
    ctx: ClientRequestContext, response: aiohttp.ClientResponse
) -> bool:
    """Say whether the answer to a request is one of a server.

    One that a fault injected is, so that hedging can be tested; that of a fallback
    or a cache is not. A decorator may have made attempts of its own.
    """
    record, headers = ctx.record, getattr(response, "headers", NO_HEADERS)
    if record.was_refused:
        # Whatever was sent before the fallback answered.
        return False
    return _met_server(record) or any(
        _met_server(each) and each.outcome.headers is headers
        for each in ctx.call.sent_after(record.number)
    )


def _met_server(record: Record) -> bool:
    return record.was_sent or record.outcome.is_injected


def _discard(task: asyncio.Task[Answer]) -> None:
    _given_up.discard(task)
    if not task.cancelled() and task.exception() is None:
        response = task.result()
        if response is not None:
            response.close()


def is_good(status: int) -> bool:
    """Say whether an answer with a status is good: no retry strategy retries it."""
    return status < 500 and status not in TRANSIENT


@dataclass(eq=False)
class HedgedRequest:
    """A request in a hedging client, with its hedges.

    Each is sent in a task of its own, the first one too: one that ignores that it is
    cancelled must not hold up the caller, whose own task is left alone.

    Args:
        _delegate: What sends them.
        _ctx: The attempt. It gets the log of the request whose outcome counts.
        _request: The request.
        _times: Learn from the answers.
        _delay: Seconds to wait for an answer before each hedge.
        _hedges_left: How many there may be.
        _limiter: Asked before each hedge.
    """

    _delegate: HttpClient
    _ctx: AttemptContext
    _request: HttpRequest
    _times: FixedDelay | RecentTimes
    _delay: float
    _hedges_left: int
    _limiter: RetryLimiter | None

    def __post_init__(self) -> None:
        self._call = self._ctx.call
        self._record = self._own_record()
        self._first = self._last = SentRequest()
        self._sent: list[SentRequest] = []
        self._under_way: list[SentRequest] = []
        self._candidates = Candidates(self._first)

    async def run(self) -> aiohttp.ClientResponse:
        """Return the first good answer.

        Where there is none, return the last answer; without any, raise the first
        failure. A good answer that something on this side gave in place of the server
        serves where no other request brings one.
        """
        # The attempt itself, and its context, get the request that counts.
        self._first.send(self._ctx.beside(self._record))
        answer = self._delegate.execute(self._first.ctx, self._request)
        self._start(self._first, answer)
        try:
            await self._race()
            for sent in self._under_way:
                if sent.is_sent:
                    record_superseded(sent.ctx.record)
            await self._end()
        except BaseException as error:
            self._candidates.close()
            for sent in self._sent:
                sent.let_go()
            # A coroutine that is thrown away must not wait.
            await self._end(0 if isinstance(error, GeneratorExit) else 1)
            raise
        return self._hand_over()

    def _own_record(self) -> Exchange:
        """Return the record of the first request, which no other pass writes into."""
        record = self._ctx.record
        if record.is_raced or record.was_sent or record.outcome.ended is not None:
            # A decorator outside sends twice, in turn or at once.
            record = begin_beside(self._call, record)
        elif record.race is not None:
            # In place of a hedge whose token was refused.
            record.race = None
        record.is_raced = True
        return record

    async def _race(self) -> None:
        """Send hedges until an answer is good, or nothing is under way any more."""
        while self._under_way:
            pause = self._delay if self._may_hedge() else None
            done, _ = await asyncio.wait(
                [sent.task for sent in self._under_way],
                timeout=pause,
                return_when=asyncio.FIRST_COMPLETED,
            )
            before = next(sent for sent in reversed(self._sent) if sent.is_sent)
            for sent in [each for each in self._under_way if each.task in done]:
                self._under_way.remove(sent)
                if self._take(sent):
                    return
                before = sent
            if self._may_hedge():
                self._hedge(before)

    def _may_hedge(self) -> bool:
        return self._hedges_left > 0 and self._time_left() > 0

    def _time_left(self) -> float:
        return time_left(self._call, self._record)

    def _hedge(self, before: SentRequest) -> None:
        self._hedges_left -= 1
        hedge = SentRequest()
        self._start(hedge, self._ask_and_send(hedge, before.ctx, before.cause))

    def _start(
        self, sent: SentRequest, answer: Coroutine[object, None, Answer]
    ) -> None:
        self._sent.append(sent)
        self._under_way.append(sent)
        sent.task = asyncio.get_running_loop().create_task(answer)

    async def _ask_and_send(
        self, hedge: SentRequest, before: ClientRequestContext, cause: Exception | None
    ) -> Answer:
        """Send a hedge; return None where the limiter gives no permit, or too late."""
        limiter = self._limiter
        if limiter is not None:
            if not await acquired(limiter, before, cause):
                self._call.refused_hedges += 1
                return None
            # It may have taken its time, and may even have ignored that it is over.
            if hedge not in self._under_way or self._time_left() <= 0:
                await notify(limiter, limiter.release, before)
                return None
            hedge.permit = before
        call = self._call
        name = getattr(call.retry_config, "retry_count_header", RETRY_COUNT_HEADER)
        request = self._request
        if name is not None:
            request = HTTP.with_count(request, name, call.attempts_made)
        hedge.send(AttemptContext(self._call, request))
        self._candidates.free_connection()
        record, first = hedge.ctx.record, self._record
        record.deadline = first.deadline
        record.race = Race(record.started - first.started)
        return await self._delegate.execute(hedge.ctx, request)

    def _take(self, sent: SentRequest) -> bool:
        """Look at the outcome of a request; say whether it wins."""
        task = sent.task
        del sent.task  # it has the failure, whose frames have this object
        self._last = sent
        failure = task.exception()
        if isinstance(failure, Exception) and sent.is_sent:
            return self._take_failure(sent, failure)
        del failure
        # Raises what did not come from a request.
        response = task.result()
        if response is None:
            self._hedges_left = 0
            return False
        sent.response = response
        return self._take_answer(sent, response)

    def _take_answer(self, sent: SentRequest, response: aiohttp.ClientResponse) -> bool:
        good = is_good(response.status)
        if good and came_from_server(sent.ctx, response):
            self._win(sent)
            return True
        self._candidates.answer(sent, is_good=good)
        if good or HTTP.retry_after(response) is not None:
            self._hedges_left = 0
        if good:
            # Nothing is known of the server; those under way may bring its answer yet.
            self._withdraw()
        elif any(other.is_sent for other in self._under_way):
            self._candidates.free_connection()
        return False

    def _withdraw(self) -> None:
        """Give up the hedges that still wait for a permit."""
        waiting = [sent for sent in self._under_way if not sent.is_sent]
        for hedge in waiting:
            if not hedge.task.done():
                self._under_way.remove(hedge)
                hedge.give_up()
                hedge.settle()

    def _take_failure(self, sent: SentRequest, cause: Exception) -> bool:
        """Look at a failure; one that was raised for a good answer wins like that."""
        sent.cause = cause
        failure = failure_of(cause)
        status = failure.status_of_server
        if status is not None and is_good(status):
            self._win(sent)
            return True
        self._candidates.fail(sent)
        if (
            failure.safety is RetrySafety.NO
            or failure.queue is not None
            or failure.hint() is not None
        ):
            self._hedges_left = 0
        return False

    def _win(self, winner: SentRequest) -> None:
        """Record the latency of the winner, and the time of a first request so far."""
        self._candidates.win(winner)
        now = loop_time()
        self._times.note(now - winner.started)
        if self._first in self._under_way:
            self._times.note(now - self._first.started)

    async def _end(self, turns: int = 1) -> None:
        """Cancel the requests under way, and wait for so many turns of the loop."""
        rest, self._under_way = self._under_way, []
        for sent in rest:
            sent.give_up()
        try:
            if rest and turns:
                await asyncio.sleep(0)
        finally:
            for sent in rest:
                sent.settle()
            for sent in self._sent:
                permit, sent.permit = sent.permit, None
                if self._limiter is None or permit is None:
                    continue
                telling = notify(self._limiter, self._limiter.on_retry_end, permit)
                if turns:
                    await telling
                else:
                    until_it_waits(telling)

    def _hand_over(self) -> aiohttp.ClientResponse:
        """Give the attempt the log of what counts, and return or raise that."""
        best = self._candidates.best
        self._ctx.record, self._ctx.attempt = best.ctx.record, best.ctx.attempt
        hand_over(best.ctx, self._ctx)
        if best is not self._last:
            record_race(self._call)
        response = best.response
        cause: Any = best.cause
        was_sent = timed_out = False
        for sent in self._sent:
            if sent is not best:
                sent.let_go()
                drop_frames(sent.cause)
                was_sent |= sent.is_sent and sent.ctx.log.sent
                timed_out |= ran_out(sent.cause)
            sent.cause = None
        if response is not None:
            return response
        if was_sent:
            judge(cause).reached_server = True
        if timed_out and time_left(self._call) <= 0:
            judge(cause).sibling_timed_out = True
        try:
            raise cause
        finally:
            # Its traceback has this frame: no cycle.
            del cause
