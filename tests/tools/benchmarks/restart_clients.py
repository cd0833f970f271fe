"""Clients whose calls may meet a restart: none of it, plain retries, presets of others.

Each is a function of the seconds that an attempt waits for an answer. What is not
written in Python is built of our parts, by the rules that its documents give.
"""

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

import aiohttp
from one_server import URL_OF_IT, calling, client_of

from aioretry_smithy import (
    RetryConfig,
    RetryingClient,
    RetryLimiter,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.smithy import StandardRetryStrategy

RETRIED = (aiohttp.ClientError, TimeoutError)

NONE, OURS = "no retries", "SessionBuilder.standard()"


def bare(patience):
    return SessionBuilder(URL_OF_IT).response_timeout(patience)


def retrying(patience, **settings):
    """Retry in a chain that has nothing else."""

    def chain():
        limiter = settings.get("limiter", lambda: None)()
        strategy = settings.get("strategy", RetryStrategy.failsafe)()
        config = RetryConfig(
            strategy,
            max_total_attempts=settings["attempts"],
            attempt_timeout=patience,
            limiter=limiter,
        )
        builder = SessionBuilder(URL_OF_IT).response_timeout(60.0)
        return builder.decorator(RetryingClient.new_decorator(config))

    return client_of(chain)


class FinagleBudget(RetryLimiter):
    """A fifth of the calls of the last ten seconds, and ten retries a second."""

    TTL, SHARE, LEAST = 10.0, 0.2, 10.0

    def __init__(self):
        self._deposits = deque()
        self._spent = deque()

    def acquire(self, ctx, cause):
        now = asyncio.get_running_loop().time()
        while self._deposits and self._deposits[0][0] <= now - self.TTL:
            self._deposits.popleft()
        while self._spent and self._spent[0] <= now - self.TTL:
            self._spent.popleft()
        saved = sum(each for _, each in self._deposits) + self.LEAST * self.TTL
        if saved < len(self._spent) + 1:
            return False
        self._spent.append(now)
        return True

    def _deposit(self):
        self._deposits.append((asyncio.get_running_loop().time(), self.SHARE))

    def on_success(self, ctx):
        if ctx.attempt == 1:
            self._deposit()

    def on_failure(self, ctx, cause):
        if ctx.attempt == 1:
            self._deposit()


def with_aiohttp_retry(patience):
    from aiohttp_retry import ExponentialRetry, RetryClient  # noqa: PLC0415

    @asynccontextmanager
    async def opened(wire):
        async with bare(patience).build() as session:
            wire.end(session)
            # Unless it is told, it retries statuses alone.
            options = ExponentialRetry(exceptions={*RETRIED})
            yield calling(RetryClient(session, retry_options=options))

    return opened


def with_stamina(patience):
    import stamina  # noqa: PLC0415

    @asynccontextmanager
    async def opened(wire):
        stamina.instrumentation.set_on_retry_hooks([])
        async with bare(patience).build() as session:
            wire.end(session)

            @stamina.retry(on=RETRIED)
            async def call(method, path):
                async with session.request(method, path) as response:
                    response.raise_for_status()
                    return True

            yield call

    return opened


def with_aio_request(patience):
    import aio_request  # noqa: PLC0415

    deadlines = import_module("aio_request.deadline")

    @asynccontextmanager
    async def opened(wire):
        # Its deadline is one for all attempts; here, too, the time is virtual.
        now = asyncio.get_running_loop().time
        deadlines.perf_counter = now
        deadlines.perf_counter_elapsed = lambda started: now() - started
        async with bare(patience).build() as session:
            wire.end(session)
            transport = aio_request.AioHttpTransport(session)
            client = aio_request.setup(
                transport=transport, endpoint=URL_OF_IT, timeout=patience
            )

            async def call(method, path):
                request = aio_request.request(method, path)
                async with client.request(request) as response:
                    return response.status < 400

            yield call

    return opened


def ours(patience):
    return client_of(
        lambda: SessionBuilder.standard(
            URL_OF_IT, attempt_timeout=patience, logging=None
        )
    )


_PEERS = {
    "aiohttp-retry": (with_aiohttp_retry, "aiohttp_retry"),
    "stamina": (with_stamina, "stamina"),
    "aio-request": (with_aio_request, "aio_request"),
}


def clients():
    """Return all that can be had here, and the names of those that cannot."""
    found = {
        NONE: lambda patience: client_of(lambda: bare(patience)),
        "three retries": lambda patience: retrying(patience, attempts=4),
    }
    missing = [
        name for name, (_, module) in _PEERS.items() if find_spec(module) is None
    ]
    found |= {name: made for name, (made, _) in _PEERS.items() if name not in missing}
    found |= {
        "AWS SDKs, standard mode": lambda patience: retrying(
            patience, attempts=3, strategy=StandardRetryStrategy
        ),
        "Finagle's budget, three retries": lambda patience: retrying(
            patience, attempts=4, limiter=FinagleBudget
        ),
        OURS: ours,
    }
    return found, missing
