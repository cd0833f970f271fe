"""Collect the logs of the calls that are made in a block of code."""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .request_log import RequestLog


class _Logs(list["RequestLog"]):
    """A list that can be referred to weakly."""

    __slots__ = ("__weakref__",)


class CaptureBlock:
    """A block that collects, for as long as there is the list.

    A connection that is opened in the block, or a task, has the context of the block
    for as long as it lives, which may be long.
    """

    __slots__ = ("is_open", "reference")

    def __init__(self, logs: _Logs) -> None:
        self.reference = weakref.ref(logs)
        self.is_open = True

    def append(self, log: RequestLog) -> None:
        """Take the log of a call that starts."""
        logs = self.reference()
        if logs is not None and self.is_open:
            logs.append(log)


_captures: ContextVar[tuple[CaptureBlock, ...]] = ContextVar(
    "aioretry_smithy_captures", default=()
)


@contextmanager
def capture_logs() -> Iterator[list[RequestLog]]:
    """Collect the root logs of the calls made in a block.

    A log is appended when its call starts. Calls in tasks that are started in the block
    count too; nested blocks each collect. Use it with code that never shows you the
    response.

    >>> with capture_logs() as logs:
    ...     pass  # for example: await client_of_some_library.list_buckets()
    >>> logs
    []
    """
    logs = _Logs()
    block = CaptureBlock(logs)
    token = _captures.set((*_captures.get(), block))
    try:
        yield logs
    finally:
        # Blocks in generators need not end in the order in which they began.
        others = tuple(other for other in _captures.get() if other is not block)
        try:
            _captures.reset(token)
        except ValueError:
            # Nor where they began, and that context cannot be reached from here.
            block.is_open = False
        _captures.set(others)


collecting: Callable[[], tuple[CaptureBlock, ...]] = _captures.get
"""Returns the blocks around that collect logs; asked by each call."""
