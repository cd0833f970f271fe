"""Libraries to take in place of this one, used as their documents show."""

import asyncio
import logging
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
from calling import ATTEMPTS, BY_HAND, DELAY, HOST, RETRIED, Variant, checked, getting

AIOHTTP_RETRY = "aiohttp-retry"
WRAPPED_AIOHTTP_RETRY = "aiohttp-retry in a coroutine"
NEVER = 10**9
"""Failures after which a circuit opens: what is measured is a closed one."""

logger = logging.getLogger("benchmarks.off")


@asynccontextmanager
async def by_hand():
    async with aiohttp.ClientSession() as session:

        async def call(url):
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    async with session.get(url) as response:
                        if response.status < 500 or attempt == ATTEMPTS:
                            return response.status
                except RETRIED:
                    if attempt == ATTEMPTS:
                        raise
                await asyncio.sleep(DELAY)
            raise AssertionError

        yield call


@asynccontextmanager
async def with_aiohttp_retry():
    from aiohttp_retry import ExponentialRetry, RetryClient  # noqa: PLC0415

    options = ExponentialRetry(attempts=ATTEMPTS, start_timeout=DELAY)
    async with RetryClient(retry_options=options) as client:
        yield getting(client)


@asynccontextmanager
async def wrapped_aiohttp_retry():
    """Call it from a coroutine, which is where users of it put what they add."""
    async with with_aiohttp_retry() as send:

        async def call(url, **options):
            return await send(url, **options)

        yield call


async def retry_middleware(request, handler):
    for attempt in range(1, ATTEMPTS + 1):
        try:
            response = await handler(request)
        except RETRIED:
            if attempt == ATTEMPTS:
                raise
        else:
            if response.status < 500 or attempt == ATTEMPTS:
                return response
            response.release()
        await asyncio.sleep(DELAY)
    raise AssertionError


async def log_middleware(request, handler):
    response = await handler(request)
    logger.debug("%s %s: %s", request.method, request.url, response.status)
    return response


class BreakerMiddleware:
    """Counts failures in a row."""

    def __init__(self):
        self._failures = 0

    async def __call__(self, request, handler):
        if self._failures >= NEVER:
            raise aiohttp.ClientConnectionError
        try:
            response = await handler(request)
        except Exception:
            self._failures += 1
            raise
        self._failures = self._failures + 1 if response.status >= 500 else 0
        return response


@asynccontextmanager
async def with_middlewares(*middlewares):
    async with aiohttp.ClientSession(middlewares=middlewares) as session:
        yield getting(session)


@asynccontextmanager
async def with_tenacity_loop():
    import tenacity  # noqa: PLC0415

    async with aiohttp.ClientSession() as session:

        async def call(url):
            async for attempt in tenacity.AsyncRetrying(
                stop=tenacity.stop_after_attempt(ATTEMPTS),
                wait=tenacity.wait_fixed(DELAY),
                retry=tenacity.retry_if_exception_type(RETRIED),
                reraise=True,
            ):
                with attempt:
                    async with session.get(url) as response:
                        return checked(response)
            raise AssertionError

        yield call


def tenacity_retry():
    import tenacity  # noqa: PLC0415

    return tenacity.retry(
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_fixed(DELAY),
        retry=tenacity.retry_if_exception_type(RETRIED),
        reraise=True,
    )


def backoff_retry():
    import backoff  # noqa: PLC0415

    return backoff.on_exception(
        backoff.constant, RETRIED, max_tries=ATTEMPTS, jitter=None, interval=DELAY
    )


@asynccontextmanager
async def with_decorator(new_decorator):
    async with aiohttp.ClientSession() as session:

        @new_decorator()
        async def call(url):
            async with session.get(url) as response:
                return checked(response)

        yield call


@asynccontextmanager
async def with_stamina():
    import stamina  # noqa: PLC0415

    # Otherwise it writes a line for each retry, which is not what is compared.
    stamina.instrumentation.set_on_retry_hooks([])
    async with aiohttp.ClientSession() as session:

        async def call(url):
            async for attempt in stamina.retry_context(
                on=RETRIED,
                attempts=ATTEMPTS,
                timeout=None,
                wait_initial=DELAY,
                wait_max=DELAY,
                wait_jitter=DELAY,
            ):
                with attempt:
                    async with session.get(url) as response:
                        return checked(response)
            raise AssertionError

        yield call


@asynccontextmanager
async def with_purgatory():
    import purgatory  # noqa: PLC0415

    circuits = purgatory.AsyncCircuitBreakerFactory(default_threshold=NEVER)
    async with aiohttp.ClientSession() as session:

        async def call(url):
            async with await circuits.get_breaker(HOST), session.get(url) as response:
                return checked(response)

        yield call


@asynccontextmanager
async def assembled():
    async with with_purgatory() as send:
        send_again = tenacity_retry()(send)

        async def call(url):
            status = await send_again(url)
            logger.debug("GET %s: %s", url, status)
            return status

        yield call


def peers():
    """Return the others, from the thinnest to those that do most."""
    three = (log_middleware, retry_middleware, BreakerMiddleware())
    return [
        Variant(BY_HAND, by_hand, "by hand"),
        _peer("1 middleware: retry", partial(with_middlewares, retry_middleware)),
        _peer("3 middlewares: log, retry, breaker", partial(with_middlewares, *three)),
        _peer(AIOHTTP_RETRY, with_aiohttp_retry, "aiohttp_retry"),
        _peer(WRAPPED_AIOHTTP_RETRY, wrapped_aiohttp_retry, "aiohttp_retry"),
        _peer("backoff", partial(with_decorator, backoff_retry), "backoff"),
        _peer("tenacity, loop", with_tenacity_loop, "tenacity"),
        _peer("tenacity, @retry", partial(with_decorator, tenacity_retry), "tenacity"),
        _peer("stamina", with_stamina, "stamina"),
        Variant(
            "purgatory", with_purgatory, "peer", retries=False, needs=("purgatory",)
        ),
        _peer("log + tenacity + purgatory", assembled, "tenacity", "purgatory"),
    ]


def _peer(name, opener, *needs):
    return Variant(name, opener, "peer", needs=needs)
