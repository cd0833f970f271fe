"""Hold what many calls have in common, and the defaults of what few have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._masking.mask import DEFAULT_MASK
from .kept_requests import NONE_DROPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from yarl import URL

    from .._failures.kept_cause import KeptCause
    from .._masking.mask import Mask
    from .._request.endpoint import Endpoint, Service
    from .kept_requests import DroppedRequests
    from .kinds import Cut, Holdings
    from .stop_reason import RetryStopReason


class CallDefaults:
    """An immutable snapshot of the settings that calls share.

    Args:
        mask: What their views hide.
        headers: A copy of the session's headers; None of a function.
        no_retries: Whether each makes one attempt, whatever its settings say.
    """

    __slots__ = ("headers", "mask", "no_retries", "version")

    base_url: URL | Service | None = None
    """What relative URLs are joined to; None of a function."""

    mask: Mask
    """What the views of a call hide."""

    headers: Mapping[str, str] | None
    """A copy of the session's headers; None of a function."""

    no_retries: bool
    """Whether each makes one attempt, whatever its settings say."""

    version: object
    """The version of the session's headers; -1 where nobody knows."""

    def __init__(
        self,
        mask: Mask = DEFAULT_MASK,
        headers: Mapping[str, str] | None = None,
        *,
        no_retries: bool = False,
    ) -> None:
        self.mask = mask
        self.headers = headers
        self.no_retries = no_retries
        self.version = -1


class RareCallFacts:
    """The defaults of facts that few calls have; an instance gets its own then."""

    __slots__ = ()

    aiohttp_keeps_time: bool = True
    """Whether the session's own timeout, which aiohttp keeps, is the deadline."""

    own_attributes: dict[Any, Any] | None = None
    """Values of the decorators' own, once there are any."""

    awaiting_body: list[Callable[..., None]] | None = None
    """Callbacks for the body of an answer, while a retrying client may read it."""

    around: Callable[[], Any] | None = None
    """A weak reference to the call in whose attempt this call was made."""

    brings_response: bool = True
    """Whether the result is a response; False of the call of a function."""

    cap: float | None = None
    """The deadline of the attempt around this call."""

    cut: Cut = None
    """The timer that cancels a function at its deadline, while it runs."""

    timeout: float | None = None
    """The attempt timeout in seconds; None of a call."""

    dropped: DroppedRequests = NONE_DROPPED
    """The requests in the middle, of which nothing is kept but counts."""

    gave_up_inside: bool = False
    """Whether it failed with the error of a nested call that has made its retries."""

    has_begun_to_send: bool = False
    """Whether a request got as far as the transport, if the caller may change that."""

    has_queued: bool = False
    """Whether a request has waited in the queue of a limit."""

    holdings: Holdings = None
    """The limits and trials that the call holds outside of its attempts."""

    options: Any = None
    """The options of the blocks of code around the call."""

    outer_epoch: tuple[float, float] | None = None
    """The epoch of the outermost call around this one."""

    refused_hedges: int = 0
    """How many hedges a limiter has refused."""

    own_id: str | None = None
    """The ID of the call, made on first use."""

    own_headers: Mapping[str, str] | None = None
    """The session's headers, where they changed before the first request."""

    own_mask: Mask | None = None
    """The mask of this call, where calls around or inside hide more."""

    deadline_cuts: Any = None
    """The timers that cut users' code at the deadline, by the task that runs it."""

    reads_whole_bodies: bool = False
    """Whether each body is read whole within its attempt, as the settings say."""

    resends: int = 0
    """How many requests were sent again because a connection of the pool was broken."""

    retry_error: BaseException | KeptCause | None = None
    """The error with which a Smithy strategy refused an attempt."""

    switches: int = 0
    """How often the call went to the next endpoint without a wait."""

    stays_at: Endpoint | None = None
    """The endpoint of the last part of a download, which is asked first."""

    stop_reason: RetryStopReason | None = None
    """Why there was no further attempt; None after a success."""

    tries_before: int = 0
    """The number of the last request of the part before."""

    waiters: Sequence[Callable[[], object]] = ()
    """Functions to call, once, when something of the call has ended."""
