"""Read the facts of a call back from the line that was written of it."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Self

import aiohttp

from .._errors import (
    AttemptTimeoutError,
    RefusedRequestError,
    ResponseTimeoutError,
    UnprocessedRequestError,
)
from .._masking.mask import DEFAULT_MASK
from .._text import encodable
from .facts import LogFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._masking.mask import Mask

_LONGEST_NAME: Final = 80

_KNOWN: Final[Mapping[str, type[BaseException]]] = {
    "AttemptTimeoutError": AttemptTimeoutError,
    "CancelledError": asyncio.CancelledError,
    "ClientConnectorCertificateError": aiohttp.ClientConnectorError,
    "ClientConnectorDNSError": aiohttp.ClientConnectorError,
    "ClientConnectorError": aiohttp.ClientConnectorError,
    "ClientConnectorSSLError": aiohttp.ClientConnectorError,
    "ClientProxyConnectionError": aiohttp.ClientConnectorError,
    "ClientResponseError": aiohttp.ClientResponseError,
    "ConcurrencyLimitError": UnprocessedRequestError,
    "ContentTypeError": aiohttp.ClientResponseError,
    "EmptyEndpointGroupError": UnprocessedRequestError,
    "EndpointGroupError": UnprocessedRequestError,
    "EndpointSelectionTimeoutError": UnprocessedRequestError,
    "FailFastError": RefusedRequestError,
    "GeneratorExit": BaseException,
    "KeyboardInterrupt": BaseException,
    "RateLimitError": UnprocessedRequestError,
    "ResponseTimeoutError": ResponseTimeoutError,
    "SystemExit": BaseException,
    "UnixClientConnectorError": aiohttp.ClientConnectorError,
    "UnprocessedRequestError": UnprocessedRequestError,
    "WSServerHandshakeError": aiohttp.ClientResponseError,
}
"""What views must know of an exception's class, besides its name."""

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
    """Knows the status and the message that are in the text as well."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        match = _RESPONSE_ERROR.fullmatch(message)
        self.status = 0 if match is None else int(match["status"])
        self.message = message if match is None else match["message"]


def _value(key: str) -> Any:
    """Make the property that shows the value of a key."""
    return property(lambda log: log.values.get(key))


class SavedLog(LogFacts):
    """The facts that a line has, such as the values of :meth:`.RequestLog.to_dict`.

    The tree and the timeline draw it as they draw the log itself. Keys that are missing
    stand for None. The values must have their types. What is masked in them already is
    masked again by what is secret everywhere.

    >>> SavedLog({"name": "GET", "duration": 0.5}).duration
    0.5
    """

    __slots__ = ("_calls", "_children", "_parent", "started", "values")

    values: Mapping[str, Any]
    started: float

    def __init__(self, values: Mapping[str, Any], parent: Self | None = None) -> None:
        self.values = values
        self.started = seconds_of(values.get("request_started_at"))
        self._parent = parent
        children, calls = values.get("children") or (), values.get("calls") or ()
        self._children = tuple(type(self)(child, self) for child in children)
        self._calls = tuple(map(type(self), calls))

    id = _value("id")
    name = _value("name")
    attempt = _value("attempt")
    connection = _value("connection")
    delay = _value("delay")
    delay_source = _value("delay_source")
    duration = _value("duration")
    endpoint = _value("endpoint")
    request_content_preview = _value("request_content_preview")
    request_duration = _value("request_duration")
    request_length = _value("request_length")
    request_method = _value("request_method")
    request_url = _value("request_url")
    response_content_preview = _value("response_content_preview")
    response_length = _value("response_length")
    response_reason = _value("response_reason")
    response_status = _value("response_status")
    response_timeout = _value("response_timeout")
    sent_method = _value("sent_method")
    sent_url = _value("sent_url")
    stop_reason = _value("stop_reason")
    total_attempts = _value("total_attempts")
    total_duration = _value("total_duration")

    @property
    def request(self) -> Any:
        """None: the line has no request that could be used."""
        return None

    @property
    def mask(self) -> Mask:
        """The mask that hides what is secret everywhere."""
        return DEFAULT_MASK

    @property
    def request_headers(self) -> Any:
        """The headers that the line has; none where it has none."""
        return self.values.get("request_headers") or {}

    @property
    def response_headers(self) -> Any:
        """The headers that the line has."""
        return self.values.get("response_headers")

    @property
    def request_started_at(self) -> datetime:
        """The date and time of its start, with a timezone."""
        return datetime.fromtimestamp(self.started, UTC)

    @property
    def deadline(self) -> float | None:
        """The moment when its own time runs out."""
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
    def dropped_calls(self) -> int:
        """How many more calls were made inside."""
        return self.values.get("dropped_calls") or 0

    @property
    def sent(self) -> bool:
        """Whether a server may have seen it."""
        return bool(self.values.get("sent"))

    @property
    def injected(self) -> bool:
        """Whether the outcome was injected."""
        return bool(self.values.get("injected"))

    @property
    def is_complete(self) -> bool:
        """Whether the body had ended, or the call failed, when the line was written."""
        return bool(self.values.get("is_complete"))

    @property
    def is_hedge(self) -> bool:
        """Whether it was sent beside another request."""
        return bool(self.values.get("is_hedge"))

    @property
    def is_success(self) -> bool:
        """Whether it was a success, as far as the line says."""
        return bool(self.values.get("is_success"))

    @property
    def superseded(self) -> bool:
        """Whether it was given up because another request had a good answer."""
        return bool(self.values.get("superseded"))

    @property
    def response_cause(self) -> BaseException | None:
        """An exception of that name and text."""
        text = self.values.get("response_cause")
        return None if text is None else _error(text)

    @property
    def retry_error(self) -> Exception | None:
        """An exception of that name and text."""
        text = self.values.get("retry_error")
        error = None if text is None else _error(text)
        return error if isinstance(error, Exception) else None

    def _described(self) -> str:
        method, mask = self.request_method, self.mask
        if method is None:
            return mask.text(self.name or "")
        return f"{mask.text(method)} {mask.text(self.request_url or '')}"

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

    def _elapsed(self) -> float:
        # What the line does not know of: to the end of what it knows.
        return self.duration or 0.0


def seconds_of(moment: object) -> float:
    """Return the seconds of a date and time since 1970; 0.0 where it is none.

    >>> seconds_of("1970-01-01T00:01:00+00:00")
    60.0
    """
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except (OverflowError, OSError, ValueError):
        return 0.0


def _error(text: str) -> BaseException:
    """Make an exception that all views describe by this text."""
    name, _, message = text.partition(": ")
    return _class(name[:_LONGEST_NAME])(message)


@lru_cache(maxsize=64)
def _class(name: str) -> type[_Said]:
    known = _KNOWN.get(name, Exception)
    said = _SaidOfResponse if known is aiohttp.ClientResponseError else _Said
    # Python takes neither in the name of a class.
    return type(encodable(name).replace("\0", r"\x00"), (said, known), {})
