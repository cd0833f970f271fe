"""The requests that are sent for one answer: how they end, and which of them counts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from .._call.recorder import record_failure
from .._clock import loop_time
from .._context.context import state_of
from .._retry.refusal import is_refusal

if TYPE_CHECKING:
    import aiohttp

    from .._call.attempt import Attempt
    from .._call.call import Call
    from .._call.record import Record
    from .._context.context import ClientRequestContext

    Answer: TypeAlias = aiohttp.ClientResponse | None
    """None where a limiter has not said yes."""

_given_up: Final[set[asyncio.Task[Answer]]] = set()
"""Tasks that are to end, some in their own time: the loop alone does not keep them."""


class SentRequest:
    """One of the requests, from when it is decided on."""

    __slots__ = ("cause", "ctx", "is_sent", "leave", "response", "started", "task")

    task: asyncio.Task[Answer]

    ctx: ClientRequestContext
    """Its attempt, once it is sent."""

    is_sent: bool
    """Whether it is not waiting for a limiter any more."""

    leave: ClientRequestContext | None
    """The attempt for which a limiter gave a permit."""

    cause: Exception | None
    response: aiohttp.ClientResponse | None

    def __init__(self) -> None:
        self.is_sent = False
        self.started = loop_time()
        self.leave = self.cause = self.response = None

    def send(self, ctx: ClientRequestContext) -> None:
        """Note that it is sent now."""
        self.ctx, self.is_sent, self.started = ctx, True, loop_time()

    def close(self) -> None:
        """Close the answer."""
        if self.response is not None:
            self.response.close()

    def stays_open(self) -> bool:
        """Say whether the body may keep its connection until it is read."""
        response = self.response
        if response is None or response.connection is None:
            return False
        length = response.content_length
        buffer, _ = response.content.get_read_buffer_limits()
        return length is None or length > buffer

    def give_up(self) -> None:
        """Cancel the task, which may take its time, and close what it still brings."""
        _given_up.add(self.task)
        self.task.add_done_callback(_discard)
        self.task.cancel()

    def settle(self) -> None:
        """Let the log be complete, after the request was given up."""
        task = self.task
        del self.task  # it may have a failure, whose frames have this object
        if not self.is_sent:
            return
        call, scope = state_of(self.ctx)
        record = scope.record
        if call.resources is not None:
            # A decorator may have dropped one, as it was cancelled.
            call.resources.close_responses(record)
        if record.outcome.ended is None:
            record.was_sent = record.was_sent or not task.done()
            record_failure(call, record, asyncio.CancelledError())
        record.is_settled = True


@dataclass(slots=True, eq=False)
class Standing:
    """Keeps the outcomes of the requests so far, and ranks them.

    The first good answer of a server wins. Where there is none, when all requests are
    over, comes the first good answer of something on this side, then the last bad
    answer, then the first failure, then the first refusal on this side.
    """

    _winner: SentRequest | None = None
    _stand_in: SentRequest | None = None
    _bad: SentRequest | None = None
    _failure: SentRequest | None = None
    _refusal: SentRequest | None = None

    @property
    def best(self) -> SentRequest | None:
        """The request that counts, if nothing better follows."""
        return (
            self._winner
            or self._stand_in
            or self._bad
            or self._failure
            or self._refusal
        )

    def win(self, sent: SentRequest) -> None:
        """Take a good answer of a server; the others are closed."""
        self.close()
        self._winner = sent

    def stand_in(self, sent: SentRequest) -> None:
        """Keep a good answer of something on this side, such as a fallback."""
        self.let_go()
        if self._stand_in is None:
            self._stand_in = sent
        else:
            sent.close()

    def answer_badly(self, sent: SentRequest) -> None:
        """Keep an answer that is not good, in place of the one before."""
        self.let_go()
        if self._stand_in is None:
            self._bad = sent
        else:
            sent.close()

    def fail(self, sent: SentRequest) -> None:
        """Note a failure."""
        is_injected = sent.is_sent and sent.ctx.log.injected
        if is_refusal(sent.cause) and not is_injected:
            self._refusal = self._refusal or sent
        else:
            self._failure = self._failure or sent

    def free_connection(self) -> None:
        """Close a bad answer whose connection other requests may wait for."""
        if self._bad is not None and self._bad.stays_open():
            self.let_go()

    def let_go(self) -> None:
        """Close the bad answer, if there is one; it no longer counts."""
        if self._bad is not None:
            self._bad.close()
            self._bad = None

    def close(self) -> None:
        """Close all answers."""
        for sent in (self._winner, self._stand_in, self._bad):
            if sent is not None:
                sent.close()


def came_from_server(
    call: Call, scope: Call | Attempt, response: aiohttp.ClientResponse
) -> bool:
    """Say whether the answer to a request is one of a server.

    One that a fault injected is, so that hedging can be rehearsed; that of a fallback
    or a cache is not. A decorator may have made attempts of its own.
    """
    record = scope.record
    if record.was_refused:
        # Whatever was sent before the fallback answered.
        return False
    return _met_server(record) or any(
        _met_server(each) and each.outcome.headers is response.headers
        for each in call.sent[record.number :]
    )


def _met_server(record: Record) -> bool:
    return record.was_sent or record.outcome.is_injected


def _discard(task: asyncio.Task[Answer]) -> None:
    _given_up.discard(task)
    if not task.cancelled() and task.exception() is None:
        response = task.result()
        if response is not None:
            response.close()
