"""Define what a decorator of ours does around an attempt, or around a call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .attempt import Attempt
    from .call import Call

    Scope: TypeAlias = Call | Attempt
    """The call or the attempt that a request is sent for."""


class _Sign(Enum):
    PASS = auto()
    WAIT = auto()
    NOTHING = auto()


PASS: Final = _Sign.PASS
"""A permit of hooks that have nothing to do this time: they are not told of the end."""

WAIT: Final = _Sign.WAIT
"""In place of a permit: it takes a wait, or is refused, or is an answer."""

NOTHING: Final = _Sign.NOTHING
"""Stands for the result of what has failed, since None may be a result."""


class Answer:
    """A result in place of sending anything."""

    __slots__ = ("result",)

    def __init__(self, result: Any) -> None:
        self.result = result


class Hooks(ABC):
    """The work of a decorator around each attempt; outside of retries, each call.

    After :meth:`enter` or :meth:`admit` gave a permit comes exactly one of
    :meth:`leave` and :meth:`cancel`, whatever other hooks do meanwhile. What one of
    these raises is the outcome for those further out; where the log is to show it, they
    record it. What :meth:`enter` and :meth:`admit` raise is recorded for them.
    """

    __slots__ = ()

    changes_request: bool = False
    """Whether a permit of ``enter`` has another request, to send in its place."""

    @abstractmethod
    def enter(self, call: Call, scope: Scope, request: Any) -> Any:
        """Return a permit for *request*, :data:`PASS`, or :data:`WAIT`.

        Raises:
            Exception: The request is refused.
        """

    async def admit(self, call: Call, scope: Scope, request: Any) -> Any:
        """Return a permit, after a wait; or an :class:`Answer`.

        Called where :meth:`enter` returned :data:`WAIT`.

        Raises:
            Exception: The request is refused.
        """
        raise NotImplementedError

    @abstractmethod
    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Any,
        result: Any,
        cause: Exception | None,
    ) -> Awaitable[None] | None:
        """Note the outcome: a *result*, or :data:`NOTHING` and the *cause*.

        It may go on in what it returns, which is awaited.
        """

    @abstractmethod
    def cancel(
        self, call: Call, scope: Scope, permit: Any, cause: BaseException
    ) -> None:
        """Give back what is not used: no outcome comes."""
