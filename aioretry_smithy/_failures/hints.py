"""Read what a server has said by a response, or by an error that was raised for one.

A middleware, a decorator or a function that is retried may raise in place of returning
a response. Such an exception is judged as the response would have been.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from inspect import isfunction
from typing import Final, Literal, NamedTuple, TypeAlias

import aiohttp
from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import PayloadEncodingError
from multidict import CIMultiDict, CIMultiDictProxy, MultiMapping

from .._clock import wall_clock
from .._errors import is_finite

Fault: TypeAlias = Literal["client", "server"] | None
"""The side at fault for an error; None if it is unknown."""

_FAULTS: dict[str, Fault] = {"client": "client", "server": "server"}


class RetryInfo(NamedTuple):
    """The retry information of any error, with defaults for what it lacks.

    For strategies of your own: :meth:`of` reads the attributes of
    :class:`ErrorRetryInfo` and :class:`HasFault` one by one; an error may have all of
    them, some or none.

    >>> RetryInfo.of(TimeoutError()).allows_retry
    False
    """

    is_retry_safe: bool | None = None
    """True allows a retry, False forbids it; None if it is unknown."""

    retry_after: float | None = None
    """Seconds that the server asks to wait, finite and >= 0."""

    is_throttling_error: bool = False
    """Whether the server complains of too many requests."""

    is_timeout_error: bool = False
    """Whether time ran out."""

    fault: Fault = None
    """The side at fault."""

    @classmethod
    def of(cls, error: object) -> RetryInfo:
        """Read the attributes of *error*; missing or invalid ones get the default."""
        wait = attribute_of(error, "retry_after")
        fault = attribute_of(error, "fault")
        return cls(
            _as_bool(attribute_of(error, "is_retry_safe")),
            wait if is_finite(wait) and wait >= 0 else None,
            _as_bool(attribute_of(error, "is_throttling_error")) or False,
            _as_bool(attribute_of(error, "is_timeout_error")) or False,
            _FAULTS.get(fault) if isinstance(fault, str) else None,
        )

    @property
    def allows_retry(self) -> bool:
        """Whether a retry is allowed.

        ``is_retry_safe`` decides if it is True or False. If it is None, an error allows
        a retry that throttles, timed out, or is the fault of the server.
        """
        if self.is_retry_safe is not None:
            return self.is_retry_safe
        return (
            self.is_throttling_error or self.is_timeout_error or self.fault == "server"
        )


NAMES: Final = frozenset(RetryInfo.__annotations__)


def may_tell(kind: type[BaseException]) -> bool:
    """Say whether a class has any of these attributes, or makes them when asked."""
    makes = hasattr(kind, "__getattr__") or isfunction(kind.__getattribute__)
    return makes or any(hasattr(kind, name) for name in NAMES)


def attribute_of(error: object, name: str, default: object = None) -> object:
    """Return an attribute of an error; the default where it is missing or raises.

    A user's error whose attributes raise must not end a call.
    """
    try:
        return getattr(error, name, default)
    except Exception:
        return default


def _as_bool(value: object) -> bool | None:
    # Other values that are true in Python, such as a text or a method, are mistakes.
    return bool(value) if isinstance(value, int) and value in {0, 1} else None


_EPOCH = date(1970, 1, 1)
_MONTH_NAMES = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MONTHS: tuple[str, ...] = tuple(_MONTH_NAMES.split("|"))

_DAY_NAME = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAY_NAME = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = f"(?P<month>{_MONTH_NAMES})"
# The sixtieth second is a leap second.
_TIME = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d|60)"
# HTTP has GMT alone; libraries that write dates for mails add the others.
_ZONE = r"(?:GMT|UTC|(?P<east>[+-](?:[01]\d|2[0-3])[0-5]\d))"
# What follows a value: nothing, or a comma and the rest of a list.
_END = r"[ \t]*(?:,|\Z)"
_DATE_FORMS = tuple(
    re.compile(rf"[ \t]*{form}{_END}", re.ASCII)
    for form in (
        rf"{_DAY_NAME}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} {_ZONE}",
        rf"{_LONG_DAY_NAME}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} {_ZONE}",
        rf"{_DAY_NAME} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})(?P<east>)",
    )
)
_NUMBER = re.compile(rf"[ \t]*(?P<whole>\d+)(?P<rest>\.\d+)?{_END}", re.ASCII)


def retry_after(
    headers: MultiMapping[str], *, now: float | None = None
) -> float | None:
    """Return the seconds for which a server asks the client to wait.

    ``Retry-After`` is a number of seconds, or a date in one of HTTP's three forms, also
    in ``UTC`` or with a numeric zone. A date is compared with the response's own
    ``Date``, because the two clocks may differ. ``x-amz-retry-after`` is a number of
    milliseconds. Both may have decimals; of a list in one header the first counts, of
    several headers the longest.

    Args:
        headers: The response headers.
        now: The time of day at which they came, in seconds since 1970, for the case
            that ``Date`` is missing or unreadable; None for that of this moment.

    Returns:
        Seconds, 0.0 for a date in the past, infinity for a number of more than ten
        digits (thirteen for milliseconds) before its decimals; None without a readable
        one.

    Source: RFC 9110, sections 5.6.7 and 10.2.3; the AWS SDKs for the second header.

    >>> from multidict import CIMultiDict
    >>> retry_after(CIMultiDict({"Retry-After": "120"}))
    120.0
    """
    if "Retry-After" not in headers and "x-amz-retry-after" not in headers:
        return None
    moment = wall_clock() if now is None else now
    asked = [
        _number(value, max_digits=13, per_second=1000)
        for value in map(str, headers.getall("x-amz-retry-after", ()))
    ]
    for value in map(str, headers.getall("Retry-After", ())):
        asked.append(_number(value, max_digits=10))
        asked.append(_seconds_until(value, headers.get("Date", ""), moment))
    return max((each for each in asked if each is not None), default=None)


def most_jitter(seconds: float) -> float:
    """Return the most that is added to a hint, so that not all come back at once.

    That is for whoever has no backoff to go by: a fifth, but no more than a second.

    >>> most_jitter(2.0), most_jitter(60.0)
    (0.4, 1.0)
    """
    return min(seconds / 5, 1.0)


def _number(value: str, *, max_digits: int, per_second: int = 1) -> float | None:
    match = _NUMBER.match(value)
    if match is None:
        return None
    whole, decimals = match["whole"], match["rest"] or ""
    return math.inf if len(whole) > max_digits else float(whole + decimals) / per_second


def _seconds_until(value: str, sent: str, now: float) -> float | None:
    then = timestamp(value, now)
    if then is None:
        return None
    sent_at = timestamp(sent, now)
    return max(0.0, then - (now if sent_at is None else sent_at))


def timestamp(value: str, now: float) -> float | None:
    """Return the Unix time of a date in one of HTTP's forms; None if it is none.

    Of a list that of the first date.
    """
    matches = (form.match(value) for form in _DATE_FORMS)
    match = next(filter(None, matches), None)
    if match is None:
        return None
    month = _MONTHS.index(match["month"]) + 1
    try:
        day = date(_year(match["year"], now), month, int(match["day"]))
    except ValueError:
        return None
    hour, minute, second = map(int, match.group("hour", "minute", "second"))
    seconds = ((day - _EPOCH).days * 24 + hour) * 3600 + minute * 60 + second
    return float(seconds - _seconds_east(match["east"]))


def _seconds_east(zone: str | None) -> int:
    """Return the seconds by which the clocks of a zone are ahead; 0 where it is GMT."""
    if not zone:
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[3:]) * 60
    return -seconds if zone[0] == "-" else seconds


def _year(digits: str, now: float) -> int:
    if len(digits) == 4:
        return int(digits)
    # RFC 9110, 5.6.7: two digits never mean a year that is over 50 years ahead.
    latest = datetime.fromtimestamp(now, UTC).year + 50
    return latest - (latest - int(digits)) % 100


NO_HEADERS: Final[CIMultiDictProxy[str]] = CIMultiDictProxy(CIMultiDict())
"""The headers of a response that has none."""


_CLASSES: Final = (CIMultiDictProxy, CIMultiDict)


def as_headers(headers: object) -> MultiMapping[str]:
    """Return headers of any class as those of aiohttp; none of what has no names.

    >>> as_headers({"retry-after": 1})["Retry-After"]
    '1'
    """
    if isinstance(headers, _CLASSES):
        return headers
    if not isinstance(headers, Mapping):
        return NO_HEADERS
    return CIMultiDict([(str(name), str(value)) for name, value in headers.items()])


_ERROR: Final = 400

ABOVE_ANSWERS: Final = frozenset(aiohttp.ClientResponseError.__mro__[1:])
"""The classes above that of what is raised for an answer: they tell no status."""


class RaisedAnswer(NamedTuple):
    """The status and the headers of an answer that was raised."""

    status: int
    headers: MultiMapping[str]

    is_of_tunnel: bool
    """Whether the answer is a proxy's refusal of a tunnel."""

    @classmethod
    def of(cls, error: BaseException) -> RaisedAnswer | None:
        """Return the answer of a server or of a proxy in an exception; None without.

        That is a status of 400 or more: an endless redirect, a body of the wrong type
        and an answer that is not HTTP are failures. Of a proxy that opens no tunnel it
        is any.
        """
        if not isinstance(error, aiohttp.ClientResponseError):
            return None
        status = attribute_of(error, "status")
        is_of_tunnel = isinstance(error, aiohttp.ClientHttpProxyError)
        lowest = 1 if is_of_tunnel else _ERROR
        if not isinstance(status, int) or status < lowest:
            return None
        if is_unreadable_answer(error):
            return None
        headers = as_headers(attribute_of(error, "headers"))
        return cls(int(status), headers, is_of_tunnel)


def is_unreadable_answer(error: aiohttp.ClientResponseError) -> bool:
    """Say whether aiohttp made a status up, for an answer that it cannot parse."""
    return isinstance(error.__cause__, HttpProcessingError)


def is_cut_body(cause: BaseException) -> bool:
    """Say whether a body ended early; a body with a bad encoding did not."""
    return isinstance(cause, aiohttp.ClientPayloadError) and isinstance(
        cause.__cause__, PayloadEncodingError
    )
