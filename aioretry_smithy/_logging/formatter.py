"""Format the lines of a logging client, and pick the calls that are logged."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar

from .._call.record import PARTS
from .._errors import bad_argument, is_finite, is_plain_function
from .._log.error_text import describe_cause
from .._log.request_log import RequestLog, one_line
from .._log.tree import RETRIES_OFF, content_preview, describe_stop
from .._text.printable import printable

_T = TypeVar("_T")


class _ObjectSampler(Protocol):
    """A sampler object: picks the calls to log."""

    def is_sampled(self, log: RequestLog, /) -> bool: ...


Sampling: TypeAlias = "float | Callable[[RequestLog], bool] | _ObjectSampler"
"""A rate from 0 to 1; or a plain function of the log, or an object with such a method
``is_sampled``, that says whether a call is logged."""

Share: TypeAlias = "Mapping[str, float | bool]"
"""Fields added to the lines: ``sampling_rate``; ``sampled`` if a function samples;
empty without sampling.
"""

_share: Final[ContextVar[Share]] = ContextVar("share")
"""That of the lines that are being made. A formatter gets the log alone, and one of the
user's may ask one of ours."""


def share_of_lines() -> Share:
    """Return what the lines that a formatter makes now are to say of their share."""
    return _share.get({})


class Sampler(NamedTuple):
    """Picks calls, all of one kind: the successes, or the failures."""

    is_sampled: Callable[[RequestLog], bool]
    """Says whether a call is logged."""

    share: Share
    """Fields added to the lines of sampled calls."""

    @classmethod
    def of(cls, name: str, sampling: object, random: Callable[[], float]) -> Sampler:
        """Make the sampler of the setting called *name*, which may be a rate.

        Raises:
            ValueError: *sampling* is none.
        """
        if is_finite(sampling) and 0 <= sampling <= 1:
            rate = float(sampling)
            share: Share = {"sampling_rate": rate} if rate < 1 else {}
            return cls(lambda log: random() < rate, share)
        function = getattr(sampling, "is_sampled", sampling)
        is_class = isinstance(sampling, type)
        if not is_class and callable(function) and is_plain_function(function):
            return cls(partial(_ask, name, function), {"sampled": True})
        expected = ">= 0 and <= 1, or a plain function of the log"
        raise bad_argument(name, sampling, expected)

    def values_of(self, log: RequestLog) -> dict[str, object]:
        """Return what the records of the lines have beside their text."""
        values: dict[str, object] = {"request_log": log}
        if "sampling_rate" in self.share:
            values |= self.share
        return values

    def tell(self, make: Callable[[], _T]) -> _T:
        """Run a formatter with the sampling fields in its lines."""
        token = _share.set(self.share)
        try:
            return make()
        finally:
            _share.reset(token)


def _ask(name: str, function: Callable[[RequestLog], object], log: RequestLog) -> bool:
    answer = function(log)
    if isinstance(answer, bool):
        return answer
    raise bad_argument(f"{name}()", answer, "True or False")


_VERSION: Final = 1
"""The version of the keys, which grows when a key changes its meaning."""

_ALWAYS: Final = frozenset({"is_success", "sent"})
"""Keys that are written even if their value is false."""

_compact: Final = json.JSONEncoder(separators=(",", ":")).encode


def json_line(kind: str, values: Mapping[str, object], *, omit_empty: bool) -> str:
    """Return the line for the values of a log; *kind* is its ``"type"``."""
    head = {"type": kind, "v": _VERSION, **share_of_lines()}
    if omit_empty:
        return _compact(head | _without_empty(values))
    return json.dumps(head | dict(values))


def _without_empty(values: Mapping[str, object]) -> dict[str, object]:
    """Leave out what is empty, here and in the logs inside."""
    return {
        # Of lists there are none but those of logs.
        key: [*map(_without_empty, value)] if isinstance(value, list) else value
        for key, value in values.items()
        if key in _ALWAYS or not _is_empty(value)
    }


