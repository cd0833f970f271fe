"""Bugs below aiohttp, in hooks and in middlewares: who is blamed, and what follows."""

import asyncio
from types import SimpleNamespace

import aiohappyeyeballs
import aiohttp
import pytest
from chains import SAFELY, connected, log_of, retrying, telling
from fault_server import FaultServer

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RetryBudget,
    RetrySafety,
    decorate,
    is_unprocessed,
    retry_safety,
)

ERRORS = [
    RuntimeError("the handler is closed"),
    AttributeError("'NoneType' object has no attribute 'write'"),
    AssertionError(),
]
every_error = pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)


class OwnError(Exception):
    """An exception of an application."""


@pytest.fixture
async def server():
    async with FaultServer() as server:
        yield server


def in_module(name, error, then):
    """Make a function of a library that fails at first."""
    variables = {"__name__": name, "errors": [error], "then": then}
    source = """async def connect(*given, **options):
        if errors:
            raise errors.pop()
        return await then(*given, **options)"""
    exec(source, variables)
    return variables["connect"]


@pytest.fixture
def broken(monkeypatch):
    """Let connecting fail once, in a module of a name."""

    def broken(name, error):
        connect = in_module(name, error, aiohappyeyeballs.start_connection)
        library = SimpleNamespace(**vars(aiohappyeyeballs))
        library.start_connection = connect
        monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs", library)

    return broken


def guarded(breaker, *outside):
    return CircuitBreakerClient.new_decorator(breaker), *outside


def counted(breaker):
    return breaker.event_count.success, breaker.event_count.failure


class TestLibraries:
    """A bug of a library is a failed connection, and nobody's mistake."""

    @every_error
    @pytest.mark.parametrize("name", ["uvloop.loop", "asyncio.events", "aiohttp.x"])
    async def test_request_is_sent_again(self, server, broken, name, error):
        """Of any method: nothing was sent; the breaker counts it."""
        broken(name, error)
        breaker = CircuitBreaker("shop")
        client = connected(server.url, *guarded(breaker, retrying(SAFELY)))
        log = await log_of(client, "/orders", method="POST")

        assert (2, 200) == (log.total_attempts, log.response_status)
        assert (1, 1) == counted(breaker)
        assert False is log.children[0].sent

    async def test_what_it_is(self, server, broken):
        """By the functions that strategies ask."""
        broken("asyncio.events", RuntimeError("the handler is closed"))
        async with connected(server.url, *guarded(CircuitBreaker("shop"))) as client:
            with pytest.raises(RuntimeError) as caught:
                await client.get("/orders")

        assert RetrySafety.YES is retry_safety(caught.value)
        assert True is is_unprocessed(caught.value)

    async def test_same_error_of_the_caller_s_own_resolver(self, server, broken):
        """That is a mistake, and costs one attempt."""
        broken("shop.connections", RuntimeError("no such table"))
        breaker = CircuitBreaker("shop")
        client = connected(server.url, *guarded(breaker, retrying(SAFELY)))
        log = await log_of(client, "/orders")

        assert (1, (0, 0)) == (log.total_attempts, counted(breaker))

    @pytest.mark.parametrize(
        "error", [ValueError("no"), type("OwnError", (RuntimeError,), {})("own")]
    )
    async def test_other_classes_stay_what_they_are(self, server, broken, error):
        """A ValueError of aiohttp is about what it was given."""
        before = retry_safety(error)
        broken("aiohttp.connector", error)
        async with connected(server.url, *guarded(CircuitBreaker("shop"))) as client:
            with pytest.raises(type(error)):
                await client.get("/orders")

        assert before is retry_safety(error)

    async def test_what_aiohttp_meets_in_a_request_is_a_mistake(
        self, server, monkeypatch
    ):
        """A middleware may have put anything into it."""
        start = "async def start(self, connection):\n    self.nothing"
        variables = {"__name__": "aiohttp.client_reqrep"}
        exec(start, variables)
        monkeypatch.setattr(aiohttp.ClientResponse, "start", variables["start"])
        log = await log_of(connected(server.url, retrying(SAFELY)), "/orders")

        assert AttributeError is type(log.response_cause)
        assert 1 == log.total_attempts

    @every_error
    async def test_while_a_request_is_written(self, server, monkeypatch, error):
        """It may have been seen: only what is idempotent is sent again."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, asyncio.SelectorEventLoop):
            pytest.skip("patches a transport of asyncio")
        kind = asyncio.selector_events._SelectorSocketTransport
        variables = {"__name__": "asyncio.x", "errors": [], "then": kind.write}
        source = """def write(self, data):
            if errors and b" /orders " in data:
                raise errors.pop()
            return then(self, data)"""
        exec(source, variables)
        monkeypatch.setattr(kind, "write", variables["write"])
        attempts = {}
        for method in ("GET", "POST"):
            variables["errors"].append(type(error)(*error.args))
            log = await log_of(
                connected(server.url, retrying(SAFELY)), "/orders", method=method
            )
            attempts[method] = log.total_attempts

        assert {"GET": 2, "POST": 1} == attempts


def test_session_of_another_event_loop_is_a_mistake():
    """It fails in the library, and would again."""
    made = []

    async def make():
        made.append(decorate(aiohttp.ClientSession(), retrying(SAFELY)))

    async def use():
        with pytest.raises(RuntimeError) as caught:
            await made[0].get("http://localhost:9/")
        await made[0].close()
        return caught.value

    with asyncio.Runner() as runner:
        runner.run(make())
    with asyncio.Runner() as runner:
        error = runner.run(use())

    assert RetrySafety.NO is retry_safety(error)


HOOKS = ["on_connection_create_start", "on_request_headers_sent", "on_request_end"]


def hooked(name, error):
    """Make a configuration whose hook fails."""
    trace = aiohttp.TraceConfig()

    async def hook(session, context, parameters):
        raise error

    getattr(trace, name).append(hook)
    return trace


class Refusing:
    """A middleware that fails by itself, before or after it was answered."""

    def __init__(self, error, *, after=False):
        self.error, self.after = error, after

    async def __call__(self, request, handler):
        if self.after:
            await handler(request)
        raise self.error


async def translating(request, handler):
    """Raise an exception of one's own for a failure."""
    try:
        return await handler(request)
    except aiohttp.ClientError as error:
        raise OwnError("shop") from error


