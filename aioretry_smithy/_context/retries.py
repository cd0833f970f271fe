"""Define what the loop asks about the attempts of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

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

    def first_attempt(self, call: Call, request: Any) -> Scope | None:
        """Begin a first attempt that nobody has to be asked about; None otherwise.

        Where nothing looks at it while it lasts, the call is that attempt.
        """
        ...

    def succeeds(self, call: Call, attempt: Scope, result: Any) -> bool:
        """Note a success, if it is one that nobody has to be asked about."""
        ...

    def begin(self, call: Call, scope: Scope, request: Any, attempt: Any) -> Retries:
        """Begin to decide, after an attempt or, where that is None, before the first.

        Raises:
            Exception: There are no settings for the call.
        """
        ...


class _NoRetries:
    """Makes no attempt after the first."""

    async def next_attempt(self, ending: object) -> None:
        """Leave it at that."""


NO_RETRIES: Final = _NoRetries()
