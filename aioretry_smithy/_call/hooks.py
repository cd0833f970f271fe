"""Define what a decorator of ours does around an attempt, or around a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .call import Attempt, Call
    from .kinds import Permit, Request, Result

    End: TypeAlias = Callable[..., Awaitable[None] | None]
    Scope: TypeAlias = Call | Attempt
    """The call or the attempt that a request is sent for."""


class Sign:
    """Tells the loop to do more than keep a permit: skip, wait, answer, or change."""

    __slots__ = ()

    request: Request = None
    """The request to send from now on, where nothing else is to be done for it."""


class Answer(Sign):
    """A result in place of sending anything.

    Args:
        result: The result.
        source: The user's function that returned it, if one did.
    """

    __slots__ = ("result", "source")

    def __init__(self, result: Result, source: object = None) -> None:
        self.result = result
        self.source = source


class Changed(Sign):
    """A permit, and another request to send in place of the one that was given."""

    __slots__ = ("permit", "request")

    def __init__(self, request: Request, permit: Permit = None) -> None:
        self.request = request
        self.permit = permit


class Interrupted(Sign):
    """A sign of hooks further in, and the request that was changed before it."""

    __slots__ = ("changed", "sign")

    def __init__(self, sign: Sign, changed: Request) -> None:
        self.sign = sign
        self.changed = changed


PASS: Final = Sign()
"""In place of a permit: there is nothing to do, and the end need not be told."""

WAIT: Final = Sign()
"""In place of a permit: it takes a wait, or is refused, or is an answer."""

NOTHING: Final = Sign()
"""Stands for the result of what has failed, since None may be a result."""


class Hooks:
    """The work of a decorator around each attempt; outside of retries, each call.

    After :meth:`enter` or :meth:`admit` gave a permit comes exactly one of
    :meth:`leave` and :meth:`cancel`, whatever other hooks do meanwhile. What one of
    these raises is the outcome for those further out; where the log is to show it, they
    record it. What :meth:`enter` and :meth:`admit` raise is recorded for them.
    """

    __slots__ = ()

    enters: ClassVar[bool] = True
    """Whether they have anything to do before the outcome; else the permit is None."""

    needs_attempt: bool = True
    """Whether they may ask for more of a scope than its record, such as a context."""

    is_of_endpoint: bool = False
    """Whether permits are kept per endpoint; then one that was left counts for none."""

    def enter(self, call: Call, scope: Scope, request: Request) -> Any:
        """Return a permit for *request*, or a sign; None unless overridden.

        That is :data:`PASS`, :data:`WAIT`, or a permit with a :class:`Changed` request.

        Raises:
            Exception: The request is refused.
        """
        return None

    async def admit(self, call: Call, scope: Scope, request: Request) -> Any:
        """Return a permit, after a wait; or an :class:`Answer`.

        Called where :meth:`enter` returned :data:`WAIT`.

        Raises:
            Exception: The request is refused.
        """
        raise NotImplementedError

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Permit,
        result: Result,
        cause: Exception | None,
    ) -> Awaitable[None] | None:
        """Note the outcome: a *result*, or :data:`NOTHING` and the *cause*.

        It may go on in what it returns, which is awaited.
        """
        return None

    def cancel(
        self, call: Call, scope: Scope, permit: Permit, cause: BaseException
    ) -> Awaitable[None] | None:
        """Give back what is not used: no outcome comes. There may be nothing.

        It may go on in what it returns, which is awaited.
        """
        return None


class EndOfCall(Hooks):
    """Ends a call: around all that its chain does.

    Args:
        end: Takes the call, its result or :data:`NOTHING`, and its failure or None. It
            may go on in what it returns, which is awaited.
    """

    __slots__ = ("_end",)

    enters = needs_attempt = False

    def __init__(self, end: End) -> None:
        self._end = end

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: None,
        result: Result,
        cause: Exception | None,
    ) -> Awaitable[None] | None:
        """End it."""
        return self._end(call, result, cause)

    def cancel(
        self, call: Call, scope: Scope, permit: None, cause: BaseException
    ) -> Awaitable[None] | None:
        """End it."""
        return self._end(call, NOTHING, cause)
