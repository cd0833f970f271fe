"""Metrics of circuit breakers, retry budgets and limits, heard by an SDK."""

import gc
import sys
import threading
import weakref
from functools import partial

import pytest
from chains import in_threads, log_of, retrying, session
from heard import Heard
from opentelemetry import metrics

from aioretry_smithy import (
    CircuitBreaker,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RetryBudget,
)
from aioretry_smithy._telemetry.instruments import tracer_from
from aioretry_smithy._telemetry.series import WeakRegistry
from aioretry_smithy.opentelemetry import (
    CircuitBreakerMetrics,
    ConcurrencyLimitMetrics,
    RetryBudgetMetrics,
)


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


def test_circuit_breaker_shows_its_state(heard, states):
    """A state is 1 and the others are 0, from the first event on."""
    listener = CircuitBreakerMetrics(heard.meter_provider)
    orders = CircuitBreaker("orders", listeners=[listener])
    stock = CircuitBreaker("stock", listeners=[listener])
    assert {} == states()

    orders.on_success()
    assert {"orders": ["closed"]} == states()
    assert 4 == len(heard.points("aioretry_smithy.circuit_breaker.state"))

    stock.enter_state(CircuitState.FORCED_OPEN)
    assert None is stock.try_request()
    orders.on_success()
    assert {"orders": ["closed"], "stock": ["forced_open"]} == states()
    name = "aioretry_smithy.circuit_breaker.name"
    assert [({name: "stock"}, 1)] == heard.points(
        "aioretry_smithy.circuit_breaker.rejections"
    )

    # It stays, collection after collection, though nothing happens.
    assert {"orders": ["closed"], "stock": ["forced_open"]} == states()
    stock.enter_state(CircuitState.CLOSED)
    state = "aioretry_smithy.circuit_breaker.state"
    assert {"orders": ["closed"], "stock": ["closed"]} == states()
    assert [
        ({name: "stock", state: "forced_open"}, 1),
        ({name: "stock", state: "closed"}, 1),
    ] == heard.points("aioretry_smithy.circuit_breaker.transitions")


def test_last_circuit_breaker_of_a_name_is_shown(heard, states):
    """Of two with one name the one that had the last event, and one state alone."""
    listener = CircuitBreakerMetrics(heard.meter_provider)
    before = CircuitBreaker("orders", listeners=[listener])
    before.enter_state(CircuitState.OPEN)
    rebuilt = CircuitBreaker("orders", listeners=[listener])
    rebuilt.on_success()

    assert {"orders": ["closed"]} == states()
    assert 4 == len(heard.points("aioretry_smithy.circuit_breaker.state"))
    del before
    gc.collect()
    assert {"orders": ["closed"]} == states()


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
        at_once(
            [partial(each.enter_state, CircuitState.OPEN) for each in breakers],
        )

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


def test_two_listeners_of_one_provider(heard, states):
    """Events of a circuit breaker reach the provider once, by either listener."""
    breakers = [
        CircuitBreaker(name, listeners=[CircuitBreakerMetrics(heard.meter_provider)])
        for name in ("orders", "stock")
    ]
    for breaker in breakers:
        breaker.on_success()

    assert {"orders": ["closed"], "stock": ["closed"]} == states()
    assert 8 == len(heard.points("aioretry_smithy.circuit_breaker.state"))


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


async def test_retry_budget_is_measured(heard):
    """Tokens follow what is paid, and refusals are counted."""
    limiter = RetryBudget.per_host(
        capacity=2,
        brake_after=None,
        listeners=[
            RetryBudgetMetrics(heard.meter_provider),
            RetryBudgetMetrics(metrics.NoOpMeterProvider()),
        ],
    )
    await log_of(session([503, 503, 503], retrying(limiter=limiter), heard.decorator()))

    name = {"aioretry_smithy.retry_budget.name": "localhost:80"}
    assert [(name, 0.0)] == heard.points("aioretry_smithy.retry_budget.tokens")
    assert [(name, 1)] == heard.points("aioretry_smithy.retry_budget.refusals")
    assert "limiter" == heard.call.attributes["aioretry_smithy.stop_reason"]


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


def test_concurrency_limit_that_is_gone_shows_nothing(heard, of_limits):
    """An entry that a bounded map has thrown out is not shown for ever."""
    listener = ConcurrencyLimitMetrics(heard.meter_provider)
    limit = ConcurrencyLimit.fixed(1, name="orders")
    listener.on_limit_changed(limit)
    assert [{"orders": 0}] == of_limits("in_flight")

    del limit
    gc.collect()
    assert [{}] == of_limits("in_flight")


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