def _is_empty(value: object) -> bool:
    # A number is none: 0 bytes are not the same as nobody knows how many.
    return not value and type(value) not in {int, float}


_REQUEST_KEYS = (
    "id name request_method request_url sent_method sent_url"
    " request_headers request_content_preview"
    " request_started_at request_length request_duration response_timeout attempt"
    " is_hedge"
).split()
_RESPONSE_KEYS = (
    "id endpoint sent is_success injected connection response_status response_reason"
    " response_headers response_cause response_cause_type response_length"
    " response_content_preview duration total_duration is_complete attempt superseded"
    " total_attempts stop_reason limiter retry_error no_retries"
).split()


class LogFormatter(ABC):
    """Makes the two lines that a :class:`LoggingClient` writes.

    Both methods are called once the outcome is known, so each sees the whole log. A
    method that returns None leaves its line out; if both do, nothing is written. The
    log's attributes hold credentials as they are. ``log.to_dict()`` and
    ``log.render()`` hide them, so start from those in a formatter of your own. After
    Armeria's ``LogFormatter``.

    >>> class ShortFormatter(LogFormatter):
    ...     def format_request(self, log):
    ...         return f"-> {log.request_method} {log.request_url.path}"
    ...
    ...     def format_response(self, log):
    ...         return f"<- {log.response_status or log.to_dict()['response_cause']}"
    >>> decorator = LoggingClient.new_decorator(formatter=ShortFormatter())
    """

    @abstractmethod
    def format_request(self, log: RequestLog) -> str | None:
        """Return the line for the request, or None to leave it out.

        Args:
            log: The call, or the attempt, that the line is about.
        """

    @abstractmethod
    def format_response(self, log: RequestLog) -> str | None:
        """Return the line for the response or the failure, or None to leave it out.

        Args:
            log: The call, or the attempt, that the line is about.
        """

    @staticmethod
    def text() -> LogFormatter:
        """Return the formatter for people, the default.

        The lines have the shape of Armeria's, without unknown values. ``id``, method
        and URL are in both. ``length`` is the length of the body in bytes. A request
        line has one, and the ``duration`` of the upload, if a body was sent. The
        request line of an attempt has ``currentAttempt``, that of a hedge also
        ``hedge=yes``; the response line of a request that lost to another one has
        ``superseded=yes``. The response line of a call through a retrying client has
        ``totalAttempts``, and the reason if it stopped without success, such as
        ``stopped: deadline``::

            Request: {id=k3j7x2qa-17.2, startTime=..., scheme=https, host=example.com,
            method=GET, path=/orders, headers=[armeria-retry-count=1], currentAttempt=2}
            Response: {id=k3j7x2qa-17.2, startTime=..., duration=0.012s, scheme=https,
            host=example.com, method=GET, path=/orders, headers=[:status=200]}

        Each is one line: control characters are escaped. Durations are in seconds. With
        a :class:`ContentPreviewingClient` in the chain, ``preview`` comes after the
        headers, quoted as in JSON; of a response, the part that has arrived by then.

        >>> LogFormatter.text()
        LogFormatter.text()
        """
        return _TextFormatter()

    @staticmethod
    def json(*, nested: bool = False, omit_empty: bool = False) -> LogFormatter:
        """Return the formatter for machines: one JSON object a line.

        ``"type"`` is ``"request"`` or ``"response"``, and ``"v"`` the version of the
        keys, 1. A line of one call of many says ``"sampling_rate"``, or ``"sampled":
        true`` where a function has picked it. The other keys and their values are those
        of :meth:`RequestLog.to_dict` that belong to that side.

        Args:
            nested: Whether to write one line instead of two, with the whole of
                :meth:`RequestLog.to_dict`, which has the attempts as ``"children"``.
                It is the response's line, at the response's level. Its ``"type"`` is
                ``"call"``, or ``"attempt"`` if the logging client is inside the
                retrying one.
            omit_empty: Whether to leave out keys whose value is null, false, or empty,
                but for ``"sent"`` and ``"is_success"``, and the spaces. The lines are
                half as long; otherwise they have always the same keys.

        Raises:
            ValueError: An argument is not as described.

        >>> LogFormatter.json()
        LogFormatter.json()
        >>> decorator = LoggingClient.new_decorator(
        ...     formatter=LogFormatter.json(nested=True, omit_empty=True)
        ... )
        """
        for name, value in {"nested": nested, "omit_empty": omit_empty}.items():
            if not isinstance(value, bool):
                raise bad_argument(name, value, "True or False")
        kind = _NestedJsonFormatter if nested else _JsonFormatter
        return kind(omit_empty=omit_empty)

    @staticmethod
    def line() -> LogFormatter:
        """Return the formatter of the standard chain: one line for people.

        It has the method and the URL, the outcome with the words of a failure, the
        attempts, the seconds, the endpoint if there was a choice, why a call stopped
        without success, and the ``id``::

            GET https://api.example.com/orders -> 503 Service Unavailable, 3 attempts
            in 1.24 s (max_total_attempts), id=k3j7x2qa-17

        It is the response's line, at the response's level; there is none for the
        request. Inside the retrying client it is about one attempt::

            GET https://api.example.com/orders -> 503 Service Unavailable, attempt 2
            in 0.412 s, id=k3j7x2qa-17.2

        Credentials are hidden and control characters escaped, as in all views.

        >>> LogFormatter.line()
        LogFormatter.line()
        """
        return _LineFormatter()

    @staticmethod
    def tree() -> LogFormatter:
        """Return the formatter for development: :meth:`RequestLog.render`, and the id.

        It writes the tree of the call in place of two lines, one line for each attempt,
        at the response's level. Its first line ends with the ``id``. Inside the
        retrying client it is the tree of one attempt. Control characters are escaped,
        so only a tree begins new lines.

        >>> LogFormatter.tree()
        LogFormatter.tree()
        >>> decorator = LoggingClient.new_decorator(formatter=LogFormatter.tree())
        """
        return _TreeFormatter()


