"""Queue calls, first come, first served."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextvars import copy_context
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

from .timed_waits import TimedWaits

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

T = TypeVar("T")


class WaitQueue(TimedWaits, Generic[T]):
    """A queue of calls of one event loop, served in order of arrival."""

    __slots__ = ("_numbers", "waiting")

    waiting: OrderedDict[int, tuple[asyncio.Future[T | None], Context]]
    """The calls that wait, by their numbers, with the variables of each."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count()
        self.waiting = OrderedDict()

    def __len__(self) -> int:
        return len(self.waiting)

    async def wait(self, until: float, give_back: Callable[[T], None]) -> T | None:
        """Wait until :meth:`serve` hands something out.

        Args:
            until: When to give up, by the event loop's clock; ``inf`` for never.
            give_back: Takes back a thing handed to a call that is cancelled meanwhile.

        Returns:
            The thing handed out, or None where time ran out.

        Raises:
            Exception: It could not be made.
        """
        number, call = self.join(until)
        try:
            return await call
        except BaseException:
            self.leave(number)
            if call.done() and not call.cancelled() and call.exception() is None:
                given = call.result()
                if given is not None:
                    give_back(given)
            raise
        finally:
            # What is raised has this frame, which must not have it.
            del call

    def join(self, until: float) -> tuple[int, asyncio.Future[T | None]]:
        """Add a call; return its number, and what will be as :meth:`wait` says."""
        call: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        number = next(self._numbers)
        self.waiting[number] = call, copy_context()
        self.end_at(number, until)
        return number, call

    def leave(self, number: int) -> None:
        """Let a call leave, if it still waits."""
        self.waiting.pop(number, None)
        self._rest()

    def serve(self, make: Callable[[], T]) -> bool:
        """Make a thing for the first call that waits; return False if there is none.

        It is made as part of that call, which has what is raised.
        """
        while self.waiting:
            _, (call, context) = self.waiting.popitem(last=False)
            # A call that is cancelled has not left yet, and one whose loop was closed
            # never does.
            if call.done() or call.get_loop().is_closed():
                continue
            try:
                call.set_result(context.run(make))
            except BaseException as error:
                _fail(call, error)
                if not isinstance(error, Exception):
                    raise
            finally:
                # What is raised has this frame, which must not have it.
                del call, context
            self._rest()
            return True
        self._rest()
        return False

    def end(self, number: int) -> None:
        """Let a call give up that has waited long enough."""
        call, _ = self.waiting.pop(number, (None, None))
        if call is not None and not call.done():
            call.set_result(None)
        self._rest()

    def _rest(self) -> None:
        if not self.waiting:
            self.forget_ends()


def _fail(call: asyncio.Future[T | None], error: BaseException) -> None:
    """Let a call raise an error; what a future cannot raise is wrapped, as in Python.

    The call is not lost, whatever it is.
    """
    if isinstance(error, StopIteration):
        wrapped = RuntimeError("StopIteration was raised for a call that waits")
        wrapped.__cause__ = error
        error = wrapped
    call.set_exception(error)
