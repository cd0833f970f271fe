"""Record the outcome of what has a context: a decorator, or the test of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._call.recorder import record_failure
from .context import record_of
from .recording import record_response

if TYPE_CHECKING:
    from .._call.kinds import Result
    from .context import ClientRequestContext


def record_result(
    ctx: ClientRequestContext, result: Result, source: object = None
) -> None:
    """Record what *source* has returned; see :func:`.record_response`."""
    record_response(*record_of(ctx), result, source)


def record_error(ctx: ClientRequestContext, cause: BaseException) -> None:
    """Record what was raised; see :func:`.record_failure`."""
    record_failure(*record_of(ctx), cause)
