"""Calls that are hedged, what each of their requests came to, and stand-ins."""

import asyncio

import pytest
from chains import URL, now, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    HedgingClient,
    HttpRequest,
    RetryLimiter,
    capture_logs,
    client_decorator,
    new_response,
)

hedging = HedgingClient.new_decorator


def watched(status, closed):
    """Make a response that tells when it is closed."""
    response = new_response(HttpRequest("GET", URL), status)
    response.close = lambda: closed.append(status)
    return response


def stubborn(seconds, answer=202):
    """Answer so long after being given up."""

    async def respond(ctx, request):
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(9.0)
        await asyncio.sleep(seconds)
        return answer

    return respond


def sent(log):
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
    answers, *decorators, method="GET", cancel_after=None, seconds=None, **options
):
    """Make one call; return its status or its failure, when it ended, and its log."""
    with capture_logs() as logs:
        async with session(answers, *decorators, timeout=seconds) as client:
            try:
                async with asyncio.timeout(cancel_after):
                    response = await client.request(method, URL, **options)
                    outcome = response.status
            except Exception as error:
                outcome = error
            ended = round(now(), 6)
    return outcome, ended, logs[0]


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
