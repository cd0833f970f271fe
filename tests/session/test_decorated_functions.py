"""Decorating a coroutine function, and refusing other things."""

import asyncio
import functools
import inspect
from unittest.mock import AsyncMock

import aiohttp
import pytest
from chains import NOW, now

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    ContentPreviewingClient,
    DecoratingClient,
    LoggingClient,
    LoggingRpcClient,
    RequestLog,
    RetryConfig,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    decorate,
    request_options,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport

ON_KEY_ERROR = RetryRule(exceptions=[KeyError], backoff=NOW)


async def fetch(day, *, page=1):
    """Fetch a page."""
    return day, page


async def test_decorated_function_is_called_as_before():
    """Its arguments go through, and what it returns comes back."""
    decorated = rpc(RetryingRpcClient.new_decorator(ON_KEY_ERROR))(fetch)

    assert ("monday", 2) == await decorated("monday", page=2)


def test_function_keeps_its_signature_name_and_docstring():
    """Frameworks look at all of them."""
    decorated = rpc()(fetch)

    assert inspect.signature(fetch) == inspect.signature(decorated)
    assert ("fetch", "Fetch a page.") == (decorated.__name__, decorated.__doc__)
    assert inspect.iscoroutinefunction(decorated)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [({}, "fetch"), ({"name": "reports.fetch"}, "reports.fetch")],
)
async def test_log_has_the_name_of_the_function(settings, expected):
    """The qualified one, or what was given; it has nothing that HTTP has."""
    with capture_logs() as logs:
        await rpc(**settings)(fetch)("monday")

    (log,) = logs
    assert expected == log.name
    assert log.request_method is log.request_url is log.request_headers is None
    assert log.response_status is log.response_headers is None


class Reports:
    """A class with decorated methods of each kind."""

    def __init__(self, region):
        self.region = region

    @rpc()
    async def read(self, day):
        return self.region, day

    @classmethod
    @rpc()
    async def kind(cls, day):
        return cls.__name__, day

    @staticmethod
    @rpc()
    async def plain(day):
        return day


async def test_methods_are_bound():
    """To the object, to the class, or not at all."""
    reports = Reports("eu")
    with capture_logs() as logs:
        results = [
            await reports.read("monday"),
            await Reports.kind("monday"),
            await reports.plain("monday"),
        ]

    assert [("eu", "monday"), ("Reports", "monday"), "monday"] == results
    assert ["Reports.read", "Reports.kind", "Reports.plain"] == [
        log.name for log in logs
    ]


def shouted(function):
    """Decorate as anyone might."""

    @functools.wraps(function)
    async def call(*args):
        return str(await function(*args)).upper()

    return call


async def test_functions_in_other_decorators_work():
    """Inside and outside; a partial has the name of its function."""

    @shouted
    @rpc()
    @shouted
    async def greet(name):
        return f"hello {name}"

    with capture_logs() as logs:
        greeting = await greet("you")
        page = await rpc()(functools.partial(fetch, page=3))("monday")

    assert ("HELLO YOU", ("monday", 3)) == (greeting, page)
    assert ["greet", "fetch"] == [log.name.rpartition(".")[2] for log in logs]


class Callable:
    """Counts as a coroutine function once it is marked as one."""

    async def __call__(self):
        return 5


marked = getattr(inspect, "markcoroutinefunction", lambda _: AsyncMock(return_value=5))


@pytest.mark.parametrize(
    "function", [AsyncMock(return_value=5), functools.partial(marked(Callable()))]
)
async def test_what_has_no_name_is_called_after_its_class(function):
    """A mock in the place of a function, for example."""
    with capture_logs() as logs:
        assert 5 == await rpc()(function)()

    assert logs[0].name in {"AsyncMock", "Callable"}


async def test_attribute_of_a_function_does_not_name_it():
    """Not even the one in which a partial has its function."""

    async def greet():
        return "hello"

    greet.func = "plain"
    with capture_logs() as logs:
        await rpc()(greet)()

    assert logs[0].name.endswith("greet")


def plain():
    """Return at once."""


def generator():
    """Yield at once."""
    yield


async def async_generator():
    """Yield later."""
    yield


@pytest.mark.parametrize("function", [plain, generator, async_generator, Reports, 7])
def test_what_is_no_coroutine_function_is_refused(function):
    """Where it is decorated, with what to write."""
    expected = r"^function: .*\(expected: a coroutine function, written with async def"
    with pytest.raises(ValueError, match=expected):
        rpc()(function)


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_order_of_decorators_of_methods_is_told(kind):
    """A static method is no function before the class is made."""
    expected = rf"\(expected: a coroutine function; write @{kind.__name__} above @rpc"
    with pytest.raises(ValueError, match=expected):
        rpc()(kind(fetch))


@pytest.mark.parametrize("function", [fetch, async_generator, staticmethod(fetch)])
def test_missing_parentheses_are_told(function):
    """A function in the place of the decorators is one without parentheses."""
    expected = r"^decorators: .*\(expected: decorators; write @rpc\(\) with parentheses"
    with pytest.raises(ValueError, match=expected):
        rpc(function)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"response_timeout": 0}, r"^response_timeout: 0 \(expected: finite and > 0"),
        ({"response_timeout": float("inf")}, "^response_timeout: inf"),
        ({"name": ""}, "^name: '' "),
        ({"idempotent": None}, r"^idempotent: None \(expected: True or False\)"),
    ],
)
def test_bad_arguments_are_refused_at_once(settings, expected):
    """Before any function is decorated."""
    with pytest.raises(ValueError, match=expected):
        rpc(**settings)


