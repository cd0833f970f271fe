"""Read how long a response asks to wait: ``Retry-After`` and ``x-amz-retry-after``."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from .._clock import wall_clock

if TYPE_CHECKING:
    from multidict import MultiMapping

_EPOCH = date(1970, 1, 1)
_MONTH_NAMES = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MONTHS: tuple[str, ...] = tuple(_MONTH_NAMES.split("|"))

_DAY_NAME = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAY_NAME = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = f"(?P<month>{_MONTH_NAMES})"
# The sixtieth second is a leap second.
_TIME = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d|60)"
_DATE_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"{_DAY_NAME}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT",
        rf"{_LONG_DAY_NAME}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT",
        rf"{_DAY_NAME} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})",
    )
)


def retry_after(
    headers: MultiMapping[str], *, now: float | None = None
) -> float | None:
    """Return how long the server wants to be left alone.

    ``Retry-After`` is a number of seconds, or a date in one of HTTP's three forms. A
    date is compared with the response's own ``Date``, because the two clocks may
    differ. ``x-amz-retry-after`` is a number of milliseconds. The longest counts.

    Args:
        headers: The response headers.
        now: The time of day at which they came, in seconds since 1970, for the case
            that ``Date`` is missing or unreadable; None for that of this moment.

    Returns:
        Seconds, 0.0 for a date in the past, infinity for a number of more than ten
        digits (thirteen for milliseconds); None without a readable one.

    Source: RFC 9110, sections 5.6.7 and 10.2.3; the AWS SDKs for the second header.

    >>> from multidict import CIMultiDict
    >>> retry_after(CIMultiDict({"Retry-After": "120"}))
    120.0
    """
    if "Retry-After" not in headers and "x-amz-retry-after" not in headers:
        return None
    moment = wall_clock() if now is None else now
    asked = [
        _whole_number(value, max_digits=13, per_second=1000)
        for value in headers.getall("x-amz-retry-after", ())
    ]
    for value in headers.getall("Retry-After", ()):
        asked.append(_whole_number(value, max_digits=10))
        asked.append(_seconds_until(value, headers.get("Date", ""), moment))
    return max((each for each in asked if each is not None), default=None)


def _whole_number(value: str, *, max_digits: int, per_second: int = 1) -> float | None:
    digits = value.strip(" \t")
    if not (digits.isascii() and digits.isdigit()):
        return None
    return int(digits) / per_second if len(digits) <= max_digits else math.inf


def _seconds_until(value: str, sent: str, now: float) -> float | None:
    then = timestamp(value, now)
    if then is None:
        return None
    sent_at = timestamp(sent, now)
    return max(0.0, then - (now if sent_at is None else sent_at))


def timestamp(value: str, now: float) -> float | None:
    """Return the Unix time of a date in one of HTTP's forms; None if it is none."""
    matches = (form.fullmatch(value.strip(" \t")) for form in _DATE_FORMS)
    match = next(filter(None, matches), None)
    if match is None:
        return None
    month = _MONTHS.index(match["month"]) + 1
    try:
        day = date(_year(match["year"], now), month, int(match["day"]))
    except ValueError:
        return None
    hour, minute, second = map(int, match.group("hour", "minute", "second"))
    return float(((day - _EPOCH).days * 24 + hour) * 3600 + minute * 60 + second)


def _year(digits: str, now: float) -> int:
    if len(digits) == 4:
        return int(digits)
    # RFC 9110, 5.6.7: two digits never mean a year that is over 50 years ahead.
    latest = datetime.fromtimestamp(now, UTC).year + 50
    return latest - (latest - int(digits)) % 100
