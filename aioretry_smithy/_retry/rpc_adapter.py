"""Handle the calls and the results of a function that is retried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from .call_adapter import CallAdapter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._request.rpc_request import RpcRequest

_T = TypeVar("_T")


class RpcAdapter(CallAdapter):
    """Takes any result for a success: it is whole, holds nothing and asks for no wait.

    A function may be called again with the same arguments. Strategies with content look
    at what it returned.
    """

    __slots__ = ()

    def key(self, request: RpcRequest) -> str:
        return request.name

    def with_count(self, request: RpcRequest, name: str, count: int) -> RpcRequest:
        return request

    def is_spent(
        self, call: Call, request: RpcRequest, cause: Exception | None
    ) -> bool:
        return False

    def retry_after(self, result: object) -> None:
        return None

    async def content(self, result: Any, limit: int) -> Any:
        return result

    async def read(
        self,
        call: Call,
        attempt: Scope,
        result: object,
        look: Callable[[Any], Awaitable[_T]] | None,
        *,
        whole: bool,
    ) -> _T | None:
        return None if look is None else await look(result)

    def release(self, result: object, seconds: float) -> None:
        return None

    def close(self, result: object) -> None:
        pass


RPC = RpcAdapter()
