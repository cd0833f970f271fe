"""Observe attempts and calls, and describe them in labels: never by a path."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from .._call.record import PARTS
from .._context.chain import chain_of, find_client, retrying_client, sends_again
from .._context.client import ClientT, DecoratingClient
from .._hedging.client import HedgingClient
from .._hedging.hedged_request import is_good
from .._request.keys import group_key
from .._text.printable import encodable

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.call import Call, Exchange
    from .._call.outcome import Outcome, Request, Result
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


_logger = logging.getLogger("aioretry_smithy")


LabelsT = TypeVar("LabelsT")
_T = TypeVar("_T")

_SENDS: Final = "aioretry_smithy.telemetry.sends"


class Observation(ABC, Generic[LabelsT]):
    """The observation of a call or an attempt, from start to headers or failure.

    Args:
        client: The client that observes.
        ctx: The context of the call or the attempt.
        request: The request to send on.
        labels: The labels that separate measurements of different calls.
    """

    response: Result
    """The response; not set where none came."""

    def __init__(
        self,
        client: TelemetryClient[Any],
        ctx: ClientRequestContext,
        request: Request,
        labels: LabelsT,
    ) -> None:
        self._client: TelemetryClient[Any] = client
        self.request: Request = request
        self.labels: LabelsT = labels
        self.is_call: bool = client.sees_call(ctx)
        self.is_hedge: bool = False
        self.hedges: HedgeCount | None = None
        if not self.is_call:
            self.is_hedge = ctx.attempt is not None and ctx.log.is_hedge
            # Not the attempt's number: a decorator may send twice in one attempt.
            key = _SENDS, client.target
            self.sends: Counter[str] = ctx.attributes.setdefault(key, Counter())
            self.number: int = self.sends["begun"]
            self.sends["begun"] += 1
        elif client.surrounds_hedges:
            self.hedges = HedgeCount(ctx.call)
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.started: float = self.loop.time()

    @abstractmethod
    def end(self, ctx: ClientRequestContext, cause: BaseException | None) -> None:
        """Record the outcome; *cause* is None where there is a response."""

    def measure(
        self, ctx: ClientRequestContext, seconds: float, outcome: LabelsT
    ) -> None:
        """Record all series of the call or attempt, by the labels of its outcome."""
        if self.is_call:
            if self.hedges is not None:
                count = partial(self.record, labels=self.labels)
                log_errors(partial(self.hedges.tell, ctx.call, count))
            self.record("call_duration_seconds", seconds, outcome)
            return
        is_retry = self.number > 0 and not self.is_hedge
        self.record("attempts", 1, outcome)
        # By 0 too: the series must exist to be divided by that of the attempts.
        self.record("retries", int(is_retry), outcome)
        self.record("attempt_duration_seconds", seconds, outcome)
        for part, waited in connection_waits(ctx).items():
            self.record("connection_wait_seconds", waited, self.labels_of_part(part))

    @abstractmethod
    def record(self, name: str, value: float, labels: LabelsT) -> None:
        """Add a value to a series, named without the prefix ``rpc_``."""

    @abstractmethod
    def labels_of_part(self, part: str) -> LabelsT:
        """Return the labels of the wait for a part of a connection."""


class TelemetryClient(DecoratingClient[ClientT], ABC):
    """Observes attempts inside the retrying client, and calls outside of it.

    Where nothing retries and nothing hedges, the call is its one attempt. Only such
    clients of this library are recognised; around a retrying decorator of your own put
    the same client on both sides. An error of an observation is logged and changes
    nothing for the call.

    Args:
        delegate: The next client inwards.
        target: What is notified; of two clients with equal ones one sees the calls.
    """

    sees_calls: bool
    """Whether the client is outside of the retrying client, and observes calls."""

    is_innermost: bool
    """Whether no client with the same target stands further in."""

    surrounds_retries: bool
    """Whether a client that retries or hedges stands further in."""

    surrounds_hedges: bool
    """Whether a client that hedges is further in."""

    def __init__(self, delegate: ClientT, target: object) -> None:
        super().__init__(delegate)
        self.target = target
        inside = chain_of(self)[1:]
        self.is_innermost = not any(
            isinstance(link, TelemetryClient) and link.target == target
            for link in inside
        )
        self.surrounds_retries = any(map(sends_again, inside))
        self.surrounds_hedges = find_client(self, HedgingClient) is not None
        # Inside a retrying client it sees attempts, though these are hedged.
        is_retried = retrying_client(self) is not None
        self._may_see_attempts = self.is_innermost and not is_retried
        self.sees_calls = self.surrounds_retries or not self.is_innermost

    def sees_call(self, ctx: ClientRequestContext) -> bool:
        """Say whether this is a call, not an attempt that is hedged further in."""
        is_attempt = self._may_see_attempts and ctx.attempt is not None
        return self.sees_calls and not is_attempt

    async def execute(self, ctx: ClientRequestContext, request: Request) -> Result:
        """Send the request, observed if anybody listens."""
        delegate: Any = self.delegate
        observation = log_errors(partial(self.begin, ctx, request))
        if observation is None:
            return await delegate.execute(ctx, request)
        try:
            result = await delegate.execute(ctx, observation.request)
        except BaseException as cause:
            log_errors(partial(observation.end, ctx, cause))
            raise
        observation.response = result
        log_errors(partial(observation.end, ctx, None))
        return result

    @abstractmethod
    def begin(
        self, ctx: ClientRequestContext, request: object
    ) -> Observation[Any] | None:
        """Begin to observe a call (where :attr:`sees_calls`) or an attempt.

        None where nobody listens: then the request passes through unseen.
        """

    def describe(self) -> str:
        """Return the name of this client, and "calls" or "attempts"."""
        seen = "calls" if self.sees_calls else "attempts"
        return f"{type(self).__name__}(sees={seen!r})"


def log_errors(record: Callable[[], _T]) -> _T | None:
    """Call a recording function; log an error, after which the call goes on."""
    try:
        return record()
    except Exception as error:
        _logger.warning("could not record a call", exc_info=error)
        return None


Attributes: TypeAlias = dict[str, str | int | float]

KNOWN_METHODS: Final = frozenset(
    "CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE".split()
)
"""The methods that the semantic conventions of OpenTelemetry know."""

ANOTHER_METHOD: Final = "_OTHER"
"""The value that stands for all unknown methods."""

ANOTHER_NAME: Final = "_OTHER"
"""The value that stands for all names beyond the first ones."""

CALL_NAME: Final = "aioretry_smithy.name"
"""The attribute with the name of a call of a function."""

CALL_ID: Final = "aioretry_smithy.id"
"""The attribute with the id that lines and notes of the same call have."""

DURATION_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0),
    *(2.5, 5.0, 7.5, 10.0),
)
"""The limits of a histogram of seconds, by the semantic conventions."""


_MAX_NAMES: Final = 1024


class Names(dict[str, str]):
    """Label values for names that come from outside: the first 1024 of them."""

    def __missing__(self, name: str) -> str:
        if len(self) >= _MAX_NAMES:
            return ANOTHER_NAME
        # Otherwise it might break every scrape from now on.
        shown = self[name] = encodable(name)
        return shown


class Subject(NamedTuple):
    """The name and the attributes of a call in spans and metrics."""

    name: str
    """The name of the spans."""

    shown: Attributes
    """Attributes that the span of the call has from the start."""

    measured: Attributes
    """Attributes that separate measurements of different calls."""


def http_subject(request: HttpRequest) -> Subject:
    """Describe a call by method and server.

    Of several servers that do the same, measurements know what they do, not each.
    """
    method, server = known_method(request), server_attributes(request)
    name = "HTTP" if method == ANOTHER_METHOD else method
    measured, service = server, group_key(request)
    if service is not None and service != _authority(server):
        measured = {"server.address": encodable(service)}
    return Subject(name, server, {"http.request.method": method, **measured})


def _authority(server: Attributes) -> str:
    """Return ``host:port``, in the format of keys."""
    host, port = str(server.get("server.address")), server.get("server.port")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def rpc_subject(name: str, label: str) -> Subject:
    """Describe the call of a function by its name, which the *label* shortens."""
    return Subject(name, {CALL_NAME: name}, {CALL_NAME: label})


def known_method(request: HttpRequest) -> str:
    """Return the method of a request, or ``_OTHER`` for an unknown one."""
    return request.method if request.method in KNOWN_METHODS else ANOTHER_METHOD


def server_attributes(request: HttpRequest) -> Attributes:
    """Return the server attributes of a request; empty for an invalid URL."""
    try:
        host, port = request.url.raw_host, request.url.port
    except Exception:
        # It is for aiohttp to report that.
        return {}
    if not host or port is None:
        return {}
    return {"server.address": encodable(host.lower()), "server.port": port}


def peer_attributes(ctx: ClientRequestContext, request: HttpRequest) -> Attributes:
    """Name the one of several servers that a request goes to; its address if known."""
    endpoint = None if request.route is None else ctx.endpoint
    if endpoint is None:
        return {}
    attributes: Attributes = {"aioretry_smithy.endpoint": encodable(str(endpoint))}
    if endpoint.address is not None:
        attributes["network.peer.address"] = endpoint.address
        attributes["network.peer.port"] = endpoint.url.port or 0
    return attributes


def error_type(ctx: ClientRequestContext, cause: BaseException | None) -> str | None:
    """Name a failure: the status from 400 on, or the full name of an exception.

    A call that its caller cancelled is none.
    """
    if cause is None:
        status = ctx.log.response_status
        return str(status) if status is not None and status >= 400 else None
    if not isinstance(cause, Exception):
        return None
    return class_name(cause)


def has_succeeded(ctx: ClientRequestContext, cause: BaseException | None) -> bool:
    """Say whether a call has succeeded, in spite of what its retries stopped for.

    Where it is an attempt further out, the retries further in say so.
    """
    log = ctx.log
    if cause is not None or not log.is_success:
        return False
    return log.parent is None or log.root.stop_reason is None


def call_error_type(
    ctx: ClientRequestContext, cause: BaseException | None
) -> str | None:
    """Name the failure of a call, or else the stop reason, unless successful."""
    failure = error_type(ctx, cause)
    if failure is not None or cause is not None or has_succeeded(ctx, cause):
        return failure
    return str(ctx.log.root.stop_reason or ANOTHER_NAME)


def class_name(cause: BaseException) -> str:
    """Return the full name of the class of an exception."""
    kind = type(cause)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def status_class(ctx: ClientRequestContext, cause: BaseException | None) -> str:
    """Sort an outcome: ``2xx`` and the like, or the reason for having no status.

    ``superseded`` by another request, ``cancelled`` by the caller, ``refused`` by an
    open circuit, ``unsent`` for anything else that no server has seen, ``error``
    otherwise. A function has ``returned``.
    """
    if cause is not None and not isinstance(cause, Exception):
        return "superseded" if ctx.log.superseded else "cancelled"
    if cause is not None and ctx.record.was_refused:
        return "refused"
    if not ctx.log.sent:
        return "unsent"
    if cause is not None:
        return "error"
    if ctx.log.request_method is None:
        return "returned"
    return f"{(ctx.log.response_status or 0) // 100}xx"


_TRAFFIC: Final = (
    "attempts",
    "retries",
    "attempt_duration_seconds",
    "call_duration_seconds",
)
_OF_HTTP: Final = "connection_wait_seconds", "hedges", "hedges_won", "hedges_refused"

SeriesT = TypeVar("SeriesT")


class Traffic(Generic[SeriesT]):
    """The series of attempts and calls, of HTTP or of functions.

    Args:
        make: Makes a series by its name.
        is_http: Whether there may be connections and hedges.
    """

    def __init__(self, make: Callable[[str], SeriesT], *, is_http: bool) -> None:
        self.names: Names = Names()
        prefix, names = ("", _TRAFFIC + _OF_HTTP) if is_http else ("rpc_", _TRAFFIC)
        # Without timings and hedges too, so that a dashboard can ask for them.
        self.series: dict[str, SeriesT] = {
            name: make(f"{prefix}{name}") for name in names
        }


def connection_waits(ctx: ClientRequestContext) -> dict[str, float]:
    """Return the seconds that an attempt waited for its connection, by part.

    Nothing where that is not timed, and no part that did not happen.
    """
    if ctx.record.connection is None:
        return {}
    timings = ctx.log.connection
    parts = {part: getattr(timings, part) for part in PARTS}
    return {part: seconds for part, seconds in parts.items() if seconds is not None}


class HedgeCount:
    """The hedges of a call, or of the part from here on."""

    __slots__ = ("_before", "_dropped", "_refused")

    def __init__(self, call: Call) -> None:
        self._before = call.sent[-1].number if call.sent else 0
        self._dropped = call.dropped.hedges
        self._refused = call.refused_hedges

    def tell(self, call: Call, count: Callable[[str, int], None]) -> None:
        """Add the numbers of hedges to their series.

        Those of the further parts of a download are counted when that has ended.
        """
        for kind, number in self._since(call).items():
            count(kind, number)
        whole = call.outcome
        if whole.part is not None and whole.body_ended is None:
            call.wait_with(partial(HedgeCount(call)._tell_later, call, whole, count))

    def _tell_later(
        self, call: Call, whole: Outcome, count: Callable[[str, int], None]
    ) -> None:
        if whole.body_ended is None:
            call.wait_with(partial(self._tell_later, call, whole, count))
            return
        log_errors(partial(self.tell, call, count))

    def _since(self, call: Call) -> dict[str, int]:
        sent = call.sent_after(self._before)
        hedges = [each for each in sent if each.is_hedge and not each.was_sent_again]
        return {
            "hedges": len(hedges) + call.dropped.hedges - self._dropped,
            "hedges_won": sum(map(_has_won, hedges)),
            "hedges_refused": call.refused_hedges - self._refused,
        }


def _has_won(hedge: Exchange) -> bool:
    status, race = hedge.outcome.status, hedge.race
    is_superseded = race is not None and race.is_superseded
    return status is not None and is_good(status) and not is_superseded
