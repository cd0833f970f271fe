"""Read a log back from the line that was written of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Self

import aiohttp

from .._call.record import PARTS, ConnectionTimings
from .._errors import AttemptTimeoutError, ResponseTimeoutError, UnprocessedRequestError
from .._failures.failure import IN_POOL, TOO_LATE, note_wait_in_pool
from .._request.arguments import is_header_name
from .._text.mask import HIDDEN, Mask
from .._text.printable import encodable, printable
from .facts import LogFacts
from .tree import tree


def moment_of(value: object) -> datetime | None:
    """Return the moment that a text is; UTC is meant where it names no zone.

    >>> str(moment_of("2026-11-26T12:00:00"))
    '2026-11-26 12:00:00+00:00'
    >>> moment_of("noon") is None
    True
    """
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def seconds_of(value: object) -> float | None:
    """Return the moment that a text is, in seconds since 1970.

    >>> seconds_of("1970-01-01T00:01:00+00:00")
    60.0
    """
    moment = moment_of(value)
    return None if moment is None else moment.timestamp()


_HARMLESS: Final = re.compile(r"[\w .,:*+-]*+", re.ASCII)
"""A text with no part of a URL in it: most texts, and nothing is to be hidden there."""

_LONGEST: Final = 1e8
"""The longest plausible duration, in seconds (three years)."""


def dictionaries(values: Mapping[str, object], key: str) -> list[dict[str, object]]:
    """Return the dictionaries in a list."""
    value = values.get(key)
    if not value or not isinstance(value, list):
        return []
    return [each for each in value if isinstance(each, dict)]


def _text(value: object) -> str | None:
    """Return a text, credentials hidden; None for an empty one too."""
    if not value or not isinstance(value, str):
        return None
    return value if _HARMLESS.fullmatch(value) else _MASK.text(value)


class _SecondMask(Mask):
    """Hides what is secret everywhere, in texts of which a part is hidden already."""

    def content(self, text: str) -> str:
        """Return *text* without its secrets, unless some of it is hidden."""
        # It may be no JSON any more, and all would go.
        return encodable(text) if HIDDEN in text else super().content(text)


_MASK: Final = _SecondMask()


def _preview(value: object) -> str | None:
    """Return the beginning of a body, secrets hidden."""
    return _MASK.content(value) if value and isinstance(value, str) else None


_CLASS: Final = re.compile(r"[A-Za-z]\w*(?:Error|Exception): ")


def _failure(value: object) -> str | None:
    """Return the class and the text of an exception, credentials hidden.

    Those in the text: a class such as ``KeyError`` is no name of a secret.
    """
    if not isinstance(value, str) or (name := _CLASS.match(value)) is None:
        return _text(value)
    return f"{name[0]}{_text(value[name.end() :]) or ''}"


def _number(value: object) -> int | None:
    """Return a whole number that is not negative."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # NaN and what is infinite are in no range.
    return int(value) if 0 <= value < 1 << 63 and value == int(value) else None


