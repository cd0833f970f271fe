"""Waiting, apart from deciding when: by an event loop, or by a thread that sleeps.

What takes several steps, with waits between them, is a generator. It yields seconds to
sleep and returns its result, and whoever runs it sleeps. What breaks into a sleep, a
cancellation or Ctrl-C, is raised at its ``yield``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[float, None, T]
"""Yields seconds to sleep, and returns a result."""


async def awaited(steps: Steps[T]) -> T:
    """Run steps, and let the event loop do something else meanwhile.

    >>> def steps():
    ...     yield 60.0
    ...     return "done"
    >>> with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    ...     runner.run(awaited(steps()))
    'done'
    """
    with closing(steps):
        while True:
            try:
                seconds = next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            with _telling(steps):
                await asyncio.sleep(seconds)


def slept(steps: Steps[T], sleep: Callable[[float], object]) -> T:
    """Run steps, and let the thread sleep meanwhile.

    >>> def steps():
    ...     yield 60.0
    ...     return "done"
    >>> slept(steps(), print)
    60.0
    'done'
    """
    with closing(steps):
        while True:
            try:
                seconds = next(steps)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            with _telling(steps):
                sleep(seconds)


@contextmanager
def _telling(steps: Steps[Any]) -> Iterator[None]:
    """Raise in the steps what breaks into a wait, so that they end at once."""
    try:
        yield
    except GeneratorExit:
        # A wait that is thrown away with its event loop ends wherever the garbage is
        # collected. Closing the steps is all that can be done there.
        raise
    except BaseException as error:
        steps.throw(error)
