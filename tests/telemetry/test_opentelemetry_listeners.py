"""Metrics of circuit breakers, retry budgets and limits, heard by an SDK."""

import gc
import sys
import threading
import weakref
from functools import partial

import pytest
from chains import in_threads, session
from heard import Heard
from opentelemetry import metrics

from aioretry_smithy import (
    CircuitBreaker,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    Endpoint,
    EndpointGroup,
    RetryBudget,
)
from aioretry_smithy._telemetry.instruments import tracer_from
from aioretry_smithy._telemetry.series import WeakRegistry
from aioretry_smithy.opentelemetry import (
    CircuitBreakerMetrics,
    ConcurrencyLimitMetrics,
    OpenTelemetryMetrics,
    RetryBudgetMetrics,
)

PREFIX = "aioretry_smithy."


@pytest.fixture
def states(heard):
    """A function that returns the states by circuit breaker, where they are 1."""

    def collect():
        shown = {}
        for attributes, value in heard.points("aioretry_smithy.circuit_breaker.state"):
            present = shown.setdefault(
                attributes["aioretry_smithy.circuit_breaker.name"], []
            )
            if value == 1:
                present.append(attributes["aioretry_smithy.circuit_breaker.state"])
        return shown

    return collect


@pytest.fixture
def _threads_take_turns():
    """Let threads change as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def at_once(functions):
    """Run each function in a thread of its own."""
    pending = iter(functions)

    def run():
        next(pending)()

    in_threads(run, len(functions))


@pytest.mark.slow
@pytest.mark.usefixtures("_threads_take_turns")
@pytest.mark.parametrize("shared", [True, False], ids=["one", "one each"])
def test_first_events_of_many_threads_are_all_heard(shared):
    """Threads may race to a provider: its instruments are made once and whole."""
    for _ in range(40):
        heard = Heard()
        listeners = [CircuitBreakerMetrics(heard.meter_provider)] * 8
        if not shared:
            listeners = [CircuitBreakerMetrics(heard.meter_provider) for _ in range(8)]
        breakers = [
            CircuitBreaker(f"b{number}", listeners=[listener])
            for number, listener in enumerate(listeners)
        ]
        at_once([partial(each.enter_state, CircuitState.OPEN) for each in breakers])

        assert 8 == heard.total("aioretry_smithy.circuit_breaker.transitions")
        assert 8 == heard.total("aioretry_smithy.circuit_breaker.state")


def note_tracer(tracer, found):
    found.append(tracer.get())


# The SDK takes its own filter out and puts it in again each time.
@pytest.mark.filterwarnings("ignore:.*You should use InstrumentationScope")
@pytest.mark.usefixtures("_threads_take_turns")
def test_first_spans_of_many_threads_are_all_heard():
    """No thread finds a tracer that another one is about to find."""
    for _ in range(40):
        tracer = tracer_from(Heard().tracer_provider)
        found = []
        at_once([partial(note_tracer, tracer, found)] * 8)

        assert None not in found


@pytest.mark.usefixtures("_threads_take_turns")
def test_states_are_collected_while_circuit_breakers_come_and_go():
    """An SDK asks in a thread of its own, whatever happens in others meanwhile."""
    shown = WeakRegistry()
    kept = [CircuitBreaker(f"k{number}") for number in range(500)]
    for each in kept:
        shown.add(each)
    asked = threading.Event()

    def come_and_go():
        while not asked.is_set():
            shown.add(CircuitBreaker("b"))

    def ask():
        try:
            for _ in range(200):
                assert 500 <= len(shown.all()) <= 501
        finally:
            asked.set()

    at_once([come_and_go, ask])


def test_circuit_breaker_that_was_open_before_anybody_listened(heard, states):
    """A rejection is an event too, so the state that led to it shows."""
    providers = [metrics.NoOpMeterProvider(), heard.meter_provider]
    listeners = [CircuitBreakerMetrics(provider) for provider in providers]
    breaker = CircuitBreaker("orders", listeners=listeners[:1])
    breaker.enter_state(CircuitState.OPEN)
    breaker.on_success()
    breaker.try_request()
    assert {} == states()

    listeners[1].on_request_rejected(breaker)
    assert {"orders": ["open"]} == states()


def test_attributes_of_things_have_names_of_their_own(heard):
    """Of each metric, with those of an endpoint where they are asked for."""
    told = OpenTelemetryMetrics(heard.meter_provider, by_endpoint=True)
    breaker = CircuitBreaker(listeners=[told.circuit_breakers])
    breaker.enter_state(CircuitState.OPEN)
    breaker.try_request()
    limit, budget = ConcurrencyLimit.fixed(1), RetryBudget()
    told.concurrency_limits.on_refused(limit, None)
    told.retry_budgets.on_retry_refused(budget, None)
    endpoint = Endpoint("http://a")
    group = EndpointGroup.of(endpoint)
    told.endpoint_groups.on_ejected(group, endpoint, "unhealthy", 1.0)
    breaker_name, state = "circuit_breaker.name", "circuit_breaker.state"
    group_name = "endpoint_group.name"

    assert {
        "circuit_breaker.rejections": {breaker_name},
        "circuit_breaker.state": {breaker_name, state},
        "circuit_breaker.transitions": {breaker_name, state},
        **{
            f"concurrency_limit.{each}": {"concurrency_limit.name"}
            for each in ("in_flight", "limit", "pending", "refusals")
        },
        "ejections": {group_name, "endpoint", "ejection.reason"},
        "endpoints": {group_name, "endpoint", "endpoint.state"},
        "retry_budget.refusals": {"retry_budget.name"},
        "retry_budget.tokens": {"retry_budget.name"},
    } == {
        name.removeprefix(PREFIX): {
            attribute.removeprefix(PREFIX)
            for attributes, _ in heard.points(name)
            for attribute in attributes
        }
        for name in heard.metrics()
    }


@pytest.fixture
def of_limits(heard):
    """A function that returns values of the metrics of limits by their names."""

    def collect(*names):
        prefix = "aioretry_smithy.concurrency_limit"
        return [
            {
                attributes[f"{prefix}.name"]: value
                for attributes, value in heard.points(f"{prefix}.{name}")
            }
            for name in names
        ]

    return collect


async def test_function_that_knows_a_limit_is_not_asked_by_the_sdk(heard, of_limits):
    """It may be none that another thread can call; what it said last is shown."""
    asked = []
    limit = ConcurrencyLimit.fixed(
        lambda: asked.append(1) or 5,
        name="orders",
        listeners=[ConcurrencyLimitMetrics(heard.meter_provider)],
    )
    async with session([200], ConcurrencyLimitingClient.new_decorator(limit)) as client:
        await client.get("http://a/")
    before = len(asked)

    assert [{"orders": 5}] == of_limits("limit")
    assert before == len(asked)


def test_metrics_of_limits_do_nothing_without_an_sdk():
    """The API alone keeps nothing."""
    listener = ConcurrencyLimitMetrics(metrics.NoOpMeterProvider())
    limit = ConcurrencyLimit.fixed(1)
    listener.on_limit_changed(limit)
    listener.on_refused(limit, None)
    shown = weakref.ref(limit)

    del limit
    gc.collect()
    assert shown() is None


@pytest.mark.parametrize(
    "listener", [CircuitBreakerMetrics, ConcurrencyLimitMetrics, RetryBudgetMetrics]
)
def test_listeners_refuse_what_is_no_provider(listener):
    """A provider is checked where the listener is made."""
    with pytest.raises(ValueError, match="^meter_provider: 7"):
        listener(7)
