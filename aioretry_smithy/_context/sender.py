"""Define what stands at the end of a row and sends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .context import context_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Request, Result
    from .._call.record import Record


class Sender(ABC):
    """The end of a row: sends requests, and records what comes of them."""

    __slots__ = ()

    needs_attempt: bool = True
    """Whether it may ask for more of a scope than its record, such as a context."""

    @abstractmethod
    def start(self, call: Call, scope: Scope, request: Request) -> Awaitable[Result]:
        """Begin to send a request.

        Raises:
            Exception: It cannot be sent.
        """

    @abstractmethod
    def answered(
        self, call: Call, scope: Scope, record: Record, result: Result
    ) -> None:
        """Record a result.

        Raises:
            Exception: It is none.
        """

    async def failed(
        self,
        call: Call,
        scope: Scope,
        record: Record,
        request: Request,
        cause: BaseException,
    ) -> Any:
        """Record a failure and raise it, or one that says more; or bring a result.

        Unless overridden, raise it as it is.
        """
        try:
            raise cause
        finally:
            # It has this frame, which must not have it.
            del cause


class ForeignClient(Sender):
    """Sends with a client that wants a context, and records by itself."""

    __slots__ = ("_client",)

    def __init__(self, client: Any) -> None:
        self._client = client

    def start(self, call: Call, scope: Scope, request: Request) -> Awaitable[Result]:
        """Let the client execute the request."""
        client = self._client
        sending: Awaitable[Result] = client.execute(context_of(call, scope), request)
        return sending

    def answered(
        self, call: Call, scope: Scope, record: Record, result: Result
    ) -> None:
        """Leave it to the client."""
