"""How the log of a call is found: from its outcome, or around the calling code."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ._errors import raised_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import aiohttp

    from ._log import RequestLog
    from ._recording import Recording

_KEY = "_aioretry_smithy_log"
_captures: ContextVar[tuple[list[RequestLog], ...]] = ContextVar(
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
    logs: list[RequestLog] = []
    token = _captures.set((*_captures.get(), logs))
    try:
        yield logs
    finally:
        _captures.reset(token)


collecting: Callable[[], tuple[list[RequestLog], ...]] = _captures.get
"""Returns the lists of the blocks around that collect logs; asked by each call."""


def attach(log: Recording, source: aiohttp.ClientResponse | BaseException) -> None:
    """Let :meth:`RequestLog.of` find *log* from *source*."""
    vars(source)[_KEY] = log


def find_log(source: object) -> RequestLog | None:
    """Return the log attached to *source*, or to what it was raised from."""
    for link in raised_from(source):
        log: RequestLog | None = getattr(link, "__dict__", {}).get(_KEY)
        if log is not None:
            return log
    return None