class _OneLineFormatter(LogFormatter):
    """The base of formatters that write a response line alone."""

    def format_request(self, log: RequestLog) -> None:
        return None


class _TextFormatter(LogFormatter):
    def format_request(self, log: RequestLog) -> str:
        fields = {
            "id": log.id,
            "startTime": log.request_started_at.isoformat(),
            "length": log.request_length or None,
            "duration": _seconds(log.request_duration),
            **_target(log),
            "headers": _request_headers(log),
            "preview": _quoted(content_preview(log.request_content_preview, log.mask)),
            "currentAttempt": log.attempt,
            "endpoint": None if log.children else log.endpoint,
            "hedge": "yes" if log.is_hedge else None,
            "samplingRate": share_of_lines().get("sampling_rate"),
        }
        return printable(f"Request: {_braced(fields)}")

    def format_response(self, log: RequestLog) -> str:
        was_sent = log.sent or log.injected
        fields = {
            "id": log.id,
            "startTime": _response_start(log),
            "length": log.response_length,
            "duration": _seconds(log.duration),
            "totalDuration": _seconds(log.total_duration),
            "connection": _connection(log),
            **_target(log),
            "cause": None if log.superseded else describe_cause(log),
            "superseded": "yes" if log.superseded else None,
            "injected": "yes" if log.injected else None,
            "endpoint": log.endpoint if log.children else None,
            "sent": "no" if log.duration is not None and not was_sent else None,
            "headers": _response_headers(log),
            "preview": _quoted(content_preview(log.response_content_preview, log.mask)),
            "samplingRate": share_of_lines().get("sampling_rate"),
        }
        line = f"Response: {_braced(fields)}"
        if log.children:
            line += f", {_braced({'totalAttempts': log.total_attempts})}"
        stop = describe_stop(log)
        if stop is not None:
            line += f", stopped: {stop}"
        if log.no_retries:
            line += f", {RETRIES_OFF}"
        return printable(line)

    def __repr__(self) -> str:
        return "LogFormatter.text()"


