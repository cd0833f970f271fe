"""Take a request through a row of clients: the one way of every call.

Enter the outer hooks; for each attempt enter the inner ones, send, leave, decide and
wait; leave the outer ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.hooks import NOTHING, Sign
from .._call.recorder import record_failure
from .ending import SENDING, Ending
from .entered import heed

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .entered import Entered
    from .row import Row


async def run(row: Row, call: Call, scope: Scope, request: Any) -> Any:  # noqa: C901
    """Return what comes of a request, or raise it.

    An :class:`.Ending` is made as soon as there is more to it than one good answer.
    """
    outer, retrier, inner, sender, told_of_calls, told_of_attempts = row
    entered: Entered = [*told_of_calls]
    attempt: Scope | None = None
    ending, result = None, NOTHING
    try:
        for hooks in outer:
            permit = hooks.enter(call, scope, request)
            if isinstance(permit, Sign):
                request = await heed(permit, outer, entered, call, scope, request)
                break
            entered.append((hooks, permit))
        if retrier.starts_at_once and call.is_usual:
            attempt, call.attempt_began = call, call.started
        elif (attempt := retrier.first_attempt(call, scope, request)) is None:
            ending = retrier.begin(sender, call, scope, request)
            attempt = await ending.next_attempt()
        while attempt is not None:
            begun: Entered = [*told_of_attempts]
            record = call if attempt is call else attempt.record
            sent = request if ending is None else attempt.to_send
            try:
                for hooks in inner:
                    permit = hooks.enter(call, attempt, sent)
                    if isinstance(permit, Sign):
                        sent = await heed(permit, inner, begun, call, attempt, sent)
                        break
                    begun.append((hooks, permit))
                result = SENDING
                result = await sender.start(call, attempt, sent)
                sender.answered(call, attempt, record, result)
                while begun:
                    hooks, permit = begun.pop()
                    pending = hooks.leave(call, attempt, permit, result, None)
                    if pending is not None:
                        await pending
                if ending is None:
                    if retrier.succeeds(call, record, sent):
                        break
                    ending = retrier.begin(sender, call, scope, request)
                ending.result = result
            except BaseException as cause:
                ending = ending or retrier.begin(sender, call, scope, request)
                ending.note(cause, result)
            result = NOTHING
            attempt = await ending.next_attempt(attempt, begun, record, sent)
        while ending is None and entered:
            hooks, permit = entered.pop()
            pending = hooks.leave(call, scope, permit, result, None)
            if pending is not None:
                await pending
    except BaseException as cause:
        ending = ending or Ending(sender, call, scope, request)
        ending.note(cause, result)
        if attempt is None and ending.cause is not None:
            record_failure(call, scope.record, cause)
        result = NOTHING
    return result if ending is None else await ending.hand_over(entered)
