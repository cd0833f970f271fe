"""Take a request through a row of clients: the one way of every call.

Begin it; enter the outer hooks; for each attempt enter the inner ones, send, leave,
decide and wait; leave the outer ones.
"""

from __future__ import annotations

from asyncio import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from .._call.defaults import OF_ALL
from .._call.hooks import NOTHING, Hooks, Sign
from .._call.recorder import record_failure
from .entering import AnsweredInstead, enter, heed, leave

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Request, Result
    from .._call.record import Record
    from .entering import Entered
    from .sender import Sender

    Begun: TypeAlias = tuple["Row", Call, Scope, Request]
    Told: TypeAlias = tuple[tuple[Hooks, None], ...]


_SENDING: Final = Sign()
"""Stands for the result of a request under way."""


class Row(NamedTuple):
    """A chain, or the part of it up to the first client that has a way of its own."""

    outer: tuple[Hooks, ...]
    """What is entered around all attempts, from the outside in."""

    retrier: Retrier
    """What makes attempts; :data:`.ONCE` where nothing does."""

    inner: tuple[Hooks, ...]
    """What is entered around each attempt, or around the one request."""

    sender: Sender
    """What it ends in."""

    told_of_calls: Told = ()
    """The outer hooks, each with None, where none of them is to be entered."""

    told_of_attempts: Told = ()
    """The inner hooks, each with None, where none of them is to be entered."""

    @classmethod
    def of(
        cls,
        outer: list[Hooks],
        retrier: Retrier,
        inner: list[Hooks],
        sender: Sender,
    ) -> Row:
        """Make a row; hooks that need not be entered are not, where all are so."""
        told_of_calls, told_of_attempts = _only_told(outer), _only_told(inner)
        return cls(
            () if told_of_calls else tuple(outer),
            retrier,
            () if told_of_attempts else tuple(inner),
            sender,
            told_of_calls,
            told_of_attempts,
        )


def _only_told(hooks: list[Hooks]) -> Told:
    """Return hooks with their permits, where none of them is to be entered."""
    return (
        ()
        if any(each.enters for each in hooks)
        else tuple((each, None) for each in hooks)
    )


async def run(begin: Callable[[Any], Begun], given: object) -> Any:  # noqa: C901
    """Return what comes of a request, or raise it.

    What is *given* is for *begin*, which begins a call, or takes it :func:`on_its_way`.
    """
    row, call, scope, request = begin(given)
    outer, retrier, inner, sender, told_of_calls, told_of_attempts = row
    attempt: Scope | None = None
    ending, result, entered = None, NOTHING, [*told_of_calls]
    try:
        while outer and (sign := enter(outer, entered, call, scope, request)):
            request = sign.request or await heed(
                sign, outer, entered, call, scope, request
            )
        if retrier.starts_at_once and call.care < OF_ALL:
            attempt, call.attempt_began = call, call.started
        elif (attempt := retrier.first_attempt(call, scope, request)) is None:
            ending = retrier.begin(sender, call, scope, request)
            attempt = await ending.next_attempt()
        while attempt is not None:
            begun = [*told_of_attempts]
            record = call if attempt is call else attempt.record
            sent = request if ending is None else attempt.to_send
            try:
                while inner and (sign := enter(inner, begun, call, attempt, sent)):
                    sent = sign.request or await heed(
                        sign, inner, begun, call, attempt, sent
                    )
                result = _SENDING
                result = await sender.start(call, attempt, sent)
                sender.answered(call, attempt, record, result)
                # As leave() does, but for a call of it in each attempt.
                while begun:
                    hooks, permit = begun.pop()
                    pending = hooks.leave(call, attempt, permit, result, None)
                    if pending is not None:
                        await pending
                if ending is None and retrier.succeeds(call, attempt, sent):
                    break
                ending = ending or retrier.begin(sender, call, scope, request)
                ending.result = result
            except BaseException as cause:
                ending = ending or retrier.begin(sender, call, scope, request)
                ending.note(cause, result)
            result = NOTHING
            attempt = await ending.next_attempt(attempt, begun, record, sent)
        while ending is None and (pending := leave(entered, call, scope, result)):
            await pending
    except BaseException as cause:
        ending = ending or Ending(sender, call, scope, request)
        ending.note(cause, result)
        if attempt is None and ending.cause is not None:
            record_failure(call, scope.record, cause)
        result = NOTHING
    return result if ending is None else await ending.hand_over(entered)


def on_its_way(given: Begun) -> Begun:
    """Let a request go on that comes from other clients."""
    return given


