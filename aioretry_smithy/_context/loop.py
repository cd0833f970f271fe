"""Take a request through a row of clients: the one way of every call.

Enter the outer hooks; for each attempt enter the inner ones, send, leave, decide and
wait; leave the outer ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._call.hooks import NOTHING
from .ending import SENDING, Ending
from .entered import enter, heed, leave

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope
    from .entered import Entered
    from .row import Row


async def run(row: Row, call: Call, scope: Scope, request: Any) -> Any:
    """Return what comes of a request, or raise it.

    An :class:`.Ending` is made as soon as there is more to it than one good answer.
    """
    outer, retrier, inner, sender = row
    entered: Entered = []
    attempt, ending, result = None, None, NOTHING
    try:
        sign = enter(outer, entered, call, scope, request)
        if sign is not None:
            request = await heed(sign, outer, entered, call, scope, request)
        attempt = retrier.first_attempt(call, scope, request)
        if attempt is None:
            ending = Ending(row, call, scope, request)
            attempt = await ending.first_attempt()
        while attempt is not None:
            begun: Entered = []
            record, sent = (
                attempt.record,
                request if ending is None else attempt.to_send,
            )
            try:
                sign = enter(inner, begun, call, attempt, sent)
                if sign is not None:
                    sent = await heed(sign, inner, begun, call, attempt, sent)
                result = SENDING
                result = await sender.start(call, attempt, sent)
                sender.answered(call, attempt, record, result)
                while (pending := leave(begun, call, attempt, result)) is not None:
                    await pending
                if ending is None and retrier.succeeds(call, attempt, result):
                    break
                ending = ending or Ending(row, call, scope, request)
                ending.result = result
            except BaseException as cause:
                ending = ending or Ending(row, call, scope, request)
                ending.note(cause, result)
            result = NOTHING
            attempt = await ending.next_attempt(attempt, begun, record, sent)
        while ending is None and (pending := leave(entered, call, scope, result)):
            await pending
    except BaseException as cause:
        ending = ending or Ending(row, call, scope, request)
        ending.note(cause, result)
        result = NOTHING
    return result if ending is None else await ending.hand_over(entered, attempt)
