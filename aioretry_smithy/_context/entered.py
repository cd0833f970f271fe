"""Enter the hooks of a row, and tell them of a good outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .._call.call import OF_ALL
from .._call.hooks import PASS, WAIT, Answer, Changed, Hooks, Sign
from .recording import record_response

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Permit, Request, Result

Entered: TypeAlias = "list[tuple[Hooks, Any]]"
"""The hooks that were entered, each with its permit, from the outside in."""


class Answered(Exception):  # noqa: N818
    """Ends an attempt, or a call, with a result in place of sending anything."""


async def heed(
    sign: Sign,
    to_enter: tuple[Hooks, ...],
    entered: Entered,
    call: Call,
    scope: Scope,
    request: Request,
) -> Any:
    """Enter hooks that have given a sign; return the request to send.

    Raises:
        Exception: They refuse the request, or answer it.
    """
    call.care = OF_ALL
    hooks: Hooks = to_enter[len(entered)]
    permit: Permit = sign
    if sign is WAIT:
        permit = await hooks.admit(call, scope, request)
    if isinstance(permit, Answer):
        record_response(call, scope.record, permit.result)
        raise Answered(permit.result)
    if isinstance(permit, Changed):
        permit, request = permit.permit, permit.request
    entered.append((_NO_HOOKS if permit is PASS else hooks, permit))
    return request


class _NoHooks(Hooks):
    """Stands for hooks that have nothing to do this time."""

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Permit,
        result: Result,
        cause: Exception | None,
    ) -> None:
        """Do nothing."""


_NO_HOOKS: Final = _NoHooks()