def _seconds(value: object) -> float | None:
    """Return how long something took."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= _LONGEST else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _headers(value: object) -> dict[str, str]:
    """Return headers, secrets hidden, without what can be no header."""
    if not isinstance(value, Mapping):
        return {}
    headers = {
        name[:_LONGEST_TEXT]: text[:_LONGEST_TEXT]
        for name, text in value.items()
        if isinstance(text, str) and is_header_name(name)
    }
    return _MASK.headers(headers)


def _connection(value: object) -> dict[str, object]:
    times = value if isinstance(value, Mapping) else {}
    waits: dict[str, object] = {key: _seconds(times.get(key)) for key in PARTS}
    return {**waits, "reused": _flag(times.get("reused"))}


_LONGEST_TEXT: Final = 4200
"""Causes are cut at 4 kB when they are written."""

_MOST_INSIDE: Final = 100

_READERS: Final[dict[str, Callable[[object], object]]] = {
    **dict.fromkeys(
        (
            "id name request_method request_url request_started_at endpoint"
            " response_reason response_cause_type delay_source"
            " stop_reason limiter sent_method sent_url"
        ).split(),
        _text,
    ),
    **dict.fromkeys("response_cause retry_error".split(), _failure),
    **dict.fromkeys(
        "request_content_preview response_content_preview".split(), _preview
    ),
    **dict.fromkeys(
        "request_duration response_timeout duration total_duration delay".split(),
        _seconds,
    ),
    **dict.fromkeys(
        (
            "request_length response_length response_status attempt total_attempts"
            " dropped_calls"
        ).split(),
        _number,
    ),
    **dict.fromkeys(
        "sent injected is_complete is_success is_hedge superseded no_retries".split(),
        _flag,
    ),
    "request_headers": _headers,
    "response_headers": _headers,
    "connection": _connection,
}
"""The function that reads each key; None is left out."""


def cleaned(
    values: Mapping[str, object], attempt: int | None = None
) -> dict[str, object]:
    """Return what is known of a call, or of an attempt, to be shown.

    A line may come from anywhere: a value of another type than it should have is as
    good as none. Texts are masked once more, so that all of them may be shown, and
    UTF-8 can carry them.

    >>> cleaned({"name": "GET", "duration": "soon", "kind": 1})
    {'name': 'GET', 'children': []}
    """
    line: dict[str, object] = {}
    for key, read in _READERS.items():
        value = values.get(key)
        # Cut before all else; a line may have megabytes.
        found = read(value[:_LONGEST_TEXT] if isinstance(value, str) else value)
        if value is not None and found is not None:
            line[key] = found
    if attempt is None:
        children = dictionaries(values, "children")[:_MOST_INSIDE]
        line["children"] = [cleaned(child, n) for n, child in enumerate(children, 1)]
    else:
        line.setdefault("attempt", attempt)
    if "calls" in values:
        calls = dictionaries(values, "calls")[:_MOST_INSIDE]
        line["calls"] = [cleaned(call) for call in calls]
    return line


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_NAME: Final = 80

REFUSALS: Final = frozenset(
    "ConcurrencyLimitError EmptyEndpointGroupError EndpointGroupError"
    " EndpointSelectionTimeoutError FailFastError RateLimitError".split()
)
"""The exceptions of decorators that refuse a request on this side."""

_KNOWN: Final[Mapping[str, type[BaseException]]] = {
    **dict.fromkeys(
        "ClientConnectorCertificateError ClientConnectorDNSError ClientConnectorError"
        " ClientConnectorSSLError ClientProxyConnectionError"
        " UnixClientConnectorError".split(),
        aiohttp.ClientConnectorError,
    ),
    **dict.fromkeys(
        "ClientResponseError ContentTypeError WSServerHandshakeError".split(),
        aiohttp.ClientResponseError,
    ),
    **dict.fromkeys([*REFUSALS, "UnprocessedRequestError"], UnprocessedRequestError),
    "AttemptTimeoutError": AttemptTimeoutError,
    "CancelledError": BaseException,
    "GeneratorExit": BaseException,
    "KeyboardInterrupt": BaseException,
    "ResponseTimeoutError": ResponseTimeoutError,
    "SystemExit": BaseException,
}
"""The classes that views tell apart, by name."""

_RESPONSE_ERROR: Final = re.compile(
    r"(?s)(?P<status>[0-9]{3}), message=(?P<quote>['\"])(?P<message>.*)(?P=quote)"
    r", url=.*"
)


class _Said(BaseException):
    """Gives an exception of any class the text that a line has."""

    def __init__(self, message: str) -> None:
        self.args = (message,)

    def __str__(self) -> str:
        return str(self.args[0])


class _SaidOfResponse(_Said):
    """Has the status and the message of an answer too, read from the text."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        match = _RESPONSE_ERROR.fullmatch(message)
        self.status = 0 if match is None else int(match["status"])
        self.message = message if match is None else match["message"]


