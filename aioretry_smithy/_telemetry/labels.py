"""Describe calls, attempts and hedges in labels: never by a path or a query."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from .._hedging.hedged_request import is_good
from .._request.keys import group_key
from .._text import encodable
from .client import log_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._call.call import Call, Exchange
    from .._call.outcome import Outcome
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest

Attributes: TypeAlias = dict[str, str | int | float]

KNOWN_METHODS: Final = frozenset(
    "CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE".split()
)
"""The methods that the semantic conventions of OpenTelemetry know."""

ANOTHER_METHOD: Final = "_OTHER"
"""The value that stands for every other method."""

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
"""The limits of a histogram of seconds, as the same conventions have them."""


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
    """The words for a call in spans and metrics."""

    name: str
    """The name of the spans."""

    shown: Attributes
    """Attributes that the span of the call has from the start."""

    measured: Attributes
    """Attributes by which measurements tell calls apart."""


def http_subject(request: HttpRequest) -> Subject:
    """Describe a call by its method and its server.

    Of several servers that do the same, measurements know what they do, not each.
    """
    method, server = known_method(request), server_attributes(request)
    name = "HTTP" if method == ANOTHER_METHOD else method
    measured, service = server, group_key(request)
    if service is not None and service != _authority(server):
        measured = {"server.address": encodable(service)}
    return Subject(name, server, {"http.request.method": method, **measured})


def _authority(server: Attributes) -> str:
    """Return host and port as keys have them."""
    host, port = str(server.get("server.address")), server.get("server.port")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def rpc_subject(name: str, label: str) -> Subject:
    """Describe the call of a function by its name, which the *label* shortens."""
    return Subject(name, {CALL_NAME: name}, {CALL_NAME: label})


def known_method(request: HttpRequest) -> str:
    """Return the method of a request, or ``_OTHER`` for an unknown one."""
    return request.method if request.method in KNOWN_METHODS else ANOTHER_METHOD


def server_attributes(request: HttpRequest) -> Attributes:
    """Name the server of a request; nothing where its URL is none."""
    try:
        host, port = request.url.raw_host, request.url.port
    except Exception:
        # It is for aiohttp to report that.
        return {}
    if not host or port is None:
        return {}
    return {"server.address": encodable(host.lower()), "server.port": port}


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
    """Name the failure of a call; without one, why it stopped, unless it succeeded."""
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


HEDGES: Final[Mapping[str, str]] = {
    "sent": "Hedges: requests sent beside one that was under way or had failed.",
    "won": "Hedges whose answer was good and came first.",
    "refused": "Hedges that a limiter gave no leave for.",
}
"""The counts, each with its description."""


def connection_waits(ctx: ClientRequestContext) -> dict[str, float]:
    """Return the seconds that an attempt waited for its connection, by part.

    Nothing where that is not timed, and no part that did not happen.
    """
    if ctx.record.connection is None:
        return {}
    timings = ctx.log.connection
    parts = {part: getattr(timings, part) for part in ("queued", "dns", "connect")}
    return {part: seconds for part, seconds in parts.items() if seconds is not None}


class HedgeCount:
    """The hedges of a call, or of a part of it that begins here."""

    __slots__ = ("_before", "_dropped", "_refused")

    def __init__(self, call: Call) -> None:
        self._before = call.sent[-1].number if call.sent else 0
        self._dropped = call.dropped.hedges
        self._refused = call.refused_hedges

    def tell(self, call: Call, count: Callable[[str, int], None]) -> None:
        """Count how many there were, by the names of :data:`HEDGES`.

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
        try:
            self.tell(call, count)
        except Exception as error:
            log_error(error)

    def _since(self, call: Call) -> dict[str, int]:
        sent = call.sent_after(self._before)
        hedges = [each for each in sent if each.is_hedge and not each.was_sent_again]
        return {
            "sent": len(hedges) + call.dropped.hedges - self._dropped,
            "won": sum(map(_has_won, hedges)),
            "refused": call.refused_hedges - self._refused,
        }


def _has_won(hedge: Exchange) -> bool:
    status, race = hedge.outcome.status, hedge.race
    is_superseded = race is not None and race.is_superseded
    return status is not None and is_good(status) and not is_superseded
