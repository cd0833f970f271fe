"""One of the requests that are sent for one answer, and how it is given up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from .._call.recorder import record_failure
from .._clock import loop_time
from .._context.context import state_of

if TYPE_CHECKING:
    import aiohttp

    from .._call.attempt import Attempt
    from .._call.call import Call
    from .._call.record import Record
    from .._context.context import ClientRequestContext

_given_up: Final[set[asyncio.Task[Any]]] = set()
"""Tasks that are to end, some in their own time: the loop alone does not keep them."""


class SentRequest:
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

    def close(self) -> None:
        """Close the answer, which is there."""
        response: Any = self.response
        response.close()

    def stays_open(self) -> bool:
        """Say whether the body may keep its connection until it is read."""
        response = self.response
        if response is None or response.connection is None:
            return False
        length, (buffer, _) = (
            response.content_length,
            response.content.get_read_buffer_limits(),
        )
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
        if self.ctx is None:
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


def _discard(task: asyncio.Task[aiohttp.ClientResponse | None]) -> None:
    _given_up.discard(task)
    if not task.cancelled() and task.exception() is None:
        response = task.result()
        if response is not None:
            response.close()
