"""Take a request through a row of clients: the one way of every call.

Enter the outer hooks; for each attempt enter the inner ones, send, leave, decide and
wait; leave the outer ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.hooks import NOTHING, Sign
from .._call.recorder import record_failure
from .ending import SENDING, Ending, heed

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .ending import Entered
    from .row import Row


async def run(row: Row, call: Call, scope: Scope, request: Any) -> Any:
    """Return what comes of a request, or raise it; see :class:`.Ending`."""
    outer, retrier, inner, sender = row
    entered: Entered = []
    attempt, ending, result = None, None, NOTHING
    try:
        for hooks in outer:
            permit = hooks.enter(call, scope, request)
            if isinstance(permit, Sign):
                hooks, permit, request = await heed(permit, hooks, call, scope, request)
            entered.append((hooks, permit))
        attempt = scope if retrier is None else retrier.first_attempt(call, request)
        if attempt is None:
            ending = Ending(call)
            attempt = await ending.retries(retrier, scope, request).next_attempt(ending)
        while attempt is not None:
            begun: Entered = []
            record = attempt.record
            sent = request if retrier is None else attempt.to_send
            try:
                for hooks in inner:
                    permit = hooks.enter(call, attempt, sent)
                    if isinstance(permit, Sign):
                        hooks, permit, sent = await heed(
                            permit, hooks, call, attempt, sent
                        )
                    begun.append((hooks, permit))
                result = SENDING
                result = await sender.start(call, attempt, sent)
                sender.answered(call, attempt, record, result)
                while begun:
                    hooks, permit = begun.pop()
                    pending = hooks.leave(call, attempt, permit, result, None)
                    if pending is not None:
                        await pending
                if ending is None and (
                    retrier is None or retrier.succeeds(call, attempt, result)
                ):
                    break
                ending = Ending.of(ending, call, result)
            except BaseException as cause:
                ending = Ending.of(ending, call, result, cause)
            result = NOTHING
            retries = ending.retries(retrier, scope, request, attempt)
            if begun or ending.cause is not None:
                await ending.end(begun, sender, record, sent)
            attempt = await retries.next_attempt(ending)
        while entered and ending is None:
            hooks, permit = entered.pop()
            pending = hooks.leave(call, scope, permit, result, None)
            if pending is not None:
                await pending
    except BaseException as cause:
        if attempt is None:
            record_failure(call, scope.record, cause)
        ending = Ending.of(ending, call, result, cause)
        result = NOTHING
    return result if ending is None else await ending.hand_over(scope, entered)
