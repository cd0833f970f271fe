"""Run a coroutine with the context variables of another moment."""

from __future__ import annotations

from functools import partial
from types import coroutine
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from contextvars import Context

_T = TypeVar("_T")


@coroutine
def in_context(
    context: Context, work: Coroutine[object, object, _T]
) -> Generator[object, object, _T]:
    """Await *work*, in the present task, with the variables of a *context*.

    So that the request for a part is made within the span of its call, and not within
    that of the code which happens to read.
    """
    step: Callable[[], object] = partial(work.send, None)
    while True:
        try:
            waited_for = context.run(step)
        except StopIteration as end:
            result: _T = end.value
            return result
        finally:
            # The traceback of what is thrown in has this frame: no cycle.
            del step
        try:
            step = partial(work.send, (yield waited_for))
        except BaseException as cause:
            step = partial(work.throw, cause)