async def outcome(url, **settings):
    """Return what one request counts for: circuit, budget and limit."""
    breaker, budget = CircuitBreaker("shop"), RetryBudget()
    limit = ConcurrencyLimit.aimd(initial=10)
    retry = retrying(SAFELY, limiter=budget, max_total_attempts=2)
    client = connected(
        url,
        ConcurrencyLimitingClient.new_decorator(limit),
        *guarded(breaker, retry),
        **settings,
    )
    log = await log_of(client, "/orders")
    return log, (breaker.event_count.failure, budget.failures_in_a_row, limit.limit)


class TestHooksAndMiddlewares:
    """What they raise by their own fault counts against no server."""

    @pytest.mark.parametrize("name", HOOKS)
    @pytest.mark.parametrize(
        "error",
        [
            OwnError("no metric"),
            KeyError("metric"),
            RuntimeError("closed"),
            ExceptionGroup("tasks", [OwnError("no metric")]),
        ],
    )
    async def test_hook_that_fails(self, server, name, error):
        """Whenever it is called."""
        log, against = await outcome(server.url, trace_configs=[hooked(name, error)])

        assert type(error) is type(log.response_cause)
        assert (0, 0, 10) == against

    @pytest.mark.parametrize("after", [False, True])
    @pytest.mark.parametrize(
        "error",
        [
            OwnError("no key"),
            KeyError("key"),
            ExceptionGroup("one", [OwnError("a")]),
            ExceptionGroup("two", [OwnError("a"), OwnError("b")]),
        ],
        ids=str,
    )
    async def test_middleware_that_fails(self, server, error, after):
        """Also after an answer."""
        middleware = Refusing(error, after=after)
        log, against = await outcome(server.url, middlewares=[middleware])

        assert type(error) is type(log.response_cause)
        assert (0, 0, 10) == against

    @pytest.mark.parametrize(
        "error",
        [
            aiohttp.ServerDisconnectedError(),
            ConnectionResetError("reset"),
            TimeoutError("late"),
            ExceptionGroup("two", [OwnError("a"), TimeoutError("late")]),
            telling(OwnError("broken"), fault="server"),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_what_speaks_of_a_server_counts(self, server, error):
        """A connection that was cut, a timeout, Smithy's retry information."""
        _, against = await outcome(server.url, middlewares=[Refusing(error)])

        assert 2 == against[0]

    async def test_what_stands_for_a_failure_of_the_server_counts(self, unheard):
        """A middleware that translates has met the failure."""
        log, against = await outcome(unheard, middlewares=[translating])

        assert OwnError is type(log.response_cause)
        assert 2 == against[0]

    async def test_failure_of_an_earlier_call_is_none_of_this_one(self, server):
        """It is the context of all that is raised while it is handled."""
        try:
            raise aiohttp.ServerDisconnectedError
        except aiohttp.ClientError:
            _, against = await outcome(
                server.url, middlewares=[Refusing(OwnError("no key"))]
            )

        assert (0, 0, 10) == against

    async def test_middleware_that_asks_another_server(self, server, unheard):
        """What is wrong there, by no exception of aiohttp, is not wrong here."""

        async def fetch_key(request, handler):
            async with aiohttp.ClientSession(middlewares=[Refusing(error)]) as other:
                await other.get(unheard)

        error = OwnError("no key")
        _, against = await outcome(server.url, middlewares=[fetch_key])

        assert (0, 0, 10) == against


@pytest.fixture
async def unheard():
    """The URL of a port where nobody listens any more."""
    async with FaultServer() as server:
        return server.url
