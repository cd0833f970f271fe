"""Take a request through the hooks of a row of decorators, in and out again."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .._call.hooks import NOTHING, PASS, WAIT, Answer
from .._call.recorder import record_failure
from .recording import record_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from .._call.call import Call
    from .._call.hooks import Hooks, Scope


class Passage:
    """One request on its way through some hooks.

    Those that gave a permit are told of the outcome, the innermost first, each once.
    What they raise is the outcome for those further out.

    Args:
        hooks: The hooks, from the outside in.
        call: The call.
        scope: The call again, or the attempt.
        request: The request.
    """

    __slots__ = ("_hooks", "_permits", "call", "cause", "request", "result", "scope")

    request: Any
    """The request to send, as the hooks have left it."""

    result: Any
    """The result that there is up to now; :data:`.NOTHING` without one."""

    cause: BaseException | None
    """The failure that there is up to now."""

    def __init__(
        self, hooks: Sequence[Hooks], call: Call, scope: Scope, request: Any
    ) -> None:
        self._hooks = hooks
        self._permits: list[Any] = []
        self.call = call
        self.scope = scope
        self.request = request
        self.result = NOTHING
        self.cause = None

    def enter(self) -> Hooks | None:
        """Enter the hooks; return the one that has to wait first, if one has."""
        permits, call, scope = self._permits, self.call, self.scope
        for hooks in self._hooks[len(permits) :] if permits else self._hooks:
            try:
                permit = hooks.enter(call, scope, self.request)
            except BaseException as refusal:
                record_failure(call, scope.record, refusal)
                raise
            if permit is WAIT:
                return hooks
            permits.append(permit)
            if hooks.changes_request and permit is not PASS:
                self.request = permit.request
        return None

    async def admit(self, hooks: Hooks | None) -> None:
        """Wait for *hooks*, and enter the others; one may answer instead of sending."""
        call, scope = self.call, self.scope
        while hooks is not None:
            try:
                permit = await hooks.admit(call, scope, self.request)
                if isinstance(permit, Answer):
                    record_response(call, scope.record, permit.result)
                    self.result = permit.result
                    return
            except BaseException as refusal:
                record_failure(call, scope.record, refusal)
                raise
            self._permits.append(permit)
            hooks = self.enter()

    def leave(self) -> Awaitable[None] | None:
        """Tell the hooks of the outcome, as far as that takes no wait."""
        permits, call, scope = self._permits, self.call, self.scope
        while permits:
            permit = permits.pop()
            if permit is PASS:
                continue
            hooks = self._hooks[len(permits)]
            # The failure is in no variable: its traceback may have this frame.
            try:
                if self.cause is None or isinstance(self.cause, Exception):
                    pending = hooks.leave(call, scope, permit, self.result, self.cause)
                    if pending is not None:
                        return pending
                else:
                    hooks.cancel(call, scope, permit, self.cause)
            except BaseException as error:
                self.fail(error)
        return None

    async def leave_with(self, pending: Awaitable[None] | None) -> None:
        """Wait for *pending*, and tell the other hooks."""
        while pending is not None:
            try:
                await pending
            except BaseException as error:
                self.fail(error)
            pending = self.leave()

    def fail(self, cause: BaseException) -> None:
        """Note that the outcome is a failure; a response before that is closed."""
        before, self.cause = self.cause, cause
        result, self.result = self.result, NOTHING
        if before is not None and before is not cause and cause.__context__ is None:
            # An exception of the caller's own may refuse to be written on.
            with suppress(Exception):
                cause.__context__ = before
        if result is not NOTHING and self.call.brings_response:
            # It may be no response at all; the hooks further out hear of it yet.
            with suppress(Exception):
                result.close()

    def forget(self) -> BaseException:
        """Return the failure, which may be mended, and forget it."""
        cause: Any = self.cause
        self.cause = None
        try:
            return cause  # type: ignore[no-any-return]
        finally:
            del cause

    def take(self) -> tuple[Any, BaseException | None]:
        """Return the outcome, and forget it: this is in frames of what is raised."""
        result, cause = self.result, self.cause
        self.result, self.cause = NOTHING, None
        return result, cause