class _JsonFormatter(LogFormatter):
    def __init__(self, *, omit_empty: bool) -> None:
        self._omit_empty = omit_empty

    def format_request(self, log: RequestLog) -> str:
        return self._line("request", log, _REQUEST_KEYS)

    def format_response(self, log: RequestLog) -> str:
        return self._line("response", log, _RESPONSE_KEYS)

    def _line(self, kind: str, log: RequestLog, keys: Iterable[str]) -> str:
        values = log.to_dict()
        # One key is there only where it says something.
        shown = {key: values[key] for key in keys if key in values}
        return json_line(kind, shown, omit_empty=self._omit_empty)

    def __repr__(self) -> str:
        return f"LogFormatter.json({'omit_empty=True' if self._omit_empty else ''})"


class _NestedJsonFormatter(_OneLineFormatter):
    def __init__(self, *, omit_empty: bool) -> None:
        self._omit_empty = omit_empty

    def format_response(self, log: RequestLog) -> str:
        kind = "call" if log.attempt is None else "attempt"
        return json_line(kind, log.to_dict(), omit_empty=self._omit_empty)

    def __repr__(self) -> str:
        omits = ", omit_empty=True" if self._omit_empty else ""
        return f"LogFormatter.json(nested=True{omits})"


class _LineFormatter(_OneLineFormatter):
    def format_response(self, log: RequestLog) -> str:
        rate = share_of_lines().get("sampling_rate")
        line = one_line(log)
        return line if rate is None else f"{line}, samplingRate={rate}"

    def __repr__(self) -> str:
        return "LogFormatter.line()"


class _TreeFormatter(_OneLineFormatter):
    def format_response(self, log: RequestLog) -> str:
        rate = share_of_lines().get("sampling_rate")
        headline, _, below = log.render().partition("\n")
        lines = [f"{headline}, id={log.id}", below]
        if rate is not None:
            lines.append(f"samplingRate={rate}")
        return "\n".join(filter(None, lines))

    def __repr__(self) -> str:
        return "LogFormatter.tree()"


def _target(log: RequestLog) -> dict[str, object]:
    url = log.request_url
    if url is None:
        return {"name": log.mask.text(log.name)}
    return {
        "scheme": url.scheme,
        "host": url.host_port_subcomponent,
        "method": log.request_method,
        # Without a host, the text before it belongs to the path.
        "path": log.mask.text(url.raw_path_qs if url.raw_host else str(url)),
    }


def _braced(fields: Mapping[str, object]) -> str:
    known = (
        f"{name}={value}" for name, value in fields.items() if value not in {None, ""}
    )
    return f"{{{', '.join(known)}}}"


def _headers(shown: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{name}={value}' for name, value in shown.items())}]"


def _quoted(preview: str | None) -> str | None:
    # In quotes, a body cannot pretend to be other fields of the line.
    return None if preview is None else json.dumps(preview, ensure_ascii=False)


def _request_headers(log: RequestLog) -> str | None:
    headers = log.request_headers
    return None if headers is None else _headers(log.mask.headers(headers))


def _response_headers(log: RequestLog) -> str | None:
    headers = log.response_headers
    if headers is None:
        return None
    return _headers({":status": f"{log.response_status}", **log.mask.headers(headers)})


def _response_start(log: RequestLog) -> str | None:
    if log.duration is None or log.response_status is None:
        return None
    started_at = log.request_started_at + timedelta(seconds=log.duration)
    return started_at.isoformat()


def _connection(log: RequestLog) -> str | None:
    timings = log.connection
    # A connection that was there took no time; with attempts, it is that of the last.
    if timings is None or log.children or not timings.waited:
        return None
    return _braced({part: _seconds(getattr(timings, part)) for part in PARTS})


def _seconds(duration: float | None) -> str | None:
    return None if duration is None else f"{duration:.3f}s"
