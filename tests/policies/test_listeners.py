"""Listeners that a thing refuses, since it would never await their methods."""

from __future__ import annotations

from functools import partial

import pytest

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerListener,
    ConcurrencyLimit,
    ConcurrencyLimitListener,
    EndpointGroup,
    EndpointGroupListener,
    RetryBudget,
    RetryBudgetListener,
    RetryConfig,
    RetryListener,
    RetryStrategy,
)


async def later(*arguments):
    raise AssertionError("nobody awaits it")


PLAIN = [
    (lambda it: CircuitBreaker(listeners=[it]), CircuitBreakerListener),
    (lambda it: RetryBudget(listeners=[it]), RetryBudgetListener),
    (lambda it: RetryBudget.per_host(listeners=[it]), RetryBudgetListener),
    (lambda it: ConcurrencyLimit.fixed(1, listeners=[it]), ConcurrencyLimitListener),
    (lambda it: ConcurrencyLimit.aimd(listeners=[it]), ConcurrencyLimitListener),
    (lambda it: EndpointGroup.of("http://a", listener=it), EndpointGroupListener),
]


@pytest.mark.parametrize(
    ("make", "kind", "method"),
    [(*each, name) for each in PLAIN for name in vars(each[1]) if name[:3] == "on_"],
)
def test_asynchronous_method_is_refused(make, kind, method):
    """It would be called, and what it returns thrown away."""
    listener = type("Lazy", (kind,), {method: later})()
    expected = rf"^listeners?: .*Lazy.* \(expected: with a plain {method}\(\)\)$"
    with pytest.raises(ValueError, match=expected):
        make(listener)


def test_listener_of_retries_is_awaited():
    """Its method may do as it likes."""
    listener = type("Lazy", (RetryListener,), {"on_retry": later})()

    config = RetryConfig(RetryStrategy.never(), listeners=[listener])

    assert (listener,) == config.listeners


def test_partial_of_a_plain_function_will_do():
    """Whatever can be called and is over then."""
    listener = CircuitBreakerListener()
    listener.on_state_changed = partial(print, end="")

    assert CircuitBreaker(listeners=[listener])
