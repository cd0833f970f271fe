"""Ways to call a coroutine function: bare, wrapped, decorated by us and by others."""

import asyncio
import functools
import time
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial

from calling import ATTEMPTS, Variant

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerRpcClient,
    LoggingRpcClient,
    RetryingRpcClient,
    RetryRule,
    rpc,
)

BARE_FUNCTION = "bare coroutine"
WRAPPED = "wrapped"
MARKED = "wrapped, with a context variable and the time"
RPC = "ours: rpc()"
RPC_RETRY = "ours: rpc(), retry"
STAMINA_FUNCTION = "stamina, a function"
FUNCTIONS = (BARE_FUNCTION, WRAPPED, MARKED, RPC, RPC_RETRY, STAMINA_FUNCTION)
"""The functions that bounds speak of, and those to compare them with."""

RULE = RetryRule(exceptions=[OSError], on_timeout=True)

_marked = ContextVar("marked", default=None)


async def answer(url):
    """Return at once, as if all went well."""
    return 200


def wrapped(function):
    """Do nothing but call: what any decorator costs that keeps its arguments."""

    @functools.wraps(function)
    async def call(*args, **kwargs):
        return await function(*args, **kwargs)

    return call


class Mark:
    """Something for the calls inside to find."""

    __slots__ = ("started",)


def marked(function):
    """Do no more than a log of nested calls with durations cannot do without."""

    @functools.wraps(function)
    async def call(*args, **kwargs):
        mark = Mark()
        mark.started = asyncio.get_running_loop().time()
        token = _marked.set(mark)
        try:
            return await function(*args, **kwargs)
        finally:
            _marked.reset(token)

    return call


def with_stamina(function):
    import stamina  # noqa: PLC0415

    return stamina.retry(on=OSError, attempts=ATTEMPTS)(function)


def with_tenacity(function):
    import tenacity  # noqa: PLC0415

    stop = tenacity.stop_after_attempt(ATTEMPTS)
    when = tenacity.retry_if_exception_type(OSError)
    return tenacity.retry(stop=stop, retry=when)(function)


def with_rpc_retry(function):
    return rpc(RetryingRpcClient.new_decorator(RULE, ATTEMPTS))(function)


@asynccontextmanager
async def decorated(decorator):
    yield decorator(answer)


def functions():
    """Return the ways to call a function."""
    retrying = RetryingRpcClient.new_decorator(RULE, ATTEMPTS)
    limited = RetryingRpcClient.new_decorator(RULE, ATTEMPTS, 3.0)
    guarding = CircuitBreakerRpcClient.new_decorator(CircuitBreaker())
    logging_off = LoggingRpcClient.new_decorator()
    return [
        _variant(BARE_FUNCTION, lambda function: function, "bare"),
        _variant(WRAPPED, wrapped, "by hand"),
        _variant(MARKED, marked, "by hand"),
        _variant(STAMINA_FUNCTION, with_stamina, "other", "stamina"),
        _variant("tenacity, a function", with_tenacity, "other", "tenacity"),
        _variant(RPC, rpc(), "ours"),
        _variant(RPC_RETRY, with_rpc_retry, "ours"),
        _variant("ours: rpc(), limits", rpc(limited, response_timeout=9.0), "ours"),
        _variant("ours: rpc(), all", rpc(guarding, retrying, logging_off), "ours"),
    ]


def _variant(name, decorator, kind, *needs):
    opened = partial(decorated, decorator)
    return Variant(name, opened, kind, needs=needs, is_function=True)


async def in_turn(calls, variant, server):
    """Return the microseconds of CPU per call of a function."""
    async with variant.open() as call:
        await call("")
        started = time.process_time()
        for _ in range(calls):
            await call("")
        return (time.process_time() - started) / calls * 1e6