RETRYING = RetryingClient.new_decorator(RetryStrategy.never())
RETRYING_RPC = RetryingRpcClient.new_decorator(RetryStrategy.never())
GUARDING = CircuitBreakerClient.new_decorator(CircuitBreaker())


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        (RETRYING, "'RetryingClient' .*for functions, RetryingRpcClient"),
        (LoggingClient.new_decorator(), "'LoggingClient' .*, LoggingRpcClient"),
        (GUARDING, "'CircuitBreakerClient' .*, CircuitBreakerRpcClient"),
        (ContentPreviewingClient.new_decorator(9), r"'Con.*for functions\)$"),
        (ScriptedTransport([200]), "'ScriptedTransport' .*for functions"),
    ],
)
def test_clients_for_sessions_are_refused_around_functions(decorator, expected):
    """The message says what to write in their place."""
    with pytest.raises(ValueError, match=f"^decorator: {expected}"):
        rpc(decorator)(fetch)


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [
        (RETRYING_RPC, "'RetryingRpcClient' .*for sessions, RetryingClient"),
        (LoggingRpcClient.new_decorator(), "'LoggingRpcClient' .*, LoggingClient"),
    ],
)
async def test_clients_for_functions_are_refused_in_sessions(decorator, expected):
    """The same the other way round."""
    with pytest.raises(ValueError, match=f"^decorator: {expected}"):
        SessionBuilder().decorator(decorator).build()
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ValueError, match=f"^decorator: {expected}"):
            decorate(session, decorator)


def test_two_retrying_clients_are_refused():
    """Attempts of attempts are never meant."""
    with pytest.raises(ValueError, match="at most one RetryingRpcClient"):
        rpc(RETRYING_RPC, RETRYING_RPC)(fetch)


def test_attempt_that_may_take_longer_than_the_call_is_refused():
    """As in a session."""
    decorator = RetryingRpcClient.new_decorator(ON_KEY_ERROR, attempt_timeout=5.0)
    with pytest.raises(ValueError, match=r"attempt_timeout: 5.0 .*<= response_timeout"):
        rpc(decorator, response_timeout=4.0)(fetch)


def test_decorator_that_returns_no_client_is_refused():
    """It would fail in each call."""
    with pytest.raises(ValueError, match="one that returns an RpcClient"):
        rpc(lambda delegate: None)(fetch)


class Shifted(DecoratingClient):
    """Asks for the page after the one that the caller wants."""

    async def execute(self, ctx, request):
        page = request.kwargs.get("page", 1) + 1
        return await self.delegate.execute(ctx, request.replace(kwargs={"page": page}))


@client_decorator
async def doubled(delegate, ctx, request):
    """Answer twice."""
    return (await delegate.execute(ctx, request)) * 2


async def test_classes_and_functions_decorate_calls_too():
    """The last one is outermost; each may pass on a changed request or result."""
    seen = []

    @client_decorator
    async def seeing(delegate, ctx, request):
        seen.append((request.kwargs, repr(ctx)))
        return await delegate.execute(ctx, request)

    decorated = rpc(seeing, Shifted, doubled, name="fetch")(fetch)

    assert ("monday", 6, "monday", 6) == await decorated("monday", page=5)
    assert [({"page": 6}, "<ClientRequestContext fetch>")] == seen


async def test_client_that_is_no_class_of_ours_decorates_calls():
    """The log has the answer or the error that it gives in place of the function."""

    class Caching:
        def __init__(self, delegate):
            self.delegate = delegate

        async def execute(self, ctx, request):
            try:
                return await self.delegate.execute(ctx, request)
            except KeyError:
                return "kept"

    @rpc(Caching)
    async def failing():
        raise KeyError

    with capture_logs() as logs:
        result = await failing()

    assert ("kept", None) == (result, logs[0].response_cause)
    assert logs[0].is_complete


async def test_block_of_options_applies_to_a_call():
    """Its settings replace those of the decorators."""
    calls = []

    @rpc(RetryingRpcClient.new_decorator(ON_KEY_ERROR), response_timeout=1.0)
    async def slow():
        calls.append(now())
        await asyncio.sleep(2)
        raise KeyError

    with (
        request_options(retry=RetryConfig(ON_KEY_ERROR, 2), response_timeout=None),
        pytest.raises(KeyError),
    ):
        await slow()

    assert [0.0, 2.0] == calls


@pytest.mark.parametrize(
    ("declared", "block", "attempts"),
    [(False, None, 1), (True, None, 2), (True, False, 1), (False, True, 2)],
)
async def test_idempotent_function_may_be_called_again(declared, block, attempts):
    """``failsafe()`` asks for it; a block of options comes first."""
    failsafe = RetryStrategy.failsafe(Backoff.fixed(1.0))

    @rpc(RetryingRpcClient.new_decorator(failsafe, 2), idempotent=declared)
    async def failing():
        raise ConnectionResetError

    with request_options(idempotent=block), pytest.raises(ConnectionResetError) as it:
        await failing()

    assert attempts == RequestLog.of(it.value).total_attempts
