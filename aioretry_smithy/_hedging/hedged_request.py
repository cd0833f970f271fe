"""Send a request and its hedges, until one of them brings a good answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .._call.record import Race
from .._call.recorder import begin_beside, record_race, record_superseded
from .._call.time_limits import time_left
from .._clock import loop_time
from .._context.context import AttemptContext
from .._context.holdings import hand_over
from .._failures.failure import failure_of, judge
from .._failures.kept_cause import drop_frames
from .._failures.safety import RetrySafety
from .._retry.call_adapter import HTTP
from .._retry.config import RETRY_COUNT_HEADER
from .._retry.limiter import acquired, notify, until_it_waits
from .sent_request import SentRequest, Standing, came_from_server

if TYPE_CHECKING:
    from collections.abc import Coroutine

    import aiohttp

    from .._call.call import Exchange
    from .._context.client import HttpClient
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .._retry.limiter import RetryLimiter
    from .delay import FixedDelay, RecentTimes
    from .sent_request import Answer

_THROTTLED: Final = frozenset({408, 429})


def is_good(status: int) -> bool:
    """Say whether no retry strategy would want another answer."""
    return status < 500 and status not in _THROTTLED


@dataclass(eq=False)
class HedgedRequest:
    """One request on its way through a hedging client, with its hedges.

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
        self._first = SentRequest()
        self._sent = [self._first]
        self._under_way: list[SentRequest] = []
        self._standing = Standing()
        self._last = self._first

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
            self._standing.close()
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
        self._sent.append(hedge)
        self._start(hedge, self._ask_and_send(hedge, before.ctx, before.cause))

    def _start(
        self, sent: SentRequest, answer: Coroutine[object, None, Answer]
    ) -> None:
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
        self._standing.free_connection()
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
            return self._fail(sent, failure)
        del failure
        # Raises what did not come from a request.
        response = task.result()
        if response is None:
            self._hedges_left = 0
            return False
        sent.response = response
        if not is_good(response.status):
            self._take_bad(sent, response)
            return False
        if came_from_server(sent.ctx, response):
            self._standing.win(sent)
            self._learn(sent)
            return True
        # Nothing is known of the server; those under way may bring its answer yet.
        self._standing.stand_in(sent)
        self._hedges_left = 0
        self._withdraw()
        return False

    def _take_bad(self, sent: SentRequest, response: aiohttp.ClientResponse) -> None:
        self._standing.answer_badly(sent)
        if HTTP.retry_after(response) is not None:
            self._hedges_left = 0
        if any(other.is_sent for other in self._under_way):
            self._standing.free_connection()

    def _withdraw(self) -> None:
        """Give up the hedges that still wait for a permit."""
        waiting = [sent for sent in self._under_way if not sent.is_sent]
        for hedge in waiting:
            if not hedge.task.done():
                self._under_way.remove(hedge)
                hedge.give_up()
                hedge.settle()

    def _fail(self, sent: SentRequest, cause: Exception) -> bool:
        """Look at a failure; one that was raised for a good answer wins like that."""
        sent.cause = cause
        failure = failure_of(cause)
        status = failure.status_of_server
        if status is not None and is_good(status):
            self._standing.win(sent)
            self._learn(sent)
            return True
        self._standing.fail(sent)
        if (
            failure.safety is RetrySafety.NO
            or failure.queue is not None
            or failure.hint() is not None
        ):
            self._hedges_left = 0
        return False

    def _learn(self, winner: SentRequest) -> None:
        """Note how long the winner took, and the first request at least."""
        now = loop_time()
        self._times.note(now - winner.started)
        if self._first in self._under_way:
            self._times.note(now - self._first.started)

    async def _end(self, turns: int = 1) -> None:
        """Cancel what is under way, and wait for so many turns of the loop."""
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
        best = self._standing.best
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
                timed_out |= failure_of(sent.cause).ran_out
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
