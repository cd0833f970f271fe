"""Read a log back from its plain values, of which any may be missing or wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from .._masking.mask import DEFAULT_MASK, HIDDEN
from .._text import encodable
from .moment import moment_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HARMLESS: Final = re.compile(r"[\w .,:*+-]*+", re.ASCII)
"""A text with no part of a URL in it: most texts, and nothing is to be hidden there."""

_LONGEST: Final = 1e8
"""Seconds, three years: what says that it took longer is wrong."""


class PlainLog:
    """A log as :meth:`.RequestLog.to_dict` has it, or a line of a file of calls.

    A line may come from anywhere: a value of another type than it should have is as
    good as none. Texts are masked once more, so that all of them may be shown, and
    UTF-8 can carry them.

    >>> log = PlainLog({"response_status": "200", "duration": float("nan")})
    >>> log.number("response_status"), log.seconds("duration"), log.attempts
    (None, None, ())
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def text(self, key: str) -> str | None:
        """Return a text, credentials hidden; None for an empty one too."""
        value = self._values.get(key)
        if not value or not isinstance(value, str):
            return None
        return value if _HARMLESS.fullmatch(value) else DEFAULT_MASK.text(value)

    def preview(self, key: str) -> str | None:
        """Return the beginning of a body, secrets hidden."""
        value = self._values.get(key)
        if not value or not isinstance(value, str):
            return None
        # Where something was hidden it may be no JSON any more, and all would go.
        return encodable(value) if HIDDEN in value else DEFAULT_MASK.content(value)

    def number(self, key: str) -> int | None:
        """Return a whole number that is not negative."""
        value = self._values.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        # NaN and what is infinite are in no range.
        return int(value) if 0 <= value < 1 << 63 and value == int(value) else None

    def seconds(self, key: str) -> float | None:
        """Return how long something took."""
        value = self._values.get(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return float(value) if 0 <= value <= _LONGEST else None

    def flag(self, key: str) -> bool | None:
        """Return whether something is so; None where that is not said."""
        value = self._values.get(key)
        return value if isinstance(value, bool) else None

    def headers(self, key: str) -> dict[str, str]:
        """Return headers, secrets hidden, without what can be no header."""
        value = self._values.get(key)
        if not isinstance(value, Mapping):
            return {}
        return DEFAULT_MASK.headers(
            {
                name: text
                for name, text in value.items()
                if isinstance(text, str) and _TOKEN.fullmatch(str(name))
            }
        )

    def part(self, key: str) -> PlainLog:
        """Return the values inside one; there are none where it is missing."""
        value = self._values.get(key)
        return PlainLog(value if isinstance(value, Mapping) else {})

    def logs(self, key: str) -> tuple[PlainLog, ...]:
        """Return the logs in a list, in their order."""
        value = self._values.get(key)
        logs = value if isinstance(value, list) else ()
        return tuple(PlainLog(log) for log in logs if isinstance(log, Mapping))

    @property
    def attempts(self) -> tuple[PlainLog, ...]:
        """The logs of the attempts; none where nothing retries."""
        return self.logs("children")

    @property
    def calls(self) -> tuple[PlainLog, ...]:
        """The logs of the calls that a function made in this attempt."""
        return self.logs("calls")

    @property
    def is_http(self) -> bool:
        """Whether it is of an HTTP call: it knows of a method or a URL then."""
        values = self._values
        return bool(values.get("request_method") or values.get("request_url"))

    @property
    def started(self) -> datetime | None:
        """When it began, in UTC, which is also meant where no zone is named."""
        moment = moment_of(self._values.get("request_started_at"))
        try:
            return None if moment is None else moment.astimezone(UTC)
        except OverflowError:
            return None

    @property
    def cause_type(self) -> str | None:
        """The name of the class of what it failed with."""
        named = self.text("response_cause_type")
        cause = self.text("response_cause")
        return named or (cause and cause.partition(":")[0])

    def http_calls(self) -> Iterator[PlainLog]:
        """Yield the HTTP calls in order: just this one, or those inside a function.

        However deep they lie, no recursion is needed for it.
        """
        waiting = [self]
        while waiting:
            log = waiting.pop()
            if log.is_http:
                yield log
                continue
            inside = (call for part in (log, *log.attempts) for call in part.calls)
            waiting += reversed([*inside])
