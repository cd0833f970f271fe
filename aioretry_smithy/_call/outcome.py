"""Hold the outcome of a call or of a request: a response or a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from .._body_text import BodyHead
    from .._failures.kept_cause import KeptCause


class Outcome:
    """The facts of a response or a failure; not these themselves.

    A call shares that of the request that it ends with.
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

    ended: float | None
    """When the headers came, or the failure; None while all is under way."""

    body_ended: float | None
    """When the body ended, or failed."""

    length: int | None
    """Bytes of the body, once that is known."""

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
