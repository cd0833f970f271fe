"""Define what the loop asks about the attempts of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

if TYPE_CHECKING:
    from .._call.attempt import Attempt
    from .._call.call import Call
    from .._call.hooks import Scope


class Retries(Protocol):
    """Decides about the attempts of one call."""

    async def next_attempt(self, ending: Any) -> Attempt | None:
        """Begin an attempt, after a wait; None where the call ends as *ending* then.

        Args:
            ending: How the attempt before has ended.

        Raises:
            BaseException: What the call ends with, or what broke into it.
        """
        ...


class Retrier(Protocol):
    """Begins the attempts of calls."""

    needs_attempt: bool
    """Whether a first attempt has a time limit, or hooks that look at it."""

    def first_attempt(self, call: Call, scope: Scope, request: Any) -> Scope | None:
        """Begin a first attempt that nobody has to be asked about; None otherwise.

        Where nothing looks at it while it lasts, the call is that attempt.
        """
        ...

    def succeeds(self, call: Call, attempt: Scope) -> bool:
        """Note a success, if it is one that nobody has to be asked about."""
        ...

    def begin(self, call: Call, scope: Scope, request: Any, attempt: Any) -> Retries:
        """Begin to decide, after an attempt or, where that is None, before the first.

        Raises:
            Exception: There are no settings for the call.
        """
        ...


class _Once:
    """Sends once, and decides nothing."""

    needs_attempt = False

    def first_attempt(self, call: Call, scope: Scope, request: object) -> Scope:
        """Return what the request is sent for."""
        return scope

    def succeeds(self, call: Call, attempt: Scope) -> Literal[True]:
        """Take any result for the end."""
        return True

    def begin(self, call: Call, scope: Scope, request: object, attempt: object) -> Self:
        """Begin nothing."""
        return self

    async def next_attempt(self, ending: Any) -> None:
        """Leave it at the result, or raise the failure."""
        if ending.cause is not None:
            raise ending.forget()


ONCE: Final = _Once()
"""Makes no attempts."""
