"""Listeners that a thing refuses, since it would never await their methods."""

import asyncio
import logging
from functools import partial

import pytest
from calls import ended

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerListener,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitListener,
    EndpointGroup,
    EndpointGroupListener,
    HttpRequest,
    RetryBudget,
    RetryBudgetListener,
    RetryConfig,
    RetryListener,
    RetryStrategy,
)
from aioretry_smithy._policies.listeners import DryRun
from aioretry_smithy.testing import VirtualTimeLoop


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


EVENTS = {
    "circuit breaker": (
        CircuitBreakerListener,
        lambda them: CircuitBreaker("a", listeners=them).enter_state(CircuitState.OPEN),
    ),
    "retry budget": (
        RetryBudgetListener,
        lambda them: RetryBudget("a", listeners=them).acquire(ended(), None),
    ),
    "concurrency limit": (
        ConcurrencyLimitListener,
        lambda them: ConcurrencyLimit.fixed(1, name="a", listeners=them)._try_enter(0),
    ),
}
"""What is heard of: the kind of its listeners, and how they hear of something."""


def hearing(kind, heard, error=None):
    """Make a listener that notes that it hears, and perhaps raises then."""

    def hear(self, *arguments):
        heard.append(self)
        if error is not None:
            raise error

    methods = {name: hear for name in vars(kind) if name.startswith("on_")}
    return type("Hearing", (kind,), methods)()


@pytest.mark.parametrize("thing", EVENTS)
async def test_an_error_is_logged_and_the_others_hear(thing, caplog):
    """A broken listener breaks neither what it hears of nor its neighbours."""
    kind, act = EVENTS[thing]
    heard, error = [], RuntimeError("broken bell")
    both = hearing(kind, heard, error), hearing(kind, heard)
    act(both)

    events = len(caplog.records)
    assert [*both] * events == heard != []
    said = ("aioretry_smithy", "WARNING", f"{thing} 'a': {both[0]!r} raised", error)
    assert [said] * events == [
        (each.name, each.levelname, each.message, each.exc_info[1])
        for each in caplog.records
    ]


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


REQUEST = HttpRequest("GET", "http://shop/orders?api_key=secret")
FULL = ValueError("no place")


@pytest.fixture
def dry_run():
    return DryRun("the limit 'orders'")


def lines(caplog, level):
    """Return the messages of a level."""
    return [each.getMessage() for each in caplog.records if each.levelno == level]


async def test_each_request_is_a_line_for_debugging(dry_run, caplog):
    """It says which request, and what would have become of it; secrets are hidden."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")

    dry_run.refused(REQUEST, FULL)
    dry_run.waited(REQUEST, 0.25, "orders")

    request = f"{REQUEST!r}"
    assert [
        f"would have refused {request}: no place",
        f"would have waited 0.250 s for 'orders': {request}",
    ] == lines(caplog, logging.DEBUG)
    assert "secret" not in request


async def test_the_first_request_is_warned_of_at_once(dry_run, caplog):
    """Who forgot that a limit does not act learns of it by the first request."""
    dry_run.refused(REQUEST, FULL)

    counts = "would have refused: 1, would have waited: 0"
    assert [f"the limit 'orders' is not enforced: {counts}"] == caplog.messages


async def test_later_requests_are_warned_of_together_once_a_minute(dry_run, caplog):
    """The number is that since the last warning, this request included."""
    dry_run.waited(REQUEST, 1.0, "orders")
    for _ in range(3):
        await asyncio.sleep(20.0)
        dry_run.refused(REQUEST, FULL)
        dry_run.waited(REQUEST, 1.0, "orders")

    _, *later = lines(caplog, logging.WARNING)
    counts = "would have refused: 3, would have waited: 2, in 60 s"
    assert [f"the limit 'orders' is not enforced: {counts}"] == later


async def test_nothing_is_said_while_nothing_happens(dry_run, caplog):
    """There is no timer; what came last is in the warning of what comes next."""
    dry_run.refused(REQUEST, FULL)
    dry_run.refused(REQUEST, FULL)
    await asyncio.sleep(600.0)
    assert 1 == len(caplog.messages)

    dry_run.refused(REQUEST, FULL)

    assert caplog.messages[1].endswith("refused: 2, would have waited: 0, in 600 s")


def test_a_loop_whose_clock_is_behind_is_warned_at_once(dry_run, caplog):
    """The clocks of two event loops have nothing to do with each other."""

    async def refuse(after):
        await asyncio.sleep(after)
        dry_run.refused(REQUEST, FULL)

    for after in (1000.0, 5.0):
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(refuse(after))

    counts = "would have refused: 1, would have waited: 0"
    assert [f"the limit 'orders' is not enforced: {counts}"] * 2 == caplog.messages


def test_it_works_outside_of_an_event_loop(dry_run, caplog):
    """A circuit breaker may be asked there too."""
    dry_run.refused(REQUEST, FULL)
    dry_run.refused(REQUEST, FULL)

    assert 1 == len(caplog.messages)
