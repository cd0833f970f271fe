"""End an attempt or a call that did not go well at once."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from .._call.attempt import Attempt
from .._call.hooks import NOTHING, PASS, WAIT, Answer, Changed, Hooks, Sign
from .._call.recorder import record_failure
from .recording import record_response
from .retries import NO_RETRIES

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .retries import Retrier, Retries
    from .row import Sender

    Entered = list[tuple[Hooks, Any]]
    """Hooks that were entered, each with its permit, from the outside in."""

SENDING: Final = Sign()
"""Stands for the result of a request under way."""


class _Answered(Exception):  # noqa: N818
    """Ends an attempt, or a call, by a result in place of sending."""


async def heed(
    sign: Any, hooks: Hooks, call: Call, scope: Scope, request: Any
) -> tuple[Hooks, Any, Any]:
    """Return hooks, permit and request where hooks gave more than a permit, or none.

    Raises:
        Exception: The hooks refuse the request, or answer it.
    """
    if sign is WAIT:
        sign = await hooks.admit(call, scope, request)
    if isinstance(sign, Answer):
        record_response(call, scope.record, sign.result)
        raise _Answered(sign.result)
    if isinstance(sign, Changed):
        return hooks, sign.permit, sign.request
    return _NO_HOOKS if sign is PASS else hooks, sign, request


class _NoHooks(Hooks):
    """Stands for hooks that have nothing to do this time."""

    def enter(self, call: Call, scope: Scope, request: Any) -> None:
        """Do nothing."""

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: Any,
        result: Any,
        cause: Exception | None,
    ) -> None:
        """Do nothing."""


_NO_HOOKS: Final = _NoHooks()


class Ending:
    """How an attempt ends, and after the last one the call.

    It has the outcome in place of variables, which frames of a traceback have.

    Args:
        call: The call.
    """

    __slots__ = ("_at", "_attempt", "_retries", "call", "cause", "result")

    result: Any
    """The result that there is up to now; :data:`.NOTHING` without one."""

    cause: BaseException | None
    """The failure that there is up to now."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.result = NOTHING
        self.cause = None
        # Where the attempt failed: NOTHING, when hooks were entered, or SENDING.
        self._at: Sign | None = None
        self._retries: Retries | None = None

    @classmethod
    def of(
        cls,
        known: Ending | None,
        call: Call,
        result: Any,
        cause: BaseException | None = None,
    ) -> Ending:
        """Note a result, or what was raised and the result that there was before.

        Args:
            known: The ending of the call, if there was one.
            call: The call.
            result: The result.
            cause: What was raised.
        """
        ending = known or cls(call)
        if isinstance(cause, _Answered):
            (ending.result,) = cause.args
            return ending
        if isinstance(result, Sign):
            ending._at = result
        else:
            ending.result = result
        if cause is not None:
            ending.fail(cause)
        try:
            return ending
        finally:
            del cause

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

    async def end(
        self, begun: Entered, sender: Sender, record: Record, request: Any
    ) -> None:
        """Record how an attempt failed, and tell the hooks; or that it did not."""
        attempt: Any = self._attempt
        if record is self.call:
            record = attempt.record
        at, self._at = self._at, None
        if at is SENDING:
            try:
                # It may bring a result yet.
                self.result = await sender.failed(
                    self.call, attempt, record, request, self._forget()
                )
            except BaseException as cause:
                self.fail(cause)
        elif at is NOTHING and self.cause is not None:
            record_failure(self.call, attempt.record, self.cause)
        await self._leave(begun, attempt)

    def retries(
        self,
        retrier: Retrier | None,
        scope: Scope,
        request: Any,
        attempt: Scope | None = None,
    ) -> Retries:
        """Return what decides about the attempts after one, or before the first."""
        began = self.call.attempt_began
        if began is not None:
            attempt = Attempt.of_call(self.call, began)
        self._attempt = attempt
        if self._retries is None:
            if retrier is None:
                self._retries = NO_RETRIES
            else:
                self._retries = retrier.begin(self.call, scope, request, attempt)
        return self._retries

    async def hand_over(self, scope: Scope, entered: Entered) -> Any:
        """Tell the hooks around the call; return or raise what they have left."""
        await self._leave(entered, scope)
        if self.cause is None:
            return self.result
        raise self._forget()

    def take(self) -> tuple[Any, BaseException | None]:
        """Return the outcome, and forget it."""
        result, cause = self.result, self.cause
        self.result, self.cause = NOTHING, None
        return result, cause

    async def _leave(self, entered: Entered, scope: Scope) -> None:
        """Tell hooks of the outcome; what they raise is the outcome from then on."""
        while entered:
            hooks, permit = entered.pop()
            try:
                if self.cause is None or isinstance(self.cause, Exception):
                    pending = hooks.leave(
                        self.call, scope, permit, self.result, self.cause
                    )
                    if pending is not None:
                        await pending
                else:
                    hooks.cancel(self.call, scope, permit, self.cause)
            except BaseException as error:
                self.fail(error)

    def _forget(self) -> BaseException:
        """Return the failure, and forget it."""
        cause: Any = self.cause
        self.cause = None
        try:
            return cause  # type: ignore[no-any-return]
        finally:
            del cause
