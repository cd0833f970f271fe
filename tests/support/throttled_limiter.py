"""A rate limiter that was throttled."""

from aioretry_smithy.smithy import ClientRateLimiter


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