class SavedLog(LogFacts):
    """The log of a saved line, in the format of :meth:`.RequestLog.to_dict`.

    The tree and the timeline draw it as they draw the log itself. Keys that are missing
    stand for None. The values must have their types. What is masked in them already is
    masked again by what is secret everywhere.

    >>> SavedLog({"name": "GET", "duration": 0.5}).duration
    0.5
    """

    __slots__ = ("_calls", "_children", "_parent", "started", "values")

    values: Mapping[str, Any]
    started: float
    id: Any
    request_url: Any
    sent_url: Any

    def __init__(self, values: Mapping[str, Any], parent: Self | None = None) -> None:
        self.values = values
        self.started = seconds_of(values.get("request_started_at")) or 0.0
        self._parent = parent
        attempts, calls = values.get("children", ()), values.get("calls", ())
        self._children = tuple(type(self)(child, self) for child in attempts)
        self._calls = tuple(map(type(self), calls))

    def render(self) -> str:
        """Draw the call and its attempts as a tree of lines."""
        return tree(self, self.children)

    @property
    def connection(self) -> ConnectionTimings | None:
        """The waits for a connection."""
        times = self.values.get("connection")
        return None if times is None else ConnectionTimings(**times)

    @property
    def mask(self) -> Mask:
        """The mask of texts of which a part is hidden already."""
        return _MASK

    @property
    def request_started_at(self) -> datetime:
        """The date and time of the start, with a timezone."""
        # Windows has no local time before 1970 and after 3000, nor "fromtimestamp".
        return _EPOCH + timedelta(seconds=self.started)

    @property
    def deadline(self) -> float | None:
        """When the time of the call or of the attempt runs out."""
        timeout = self.response_timeout
        return None if timeout is None else self.started + timeout

    @property
    def parent(self) -> Self | None:
        """The log of the call whose attempt this is; None on the root."""
        return self._parent

    @property
    def root(self) -> Self:
        """The log of the whole call."""
        return self if self._parent is None else self._parent

    @property
    def children(self) -> tuple[Self, ...]:
        """The logs of the attempts, in order."""
        return self._children

    @property
    def calls(self) -> tuple[Self, ...]:
        """The logs of the calls made inside."""
        return self._calls

    @property
    def response_cause(self) -> BaseException | None:
        """An exception of that name and text."""
        text = self.values.get("response_cause")
        return None if text is None else _error(str(text))

    @property
    def retry_error(self) -> Exception | None:
        """An exception of that name and text."""
        text = self.values.get("retry_error")
        error = None if text is None else _error(str(text))
        return error if isinstance(error, Exception) else None

    def _described(self) -> str:
        method, mask = self.request_method, self.mask
        if method is None:
            return mask.text(self.name or "")
        return f"{mask.text(method)} {mask.text(self.request_url or '')}"

    def _described_change(self) -> str:
        asked = self._parent
        if asked is None:
            name, url = self.sent_method, self.sent_url
        else:
            name = None if self.name == asked.name else self.name
            url = self.request_url if self._has_another_url(asked) else None
        return self.mask.text(f"{name or ''} {url or ''}".strip())

    def _has_another_url(self, call: SavedLog) -> bool:
        """Say whether the attempt has changed the URL, but for its endpoint.

        That of a call is the URL of its first attempt.
        """
        first = call.children[0].endpoint
        asked, was_at = _behind(call.request_url or "", first)
        sent, is_at = _behind(self.request_url or "", self.endpoint)
        return asked != sent and was_at == is_at

    def _has_failed(self) -> bool:
        return self.values.get("response_cause") is not None

    def _hedged_after(self) -> float | None:
        if not self.is_hedge or self._parent is None:
            return None
        before = [
            log.started
            for log in self._parent.children
            if log.started <= self.started and not log.is_hedge
        ]
        return self.started - max(before, default=self.started)

    def _sent_after(self) -> float:
        return 0.0

    def _elapsed(self) -> float:
        # What the line does not know of: to the end of what it knows.
        return self.duration or 0.0


def _behind(url: str, endpoint: str | None) -> tuple[str, bool]:
    """Return the part of a URL behind its endpoint, or all of a URL without one.

    And whether the endpoint is a part of the URL.

    >>> _behind("http://a.example/v1/orders", "a.example/v1")
    ('/orders', True)
    """
    if endpoint is None:
        return url, False
    _, found, rest = url.partition(f"://{endpoint}")
    return (rest, True) if found else (url, False)


_ESCAPED: Final = frozenset("id name endpoint delay_source limiter stop_reason".split())
"""The keys of texts that views take for words of our own."""

_OTHERWISE: Final[Mapping[str, object]] = {
    **{key: False for key, read in _READERS.items() if read is _flag},
    "dropped_calls": 0,
    "request_headers": {},
}
"""The values of missing keys, unless None."""


def _fact(key: str) -> property:
    """Make the property that shows the value of a key."""

    def fact(log: SavedLog) -> object:
        value = log.values.get(key, _OTHERWISE.get(key))
        return printable(value) if key in _ESCAPED and value is not None else value

    return property(fact)


# The request itself is in no line.
for _key in {"request", *_READERS} - vars(SavedLog).keys():
    setattr(SavedLog, _key, _fact(_key))


def _error(text: str) -> BaseException:
    """Make an exception that all views describe by this text."""
    name, _, message = text.partition(": ")
    error = _class(name[:_LONGEST_NAME])(message)
    if IN_POOL in text or TOO_LATE in text:
        note_wait_in_pool(error)
    return error


@lru_cache(maxsize=64)
def _class(name: str) -> type[_Said]:
    known = _KNOWN.get(name, Exception)
    said = _SaidOfResponse if known is aiohttp.ClientResponseError else _Said
    # Python takes neither in the name of a class.
    return type(encodable(name).replace("\0", r"\x00"), (said, known), {})
