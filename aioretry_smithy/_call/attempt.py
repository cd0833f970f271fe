"""Hold the state of one attempt: a pass of a call through the inner clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .outcome import PENDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .call import Call
    from .kinds import Request
    from .record import Sent


class Attempt:
    """One pass of a call through the clients inside the retrying one.

    Args:
        call: The call.
        request: What it sends, with its body.
        timeout: Seconds that it may take; None for no limit of its own.
        count_header: The header with the number of attempts before, where the sender is
            to add it.
    """

    __slots__ = ("context", "count_header", "cut", "number", "record", "to_send")

    count_header: tuple[str, str] | None
    """The header that the sender is to add."""

    number: int
    """Which attempt of the call it is, from 1."""

    to_send: Request
    """The request, with its body; without the :attr:`count_header`."""

    record: Sent
    """The request that counts; a hedge and a resend put another one here."""

    context: Callable[[], Any] | None
    """Finds the context of the attempt, as long as somebody keeps that."""

    cut: Any
    """What cuts a function at the deadline of the attempt."""

    @classmethod
    def of_call(cls, call: Call, began: float) -> Attempt:
        """Make the attempt that the call itself was up to now, since it began."""
        record = call.begin_first_request(began)
        call.outcome, call.was_sent, call.was_refused = PENDING, False, False
        if record.was_sent:
            call.has_begun_to_send = True
        attempt = cls.__new__(cls)
        attempt.number, attempt.to_send, attempt.record = 1, call.to_send, record
        attempt.context = attempt.count_header = attempt.cut = None
        return attempt

    def __init__(
        self,
        call: Call,
        request: Request,
        timeout: float | None = None,
        count_header: tuple[str, str] | None = None,
    ) -> None:
        # Most attempts send the very request that the caller made.
        kept = call.shown_request if request is call.to_send else request.without_body()
        self.record = record = call.begin_request(kept, timeout)
        self.number = record.number - call.resends
        self.to_send = request
        self.count_header = record.count_header = count_header
        self.context = self.cut = None

    @property
    def counted_request(self) -> Request:
        """The request with its body, and all that is sent with it."""
        if self.count_header is None:
            return self.to_send
        return self.to_send.with_header(*self.count_header)
