"""Hold the outcome of a call or of a request: a response or a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .response_facts import sent_headers_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from .._body_text import BodyHead
    from .._failures.kept_cause import KeptCause


class Outcome:
    """The facts of a response or a failure; not these themselves.

    A call shares that of the request that it ends with. What each outcome of a kind has
    is set by its class alone: Python is slow to write what a base has a default of.
    """

    ended: float | None
    """When the headers came, or the failure; None while all is under way."""

    cause: BaseException | KeptCause | None
    """The failure; beside a status, that of reading the body."""

    body_ended: float | None
    """When the body ended, or failed."""

    length: int | None
    """Bytes of the body, once that is known."""

    status: int | None

    reason: str | None

    headers: Mapping[str, str] | None

    sent_headers: Mapping[str, str] | None
    """The headers that aiohttp sent first."""

    is_injected: bool = False
    """Whether a fault was injected, and this came of it."""

    is_unwanted: bool = False
    """Whether a strategy wanted another attempt because of it, made or not."""

    part: Outcome | None = None
    """That of the last part, of a body that came in several."""

    preview: BodyHead | None = None
    """Where the first bytes of the body gather."""


class _Pending(Outcome):
    """The outcome of what is under way: nothing yet."""

    ended = cause = body_ended = length = None
    status = reason = headers = sent_headers = None


class Answered(Outcome):
    """The facts of a response.

    Args:
        ended: When the headers came.
        response: The response.
        headers: Its headers.
        length: Bytes of the body, where that is all here.
    """

    cause: BaseException | KeptCause | None = None

    def __init__(
        self,
        ended: float,
        response: aiohttp.ClientResponse,
        headers: Mapping[str, str],
        length: int | None = None,
    ) -> None:
        self.ended = ended
        self.status = response.status
        self.headers = headers
        try:
            self.reason = response.reason
            hops = response.history
            self.sent_headers = (hops[0] if hops else response).request_info.headers
        except AttributeError:
            self.reason = getattr(response, "reason", None)
            self.sent_headers = sent_headers_of(response)
        self.length = length
        self.body_ended = None if length is None else ended


class Ended(Outcome):
    """The facts of a failure, or of the return of a function."""

    length: int | None = None
    status: int | None = None
    reason: str | None = None
    headers: Mapping[str, str] | None = None
    sent_headers: Mapping[str, str] | None = None

    def __init__(
        self, ended: float, cause: BaseException | KeptCause | None = None
    ) -> None:
        self.ended = self.body_ended = ended
        self.cause = cause

    def keep_answer(self, answer: Outcome) -> None:
        """Have the answer whose body this is the failure of."""
        self.ended = answer.ended
        self.status, self.reason = answer.status, answer.reason
        self.headers, self.sent_headers = answer.headers, answer.sent_headers
        self.length, self.preview = answer.length, answer.preview


PENDING: Final[Outcome] = _Pending()
"""The outcome of all that is under way. Nothing is written into it."""
