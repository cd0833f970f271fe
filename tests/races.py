"""Calls that are hedged, and the outcome of each of their requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from chains import URL, now, session

from aioretry_smithy import HedgingClient, RequestLog, capture_logs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioretry_smithy import Decorator

hedging = HedgingClient.new_decorator


def sent(log: RequestLog) -> list[tuple[float, Any, float | None]]:
    """Return the start, the outcome and the seconds of each request.

    It came to a status or the class of a failure; one that was given up, to None.
    """
    return [
        (
            round(each.started - log.started, 6),
            None
            if each.superseded
            else each.response_status or type(each.response_cause),
            None if each.duration is None else round(each.duration, 6),
        )
        for each in log.children
    ]


async def race(
    answers: Decorator | Iterable[Any],
    *decorators: Decorator,
    method: str = "GET",
    cancel_after: float | None = None,
    seconds: float | None = None,
    **options: Any,
) -> tuple[Any, float, RequestLog]:
    """Make one call; return its status or its failure, when it ended, and its log."""
    with capture_logs() as logs:
        async with session(answers, *decorators, timeout=seconds) as client:
            try:
                async with asyncio.timeout(cancel_after):
                    response = await client.request(method, URL, **options)
                    outcome: Any = response.status
            except Exception as error:
                outcome = error
            ended = round(now(), 6)
    return outcome, ended, logs[0]
