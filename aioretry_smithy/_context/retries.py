"""Define what the loop asks about the attempts of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from .loop import Ending

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .row import Row


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

    def begin(self, row: Row, call: Call, scope: Scope, request: Any) -> Ending:
        """Begin to end attempts: after the first one, or before it to ask for it.

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

    def begin(self, row: Row, call: Call, scope: Scope, request: object) -> Ending:
        """Leave it at the outcome."""
        return Ending(row, call, scope, request)


ONCE: Final = _Once()
"""Makes no attempts."""
