"""Define the steps of a retry that differ for HTTP calls and for functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Request, Result

_T = TypeVar("_T")


class CallAdapter(ABC):
    """Handles the requests and the results of one kind of call.

    It has no state: one object serves all calls of its kind.
    """

    __slots__ = ()

    @abstractmethod
    def key(self, request: Request) -> str | None:
        """Return the name of those calls that share a quota with *request*."""

    @abstractmethod
    def with_count(self, request: Request, name: str, count: int) -> Any:
        """Return *request* with the number of attempts before it, under a name."""

    @abstractmethod
    def is_spent(self, call: Call, request: Request, cause: Exception | None) -> bool:
        """Say whether *request* cannot be sent again."""

    @abstractmethod
    def retry_after(self, result: Result) -> float | None:
        """Return the seconds that *result* asks to wait, or None."""

    @abstractmethod
    async def content(self, result: Result, limit: int) -> Any:
        """Return the content for strategies to look at, bytes up to a *limit*."""

    @abstractmethod
    async def read(
        self,
        call: Call,
        attempt: Scope,
        result: Result,
        look: Callable[[Any], Awaitable[_T]] | None,
        *,
        whole: bool,
    ) -> _T | None:
        """Read a result within its attempt: whole, by *look*, or both.

        Raises:
            Exception: That failed; so the attempt has failed, also in its log.
        """

    @abstractmethod
    def release(self, result: Result, seconds: float) -> Awaitable[None] | None:
        """Release the connection of *result*, in at most *seconds*.

        It may go on in what it returns, which is awaited.
        """

    @abstractmethod
    def close(self, result: Result) -> None:
        """Close the connection of *result* at once."""
