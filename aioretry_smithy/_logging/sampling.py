"""Sampling: picks the calls to log, and marks their lines with the sampling rate."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from .._errors import bad_argument, is_finite, is_plain_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._log.request_log import RequestLog

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
