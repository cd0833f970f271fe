"""Functions that answer in turn, and logs of calls made by hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RetryingRpcClient,
    RetryRule,
    new_response,
    rpc,
)
from aioretry_smithy._call.recording import record_response
from aioretry_smithy._request.rpc_request import RpcRequest

if TYPE_CHECKING:
    from aioretry_smithy import RequestLog


def lookups(*outcomes: Any, seconds: float = 0.25) -> Any:
    """Make a function that raises or returns each of the outcomes in turn."""
    pending = iter(outcomes)

    async def fetch() -> Any:
        await asyncio.sleep(seconds)
        outcome = next(pending)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return fetch


def observed(telemetry: Any, *inside: Any, name: str = "fetch", **settings: Any) -> Any:
    """Decorate with telemetry in both places around a retrying client."""
    rule = RetryRule(exceptions=[LookupError], backoff=Backoff.fixed(1.0))
    retry = RetryingRpcClient.new_decorator(rule, **settings)
    return rpc(*inside, telemetry, retry, telemetry, name=name)


def function(
    name: str, inside: RequestLog | None = None, timeout: float | None = None
) -> ClientRequestContext:
    """Begin the call of a function, in whose attempt it may be."""
    return _begun(ClientRequestContext(RpcRequest(name), timeout), inside)


def http(
    url: str, inside: RequestLog | None = None, method: str = "GET", **options: Any
) -> ClientRequestContext:
    """Begin an HTTP call, in whose attempt it may be."""
    return _begun(ClientRequestContext(HttpRequest(method, url), **options), inside)


def _begun(ctx: ClientRequestContext, inside: RequestLog | None) -> Any:
    if inside is not None:
        inside._add_call(ctx.log)
    return ctx


def end(ctx: ClientRequestContext, outcome: Any = None, delay: float = 0.0) -> None:
    """End a call or an attempt: with a status, a failure, or what returned."""
    log = ctx.log
    log._sent = True
    if isinstance(outcome, BaseException):
        log._record_failure(outcome)
    elif isinstance(outcome, int):
        record_response(log, new_response(ctx.request, outcome))
    else:
        log._record_return()
    if delay:
        log.delay, log.delay_source = delay, "backoff"


def end_call(ctx: ClientRequestContext, attempt: ClientRequestContext) -> None:
    """End a call as its last attempt ended."""
    ctx.log._record_answer(attempt.log)
    ctx.log._end_call()


async def report() -> RequestLog:
    """Make a call with calls on two more levels, which takes four seconds."""
    outer = function("fetch_report", timeout=10.0)
    first = outer.derive(outer.request, timeout=3.0)
    await _day(first.log)
    rows = function("Store.load_rows", first.log)
    attempt = rows.derive(rows.request)
    await _query(attempt.log, 500)
    end(attempt, ValueError("no rows"), delay=0.4)
    await asyncio.sleep(0.4)
    attempt = rows.derive(rows.request)
    await _query(attempt.log, 200)
    end(attempt)
    end_call(rows, attempt)
    end(first, LookupError("of yesterday"), delay=1.2)
    await asyncio.sleep(1.2)
    second = outer.derive(outer.request, timeout=3.0)
    await _day(second.log)
    end(second)
    end_call(outer, second)
    return outer.log


async def _day(inside: RequestLog) -> None:
    call = http("https://api.example.com/day?token=S3CR3T", inside)
    for status in 502, 200:
        attempt = call.derive(call.request)
        await asyncio.sleep(0.3)
        end(attempt, status, delay=0.3 if status == 502 else 0.0)
        await asyncio.sleep(attempt.log.delay or 0.0)
    end_call(call, attempt)


async def _query(inside: RequestLog, status: int) -> None:
    call = http("https://user:S3CR3T@db.example.com/query", inside, "POST")
    await asyncio.sleep(0.1)
    end(call, status)
