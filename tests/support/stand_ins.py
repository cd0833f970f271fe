"""Answers in place of a server's, and circuit breakers around them."""

from __future__ import annotations

import asyncio

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    RetryLimiter,
    client_decorator,
    new_response,
)

FALLBACK = 203
"""The status by which the tests know an answer that no server gave."""


def tripped(**settings):
    """Return a circuit that one failure has opened, and whose window has passed."""
    breaker = CircuitBreaker(
        minimum_request_threshold=1, trial_request_interval=3600.0, **settings
    )
    breaker.enter_state(CircuitState.OPEN)
    return breaker


async def half_open(**settings):
    """Return a circuit that lets one trial through."""
    breaker = tripped(circuit_open_window=1.0, **settings)
    await asyncio.sleep(1.0)
    return breaker


def guarded(breaker, **settings):
    return CircuitBreakerClient.new_decorator(breaker, **settings)


class StandIn:
    """Answers in place of the server, from the second request on."""

    def __init__(self, *answers, first=1):
        self.answers = [*answers]
        self.passed = first

    def __call__(self, delegate):
        @client_decorator
        async def answer(delegate, ctx, request):
            if self.passed or not self.answers:
                self.passed -= 1
                return await delegate.execute(ctx, request)
            made = self.answers.pop(0)
            if isinstance(made, Exception):
                raise made
            if isinstance(made, int):
                return new_response(request, made)
            return made

        return answer(delegate)


class Quiet(RetryLimiter):
    """Learns nothing."""

    def on_success(self, ctx):
        """Do nothing."""

    def on_failure(self, ctx, cause):
        """Do nothing."""
