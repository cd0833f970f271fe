"""Hold the state of one attempt: a pass of a call through the inner clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .call import Call
    from .record import Sent


class Attempt:
    """One pass of a call through the clients inside the retrying one.

    Args:
        number: Which attempt of the call it is, from 1.
        to_send: The request, with its body.
        record: The request on the wire that counts.
    """

    __slots__ = ("context", "cut", "number", "record", "to_send")

    number: int
    """Which attempt of the call it is, from 1."""

    to_send: Any
    """The request, with its body."""

    record: Sent
    """The request that counts; a hedge and a resend put another one here."""

    context: Callable[[], Any] | None
    """Finds the context of the attempt, as long as somebody keeps that."""

    cut: Any
    """What cuts a function at the deadline of the attempt."""

    def __init__(self, number: int, to_send: Any, record: Sent) -> None:
        self.number = number
        self.to_send = to_send
        self.record = record
        self.context = self.cut = None

    @classmethod
    def begin(cls, call: Call, request: Any, timeout: float | None = None) -> Attempt:
        """Begin an attempt of a call that sends *request*."""
        # Most attempts send the very request that the caller made.
        is_same = request is call.to_send
        kept = call.request if is_same else request.without_body()
        record = call.begin_request(kept, timeout)
        return cls(record.number - call.resends, request, record)
