"""Calls that are hedged, and the outcome of each of their requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from chains import URL, now, session

from aioretry_smithy import (
    HedgingClient,
    HttpRequest,
    RequestLog,
    capture_logs,
    new_response,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import ClientResponse

    from aioretry_smithy import Decorator

hedging = HedgingClient.new_decorator


def watched(status: int, closed: list[int]) -> ClientResponse:
    """Make a response that tells when it is closed."""
    response = new_response(HttpRequest("GET", URL), status)
    response.close = lambda: closed.append(status)
    return response


def stubborn(seconds: float, answer: Any = 202) -> Any:
    """Answer so long after being given up."""

    async def respond(ctx: object, request: object) -> Any:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(9.0)
        await asyncio.sleep(seconds)
        return answer

    return respond


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
