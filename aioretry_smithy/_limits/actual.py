"""Ask what an attempt has cost in the end, as soon as that can be known."""

from __future__ import annotations

import logging
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._bodies.response_content import whole_body
from .._call.awaited_body import await_body
from .._errors import check_not_negative
from .._log.request_log import log_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import aiohttp

    from .._call.call import Call
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .bucket import Charge
    from .cost import Actual
    from .rate_limit import RateLimit

_logger = logging.getLogger("aioretry_smithy")


def ask_for_actual(
    ctx: ClientRequestContext,
    limit: RateLimit,
    charge: Charge,
    response: aiohttp.ClientResponse,
) -> None:
    """Let what the user gave correct a charge.

    That is after the body where a strategy looks at it, else now.
    """
    actual = limit._actual
    if actual is None:
        return
    call = ctx.call
    asked = _Asked(actual, limit, charge, ctx.record, _finder_of(response))
    if not await_body(call, asked):
        body = whole_body(response) if call.reads_whole_bodies else None
        asked(call, response, body)


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Asks about one attempt."""

    actual: Actual
    limit: RateLimit
    charge: Charge
    record: Record
    response: Callable[[], object]

    def __call__(self, call: Call, result: object, body: bytes | None) -> None:
        # Of several requests for one answer the body of one is read.
        content = body if self.response() is result else None
        try:
            figure = self.actual(log_of(call, self.record), content)
            if figure is not None:
                check_not_negative("actual", figure)
                self.limit._settle(self.charge, figure)
        except Exception:
            # The answer is not lost for it; the estimate stands.
            _logger.warning("%r: actual raised", self.limit, exc_info=True)


def _finder_of(response: object) -> Callable[[], object]:
    """Return what finds a response, without keeping it where its class allows that."""
    try:
        return weakref.ref(response)
    except TypeError:
        return lambda: response
