"""Find the log of a call: from its outcome, or in a block of code."""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ._causes import LOG_KEY
from ._errors import raised_from
from ._frames import sources_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ._log import RequestLog


class _Logs(list["RequestLog"]):
    """A list that can be referred to weakly."""

    __slots__ = ("__weakref__",)


class _Block:
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


_captures: ContextVar[tuple[_Block, ...]] = ContextVar(
    "aioretry_smithy_captures", default=()
)


@contextmanager
def capture_logs() -> Iterator[list[RequestLog]]:
    """Collect the root logs of the calls made in a block.

    A log is appended when its call starts. Calls in tasks that are started in the block
    count too; nested blocks each collect. For code that never shows you the response.

    >>> with capture_logs() as logs:
    ...     pass  # for example: await client_of_some_library.list_buckets()
    >>> logs
    []
    """
    logs = _Logs()
    block = _Block(logs)
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


collecting: Callable[[], tuple[_Block, ...]] = _captures.get
"""Returns the blocks around that collect logs; asked by each call."""


def attach(log: RequestLog, source: object) -> None:
    """Let :meth:`RequestLog.of` find *log* from *source*."""
    vars(source)[LOG_KEY] = log


def find_log(source: object) -> RequestLog | None:
    """Return the log attached to *source*, or to what it was raised from."""
    for link in raised_from(source):
        log = _attached_to(link)
        if log is None and isinstance(link, BaseException):
            log = _log_of_body(link)
        if log is not None:
            return log
    return None


def _attached_to(source: object) -> RequestLog | None:
    log: RequestLog | None = getattr(source, "__dict__", {}).get(LOG_KEY)
    return log


def _log_of_body(error: BaseException) -> RequestLog | None:
    """Find the log of the response that raised *error*.

    Most of what a response raises nobody of this library sees: what is wrong with a
    status or with JSON. Its frames have the response, or the stream of one.
    """
    for source, has_failed in sources_of(error):
        log = _attached_to(source)
        if log is not None:
            if has_failed:
                # Before it was read, so that no wait for it has met the failure.
                source.fail(error)
            return log
    return None
