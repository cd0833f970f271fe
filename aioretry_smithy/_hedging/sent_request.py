"""The requests that are sent for one answer: how they end, and which of them counts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from .._call.recorder import record_failure
from .._call.response_facts import connection_of
from .._clock import loop_time
from .._failures.any_headers import NO_HEADERS
from .._retry.given_up import is_refusal

if TYPE_CHECKING:
    import aiohttp

    from .._call.record import Record
    from .._context.context import AttemptContext, ClientRequestContext

    Answer: TypeAlias = aiohttp.ClientResponse | None
    """None where a limiter has not said yes."""

# The ranks of outcomes, the best first.
_WINNER, _STAND_IN, _BAD, _FAILURE, _REFUSAL = range(5)

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

    def holds_connection(self) -> bool:
        """Say whether some of the body is not here yet: what it holds is in use."""
        response = self.response
        return response is not None and connection_of(response) is not None

    def give_up(self) -> None:
        """Cancel the task, which may take its time, and close what it still brings."""
        _given_up.add(self.task)
        self.task.add_done_callback(_discard)
        self.task.cancel()

    def let_go(self) -> None:
        """Hold nothing any more for the calls that were made inside."""
        if self.is_sent and self.ctx.holdings is not None:
            self.ctx.holdings.end()

    def settle(self) -> None:
        """Let the log be complete, after the request was given up."""
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
            record_failure(call, record, asyncio.CancelledError())
        record.is_settled = True


class Standing:
    """Keeps the outcomes of the requests so far, and ranks them.

    The first good answer of a server wins. Where there is none, when all requests are
    over, comes the first good answer of something on this side, then the last bad
    answer, then the first failure, then the first refusal on this side.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[int, SentRequest] = {}

    @property
    def best(self) -> SentRequest:
        """The request that counts, if nothing better follows."""
        return self._kept[min(self._kept)]

    def win(self, sent: SentRequest) -> None:
        """Take a good answer of a server; the others are closed."""
        self.close()
        self._kept[_WINNER] = sent

    def stand_in(self, sent: SentRequest) -> None:
        """Keep a good answer of something on this side, such as a fallback."""
        self.let_go()
        if self._kept.setdefault(_STAND_IN, sent) is not sent:
            sent.close()

    def answer_badly(self, sent: SentRequest) -> None:
        """Keep an answer that is not good, in place of the one before."""
        self.let_go()
        if _STAND_IN in self._kept:
            sent.close()
        else:
            self._kept[_BAD] = sent

    def fail(self, sent: SentRequest) -> None:
        """Note a failure."""
        is_injected = sent.is_sent and sent.ctx.log.injected
        is_refused = is_refusal(sent.cause) and not is_injected
        self._kept.setdefault(_REFUSAL if is_refused else _FAILURE, sent)

    def free_connection(self) -> None:
        """Close a bad answer whose connection or place others may wait for."""
        if _BAD in self._kept and self._kept[_BAD].holds_connection():
            self.let_go()

    def let_go(self) -> None:
        """Close the bad answer, if there is one; it no longer counts."""
        if _BAD in self._kept:
            self._kept.pop(_BAD).close()

    def close(self) -> None:
        """Close all answers."""
        for sent in self._kept.values():
            sent.close()


def came_from_server(
    ctx: ClientRequestContext, response: aiohttp.ClientResponse
) -> bool:
    """Say whether the answer to a request is one of a server.

    One that a fault injected is, so that hedging can be rehearsed; that of a fallback
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
