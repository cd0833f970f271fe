"""Circuits that are waited at, what they tell, and servers that fail for a while."""

import asyncio

import aiohttp
from chains import URL, now
from fake_responses import unending

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRuleWithContent,
)
from aioretry_smithy.testing import ScriptedTransport


class Diary(CircuitBreakerListener):
    """A listener that notes what it hears, and what the circuit breaker says then."""

    def __init__(self):
        self.entries = []

    def on_state_changed(self, circuit_breaker, state):
        self.entries.append((circuit_breaker.state, state))

    def on_event_count_updated(self, circuit_breaker, event_count):
        self.entries.append((event_count.success, event_count.failure))

    def on_request_rejected(self, circuit_breaker):
        self.entries.append("rejected")


def fail(breaker, times):
    """Let requests fail."""
    for _ in range(times):
        breaker.on_failure(breaker.try_request())


def is_busy(content):
    return content is not None and content.startswith(b"busy")


def busy(**conditions):
    """Return a rule by which a body that says so is a failure."""
    return CircuitBreakerRuleWithContent(on_content=is_busy, **conditions)


def noting(seen, **conditions):
    """Return the same rule, which keeps what it is shown."""
    return CircuitBreakerRuleWithContent(
        on_content=lambda content: seen.append(content) or is_busy(content),
        **conditions,
    )


def guarded(breaker, rules, **settings):
    return CircuitBreakerClient.new_decorator(breaker, rules, **settings)


def silent(ctx, request):
    """Answer with a body that begins and never ends."""
    return unending(request, start=b"bu")


class RestartingServer:
    """Fails until a time, then answers; knows when it was asked.

    Args:
        back_at: When it is there.
        failure: A status, or an exception.
        took: Seconds to a failure.
        answers_in: Seconds to an answer.
    """

    def __init__(self, back_at, failure=503, took=0.0, answers_in=0.0):
        self.back_at = back_at
        self.failure = failure
        self.took = took
        self.answers_in = answers_in
        self.asked = []

    def transport(self, most=100):
        """Return what asks it so many times at most."""
        return ScriptedTransport([self._answer] * most)

    async def _answer(self, ctx, request):
        self.asked.append(round(now(), 3))
        is_there = now() >= self.back_at
        await asyncio.sleep(self.answers_in if is_there else self.took)
        return 200 if is_there else self.failure


def breaker_of(window=1.0, kind=CircuitBreaker, **settings):
    """Make a circuit breaker that opens at the first failure."""
    settings = {"consecutive_failures": 1, "circuit_open_window": window} | settings
    return kind("orders", **settings)


def waiting_at(breaker, seconds=5.0, **settings):
    """Let requests wait at a circuit for so many seconds."""
    return CircuitBreakerClient.new_decorator(
        breaker, wait_for_ready=seconds, **settings
    )


async def end_of(client, at=0.0, **options):
    """Make a call at a time; return its end and what it brought."""
    await asyncio.sleep(at - now())
    try:
        async with client.get(URL, **options) as response:
            return round(now(), 3), response.status
    except (aiohttp.ClientError, OSError) as error:
        return round(now(), 3), type(error)


def timers():
    """Return how many timers the loop has that were not cancelled."""
    loop = asyncio.get_running_loop()
    return sum(not each.cancelled() for each in loop._scheduled)
