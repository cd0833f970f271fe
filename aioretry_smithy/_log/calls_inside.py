"""Keep the logs of the calls that were made inside an attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

from .._failures.kept_cause import CallBound

if TYPE_CHECKING:
    from .._masking.mask import Mask
    from .call_facts import CallFacts

_MOST_CALLS: Final = 100


class _Calls:
    """The logs of the first calls, in order, and the number of the others."""

    __slots__ = ("dropped", "kept")

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.dropped = 0


class CallsInside(CallBound):
    """Base of the log of a call or an attempt: the calls made inside of it.

    Only a call of a function has any, so nothing is made for the others.
    """

    __slots__ = ("_calls",)

    _call: CallFacts
    _calls: _Calls | None

    started: float

    @property
    def mask(self) -> Mask:
        """The mask that hides secrets in the views of this log.

        From the moment that a call inside begins, both hide the secrets of each other.
        """
        return self._call.mask

    @property
    def calls(self) -> tuple[Self, ...]:
        """The logs of the calls made inside this attempt, in order, at most 100.

        Where nothing retries, the log of the call has them.
        """
        return () if self._calls is None else tuple(self._calls.kept)

    @property
    def dropped_calls(self) -> int:
        """How many more calls were made inside, whose logs were not kept."""
        return 0 if self._calls is None else self._calls.dropped

    def _has_call(self, log: Self) -> bool:
        """Say whether a call was made inside; for one that was not kept by its time."""
        kept = any(each is log for each in self.calls)
        return kept or (self.dropped_calls > 0 and log.started >= self.started)

    def _add_call(self, log: Self) -> None:
        """Keep the log of a call that begins inside, or count it."""
        self._call.surround(log._call)
        calls = self._calls
        if calls is None:
            self._calls = calls = _Calls()
        if len(calls.kept) < _MOST_CALLS:
            calls.kept.append(log)
        else:
            calls.dropped += 1
