"""Look through groups of one exception, which stand for what is inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def peel(cause: BaseException) -> BaseException:
    """Return the only exception in a group, however deep; any other as it is.

    A task group around a single task raises such a group. After Armeria's
    ``Exceptions.peel``.

    Args:
        cause: The exception of the attempt.

    >>> peel(ExceptionGroup("tasks", [TimeoutError("too late")]))
    TimeoutError('too late')
    """
    while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
        cause = cause.exceptions[0]
    return cause


def layers(cause: BaseException) -> Iterator[BaseException]:
    """Yield an exception, then the nested exceptions while each is a group of one."""
    yield cause
    while isinstance(cause, BaseExceptionGroup) and len(cause.exceptions) == 1:
        cause = cause.exceptions[0]
        yield cause
