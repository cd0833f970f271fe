"""Compile a chain of clients into rows: hooks, retries, hooks, and what sends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .context import context_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.call import Call
    from .._call.hooks import Hooks, Scope
    from .._call.record import Record
    from .retries import Retrier


class Sender(ABC):
    """The end of a row: sends requests, and records what comes of them."""

    __slots__ = ()

    needs_attempt: bool = True
    """Whether it may ask for more of a scope than its record, such as a context."""

    @abstractmethod
    def start(self, call: Call, scope: Scope, request: Any) -> Awaitable[Any]:
        """Begin to send a request.

        Raises:
            Exception: It cannot be sent.
        """

    @abstractmethod
    def answered(self, call: Call, scope: Scope, record: Record, result: Any) -> None:
        """Record a result.

        Raises:
            Exception: It is none.
        """

    @abstractmethod
    async def failed(
        self,
        call: Call,
        scope: Scope,
        record: Record,
        request: Any,
        cause: BaseException,
    ) -> Any:
        """Record a failure and raise it, or one that says more; or bring a result."""


class ForeignClient(Sender):
    """Sends with a client that wants a context, and records by itself."""

    __slots__ = ("_client",)

    def __init__(self, client: Any) -> None:
        self._client = client

    def start(self, call: Call, scope: Scope, request: Any) -> Awaitable[Any]:
        """Let the client execute the request."""
        client = self._client
        return client.execute(context_of(call, scope), request)  # type: ignore[no-any-return]

    def answered(self, call: Call, scope: Scope, record: Record, result: Any) -> None:
        """Leave it to the client."""

    async def failed(
        self,
        call: Call,
        scope: Scope,
        record: Record,
        request: Any,
        cause: BaseException,
    ) -> Any:
        """Raise the failure."""
        try:
            raise cause
        finally:
            # It has this frame, which must not have it.
            del cause


class Row(NamedTuple):
    """A chain, or the part of it up to the first client that has a way of its own."""

    outer: tuple[Hooks, ...]
    """What is done around all attempts, from the outside in."""

    retrier: Retrier
    """What makes attempts; :data:`.ONCE` where nothing does."""

    inner: tuple[Hooks, ...]
    """What is done around each attempt, or around the one request."""

    sender: Sender
    """What it ends in."""


class Changes:
    """Counts the changes of clients, after which their rows are compiled again."""

    number = 0


changes: Final = Changes()

_COMPILED: Final = frozenset({"config", "delegate", "execute"})
"""The attributes that a row is compiled from."""


class Watched:
    """A client of which it is noted when a row has to be compiled again."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _COMPILED:
            changes.number += 1

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name in _COMPILED:
            changes.number += 1
