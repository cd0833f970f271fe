"""Read Smithy's retry information from an error."""

from __future__ import annotations

from inspect import isfunction
from typing import Final, Literal, NamedTuple, TypeAlias

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
        wait = _attribute(error, "retry_after")
        fault = _attribute(error, "fault")
        return cls(
            _as_bool(_attribute(error, "is_retry_safe")),
            wait if is_finite(wait) and wait >= 0 else None,
            _as_bool(_attribute(error, "is_throttling_error")) or False,
            _as_bool(_attribute(error, "is_timeout_error")) or False,
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


def _attribute(error: object, name: str) -> object:
    # A user's error whose attributes raise must not end a call.
    try:
        return getattr(error, name, None)
    except Exception:
        return None


def _as_bool(value: object) -> bool | None:
    # Other values that are true in Python, such as a text or a method, are mistakes.
    return bool(value) if isinstance(value, int) and value in {0, 1} else None
