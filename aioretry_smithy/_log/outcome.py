"""Record the outcome of a call or an attempt: a response or a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._failures.kept_cause import KeptCause
from .hedge import MaybeHedge

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from .._body_text import BodyHead


class Outcome:
    """The facts of a response or a failure that a log keeps; not these themselves.

    A call shares that of the attempt that it ends with.
    """

    __slots__ = (
        "body_ended",
        "cause",
        "ended",
        "headers",
        "is_injected",
        "length",
        "preview",
        "reason",
        "status",
    )

    cause: BaseException | KeptCause | None
    """The failure; beside a status, that of reading the body."""

    body_ended: float | None
    """When the body ended, or failed."""

    is_injected: bool
    """Whether a fault was injected, and this came of it."""

    preview: BodyHead | None
    """Where the first bytes of the body gather."""

    def __init__(
        self,
        ended: float | None,
        response: aiohttp.ClientResponse | None = None,
        length: int | None = None,
        cause: BaseException | KeptCause | None = None,
    ) -> None:
        self.ended = ended
        self.length = length
        self.cause = cause
        self.preview = None
        self.is_injected = False
        self.status: int | None = None
        self.reason: str | None = None
        self.headers: Mapping[str, str] | None = None
        if response is None:
            self.body_ended = ended
        else:
            self.status = response.status
            self.reason = response.reason
            self.headers = response.headers
            self.body_ended = None if length is None else ended


PENDING: Final = Outcome(None)
"""The outcome of all that is under way. Nothing is written into it."""


class HasOutcome(MaybeHedge):
    """Base of the log of a call or an attempt: what came of it, and when."""

    __slots__ = ("_outcome", "_refusal")

    _outcome: Outcome

    _refusal: KeptCause | None
    """The error by which the caller's ``raise_for_status`` turned a response down."""

    @property
    def response_status(self) -> int | None:
        """The status, or None without a response."""
        return self._outcome.status

    @property
    def response_reason(self) -> str | None:
        """The reason phrase that came with the status."""
        return self._outcome.reason

    @property
    def response_headers(self) -> Mapping[str, str] | None:
        """The headers of the response, or None without one."""
        return self._outcome.headers

    @property
    def response_cause(self) -> BaseException | None:
        """The failure of the call or the attempt, or of reading the body.

        A copy of the same class and text when the call is over and nobody has it.
        """
        cause = self._refusal or self._outcome.cause
        return cause.get() if isinstance(cause, KeptCause) else cause

    @property
    def injected(self) -> bool:
        """Whether the answer or the failure was injected, in place of the server's.

        By a :class:`.FaultInjectingClient`; of a call, whether it ended with such.
        """
        return self._outcome.is_injected

    @property
    def response_length(self) -> int | None:
        """Bytes of the body that were received, decoded, once it ended."""
        return self._outcome.length

    @property
    def response_content_preview(self) -> str | None:
        """The first characters of a text that was received, so far.

        None without a :class:`ContentPreviewingClient`.
        """
        start = self._outcome.preview
        return None if start is None else start.text()

    @property
    def duration(self) -> float | None:
        """Seconds to the headers of the response or to the failure."""
        ended = self._outcome.ended
        return None if ended is None else self._not_before_race(ended) - self.started

    @property
    def total_duration(self) -> float | None:
        """Seconds to the end of the body or to the failure."""
        ended = self._outcome.body_ended
        return None if ended is None else self._not_before_race(ended) - self.started

    @property
    def is_complete(self) -> bool:
        """Whether nothing will be added: the body ended or the call failed."""
        return self._outcome.body_ended is not None
