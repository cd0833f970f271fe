"""Limiters of retries, costs of requests, and limiters that are throttled."""

import asyncio

import aiohttp
from chains import URL, now

from aioretry_smithy import RateLimit, RetryLimiter
from aioretry_smithy.smithy import ClientRateLimiter


class Recording(RetryLimiter):
    """Gives so many permits, at once or after a while, and notes what it heard."""

    def __init__(self, permits=99, takes=0.0):
        self.permits = permits
        self.takes = takes
        self.heard = []
        self.causes = []

    def acquire(self, ctx, cause):
        self.heard.append(f"acquire {ctx.attempt} {type(cause).__name__}")
        self.causes.append(cause)
        self.permits -= 1
        return self.slowly() if self.takes else self.permits >= 0

    async def slowly(self):
        await asyncio.sleep(self.takes)
        return self.permits >= 0

    def release(self, ctx):
        self.heard.append(f"release {ctx.attempt}")

    def on_retry_end(self, ctx):
        self.heard.append(f"end {ctx.attempt}")

    def on_success(self, ctx):
        self.heard.append(f"success {ctx.attempt}")

    def on_failure(self, ctx, cause):
        self.heard.append(f"failure {ctx.attempt} {type(cause).__name__}")


class Unhurried(RetryLimiter):
    """Gives each permit at once, and takes its time over what it is told."""

    def __init__(self):
        self.heard = []

    def acquire(self, ctx, cause):
        return True

    async def release(self, ctx):
        self.heard.append("release")
        await asyncio.sleep(1.0)

    async def on_retry_end(self, ctx):
        self.heard.append("end")
        await asyncio.sleep(1.0)


def weight(ctx, request):
    """Return the weight that a request says it has."""
    return float(request.headers.get("weight", 1))


def tokens(rate=1.0, burst=10, **settings):
    return RateLimit(rate, burst=burst, cost=weight, **settings)


async def end_of(client, weight=1, url=URL):
    """Make a call; return its end and what it brought."""
    try:
        async with client.get(url, headers={"weight": f"{weight}"}) as response:
            return now(), response.status
    except (aiohttp.ClientError, TimeoutError) as error:
        return now(), type(error)


async def ends_of(client, *weights):
    return await asyncio.gather(*(end_of(client, each) for each in weights))


def level_of(limit):
    """Return the tokens of a limit; less than 0 is a debt."""
    bucket = limit._line.rule
    return bucket.burst - max(0.0, bucket._full_at - now()) / bucket._interval


def throttled_limiter(clock, rate):
    """Return a rate limiter that is empty and grants *rate* attempts a second.

    The clock is at its next half second then.
    """
    limiter = ClientRateLimiter(clock=clock)
    for _ in range(round(rate / 1.12) - 1):
        limiter.update(throttled=False)
    clock.now += 0.5
    limiter.update(throttled=True)
    return limiter