class Ending:
    """How an attempt ends, and after the last one the call.

    Made as soon as there is more to a call than one good answer.
    It keeps the outcome: variables would keep it alive in frames of a traceback. This
    one makes no further attempt; those of retrying clients do.

    Args:
        sender: What sends its requests.
        call: The call.
        scope: What it is made for: the call again, or an attempt.
        request: The request, as the outer hooks have left it.
    """

    __slots__ = ("_at", "_sender", "call", "cause", "request", "result", "scope")

    result: Result
    """The result that there is up to now; :data:`.NOTHING` without one."""

    cause: BaseException | None
    """The failure that there is up to now."""

    def __init__(
        self, sender: Sender, call: Call, scope: Scope, request: Request
    ) -> None:
        if not call.care:
            # It has no body to leave out.
            call.request = call.request or call.to_send
        call.care = OF_ALL
        self._sender = sender
        self.call = call
        self.scope = scope
        self.request = request
        self.result = NOTHING
        self.cause = None
        # While what an attempt failed: NOTHING, entering hooks; _SENDING, sending.
        self._at: Sign | None = None

    def note(self, cause: BaseException, result: Result) -> None:
        """Note what was raised; *result* is what there was, or a sign of the stage."""
        if isinstance(cause, AnsweredInstead):
            (self.result,) = cause.args
            return
        if isinstance(result, Sign):
            self._at = result
        else:
            self.result = result
        self.fail(cause)

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

    async def next_attempt(
        self,
        attempt: Any = None,
        begun: Entered | None = None,
        record: Record | None = None,
        request: Request = None,
    ) -> Scope | None:
        """End an attempt, and begin the next one; None where the call ends as this.

        Args:
            attempt: The attempt; None before the first.
            begun: The hooks that have yet to be told of its end.
            record: What it recorded its outcome in.
            request: What it sent.

        Raises:
            BaseException: What the call ends with, or what broke into it.
        """
        await self.end_attempt(attempt, begun or [], record, request)
        return None

    async def end_attempt(
        self, attempt: Any, begun: Entered, record: Any, request: Request
    ) -> None:
        """Record how an attempt failed, if it did; tell its hooks of the outcome."""
        at, self._at = self._at, None
        if at is _SENDING:
            try:
                # It may bring a result yet.
                self.result = await self._sender.failed(
                    self.call, attempt, record, request, self.forget()
                )
            except BaseException as cause:
                self.fail(cause)
        elif at is NOTHING and self.cause is not None:
            record_failure(self.call, attempt.record, self.cause)
        await self._leave(begun, attempt)

    async def hand_over(self, entered: Entered) -> Any:
        """Tell the hooks around the call; return or raise what they have left."""
        await self._leave(entered, self.scope)
        if self.cause is None:
            return self.result
        raise self.forget()

    async def _leave(self, entered: Entered, scope: Scope) -> None:
        """Tell hooks of the outcome; what they raise is the outcome from then on."""
        call = self.call
        while entered:
            hooks, permit = entered.pop()
            try:
                if scope.record.has_moved and hooks.is_of_endpoint:
                    # The outcome is that of another endpoint.
                    pending = hooks.cancel(call, scope, permit, CancelledError())
                elif self.cause is None or isinstance(self.cause, Exception):
                    pending = hooks.leave(call, scope, permit, self.result, self.cause)
                else:
                    pending = hooks.cancel(call, scope, permit, self.cause)
                if pending is not None:
                    await pending
            except BaseException as error:
                self.fail(error)

    def forget(self) -> Any:
        """Return the failure, and forget it."""
        cause = self.cause
        self.cause = None
        try:
            return cause
        finally:
            del cause


class Retrier(Protocol):
    """Begins the attempts of calls."""

    is_looked_at: bool
    """Whether hooks or a sender inside look at more of an attempt than its record."""

    starts_at_once: bool
    """Whether nothing is to be done before a first attempt that nobody looks at.

    Then the call itself is that attempt.
    """

    def first_attempt(self, call: Call, scope: Scope, request: Request) -> Scope | None:
        """Begin a first attempt that nobody has to be asked about; None otherwise."""
        ...

    def succeeds(self, call: Call, attempt: Scope, request: Request) -> bool:
        """Note a success, if it is one that nobody has to be asked about."""
        ...

    def begin(
        self, sender: Sender, call: Call, scope: Scope, request: Request
    ) -> Ending:
        """Begin to end attempts: after the first one, or before it to ask for it.

        Raises:
            Exception: There are no settings for the call.
        """
        ...


class _Once:
    """Sends once, and decides nothing."""

    is_looked_at = starts_at_once = False

    def first_attempt(self, call: Call, scope: Scope, request: object) -> Scope:
        """Return what the request is sent for."""
        return scope

    def succeeds(self, call: Call, attempt: Scope, request: object) -> Literal[True]:
        """Take any result for the end."""
        return True

    def begin(
        self, sender: Sender, call: Call, scope: Scope, request: object
    ) -> Ending:
        """Leave it at the outcome."""
        return Ending(sender, call, scope, request)


ONCE: Final = _Once()
"""Makes no attempts."""
