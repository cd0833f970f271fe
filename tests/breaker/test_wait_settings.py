"""The setting that lets requests wait at an open circuit."""

import asyncio
import logging
import math

import pytest
from chains import Scripted, bad_argument, now

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRpcClient,
    CircuitState,
    FailFastError,
    rpc,
)

MAKERS = [
    CircuitBreakerClient.new_per_host_decorator,
    CircuitBreakerClient.new_per_method_decorator,
    CircuitBreakerClient.new_per_host_and_method_decorator,
    CircuitBreakerClient.new_per_path_decorator,
]


def breaker_of(key="orders", **settings):
    return CircuitBreaker(
        key, consecutive_failures=1, circuit_open_window=1.0, **settings
    )


@pytest.mark.parametrize("make", MAKERS)
async def test_each_kind_of_decorator_has_it(make):
    """And says so."""
    decorator = make(breaker_of, wait_for_ready=5.0)
    async with Scripted([503, 200], decorator) as scripted:
        await scripted.get()

        assert (200, 1.0) == (await scripted.get(), now())
        assert ", wait_for_ready=5.0)" in scripted.builder.describe()


@pytest.mark.parametrize("make", MAKERS)
async def test_without_it_a_request_fails_at_once(make):
    """As it was."""
    async with Scripted([503], make(breaker_of)) as scripted:
        await scripted.get()

        assert (FailFastError, 0.0) == (await scripted.get(), now())
        assert "wait_for_ready" not in scripted.builder.describe()


@pytest.mark.parametrize("value", [0, 0.0, -1.0, math.inf, math.nan, True, "5"])
@pytest.mark.parametrize(
    "make",
    [
        *MAKERS,
        lambda **given: CircuitBreakerClient.new_decorator(breaker_of(), **given),
        lambda **given: CircuitBreakerRpcClient.new_decorator(breaker_of(), **given),
    ],
)
def test_bad_ones_are_refused(make, value):
    """At once, by name."""
    with bad_argument("wait_for_ready", value, "finite and > 0, or None"):
        make(wait_for_ready=value)


class Ears(CircuitBreakerListener):
    """A listener that notes what was refused."""

    refused = 0

    def on_request_rejected(self, circuit_breaker):
        self.refused += 1


class TestDryRun:
    """What is not enforced lets nobody wait."""

    async def test_it_says_what_would_have_waited(self, caplog):
        """And sends it at once; its outcome is not counted."""
        caplog.set_level(logging.DEBUG, "aioretry_smithy")
        ears = Ears()
        breaker = breaker_of(listeners=[ears])
        decorator = CircuitBreakerClient.new_decorator(
            breaker, enforce=False, wait_for_ready=0.75
        )
        async with Scripted([503, 200, 200], decorator) as scripted:
            await scripted.get()
            assert 200 == await scripted.get()
            await asyncio.sleep(0.5)
            assert 200 == await scripted.get()

            assert (0.5, CircuitState.OPEN, 0) == (now(), breaker.state, ears.refused)
        waits = [
            record.getMessage()
            for record in caplog.records
            if record.levelno == logging.DEBUG
        ]
        request = "<HttpRequest GET http://localhost/orders>"
        assert [
            f"would have waited 0.750 s for 'orders': {request}",
            f"would have waited 0.500 s for 'orders': {request}",
        ] == waits

    async def test_it_says_what_would_have_been_refused(self, caplog):
        """After a slow failure, or where it is held open."""
        caplog.set_level(logging.DEBUG, "aioretry_smithy")
        breaker = breaker_of()
        breaker.enter_state(CircuitState.FORCED_OPEN)
        decorator = CircuitBreakerClient.new_decorator(
            breaker, enforce=False, wait_for_ready=5.0
        )
        async with Scripted([200], decorator) as scripted:
            assert 200 == await scripted.get()

        assert "would have refused <" in caplog.text

    async def test_a_trial_goes_as_ever(self):
        """When its time has come."""
        breaker = breaker_of()
        decorator = CircuitBreakerClient.new_decorator(
            breaker, enforce=False, wait_for_ready=5.0
        )
        async with Scripted([503, 200], decorator) as scripted:
            await scripted.get()
            await asyncio.sleep(1.0)
            await scripted.get()

        assert CircuitState.CLOSED is breaker.state


async def test_functions_have_one_too():
    """In the same words."""
    breaker = breaker_of()
    decorator = CircuitBreakerRpcClient.new_decorator(breaker, wait_for_ready=5.0)

    @rpc(decorator)
    async def fetch():
        return now()

    breaker.on_failure()

    assert 1.0 == await fetch()
