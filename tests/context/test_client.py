"""The parts of a chain: how they are made, found and swapped."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from unittest.mock import Mock, patch

import pytest
from calls import REQUEST, begin
from chains import NOW, SAFELY, URL, retrying, session

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    ContentPreviewingClient,
    DecoratingClient,
    LoggingClient,
    RequestLog,
    RetryConfig,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
    unwrap,
)
from aioretry_smithy._context.chain import chain_of, find_client
from aioretry_smithy._context.client import OutcomeRecorder
from aioretry_smithy.testing import ScriptedTransport


class Marking(DecoratingClient):
    async def execute(self, ctx, request):
        request = request.with_header("X-Mark", "1")
        return await self.delegate.execute(ctx, request)


class Inner(DecoratingClient):
    pass


@client_decorator
async def mark(delegate, ctx, request):
    return await delegate.execute(ctx, request.with_header("X-Mark", "2"))


def test_clients_describe_themselves():
    """A class says its name, a function its own, and what has none its class."""
    delegate = ScriptedTransport([])

    async def function(delegate, ctx, request): ...

    assert "Marking" == Marking(delegate).describe()
    assert "mark" == mark(delegate).describe()
    nameless = client_decorator(functools.partial(function))
    assert "partial" == nameless(delegate).describe()


def test_function_of_a_decorator_must_be_one():
    """A decorator made of nothing would fail at the first call only."""
    with pytest.raises(ValueError, match=r"function: None \(expected: async"):
        client_decorator(None)


def test_class_of_clients_needs_no_client_decorator():
    """It is a decorator itself; the call of the constructor would fail."""
    expected = r"^function: <class '.*Marking'> \(expected: .* is a decorator itself\)$"
    with pytest.raises(ValueError, match=expected):
        client_decorator(Marking)


class Hasty(DecoratingClient):
    def execute(self, ctx, request):
        return 200


@client_decorator
def hasty(delegate, ctx, request):
    """Forget to be asynchronous."""


@client_decorator
async def lazy(delegate, ctx, request):
    yield await delegate.execute(ctx, request)


@pytest.mark.parametrize(
    ("decorator", "told"),
    [
        (Hasty, "Hasty returned a int"),
        (hasty, "hasty returned nothing"),
        (lazy, "lazy returned a async_generator"),
    ],
)
async def test_decorator_that_is_not_asynchronous_is_named(decorator, told):
    """Python would say only that an object cannot be awaited."""
    expected = f"{told} (expected: an awaitable: write async def, without yield)"
    async with session([200], decorator) as chain:
        with pytest.raises(TypeError) as caught:
            await chain.get(URL)

    assert expected == str(caught.value)
    assert expected == str(RequestLog.of(caught.value).response_cause)


class Mistaken(DecoratingClient):
    async def execute(self, ctx, request):
        raise TypeError("mine")


@client_decorator
async def mistaken(delegate, ctx, request):
    raise TypeError("mine")


@pytest.mark.parametrize("decorator", [Mistaken, mistaken])
async def test_own_type_error_of_a_decorator_is_as_it_was(decorator):
    """What it returned was awaited, so that is not what was wrong."""
    async with session([200], decorator) as chain:
        with pytest.raises(TypeError, match=r"^mine$"):
            await chain.get(URL)


def test_outermost_client_of_a_class_is_found():
    """Derived classes count, what is not there is None."""
    transport = ScriptedTransport([])
    inner = Marking(transport)
    outer = Marking(Inner(inner))

    assert outer is find_client(outer, Marking)
    assert outer is find_client(outer, DecoratingClient)
    assert transport is find_client(outer, ScriptedTransport)
    assert find_client(inner, Inner) is None


def test_chain_ends_at_a_mock():
    """A mock has a delegate for as long as one asks; nobody wants to wait for that."""
    mock = Mock()

    assert [mock] == chain_of(mock)


@pytest.mark.parametrize("delegate", [None, "itself", "text", "missing"])
def test_chain_ends_where_there_is_no_other_client(delegate):
    """A delegate that is none, or the client itself, is the end of the chain."""

    class Odd:
        __slots__ = ("delegate",)

        async def execute(self, ctx, request): ...

    odd = Odd()
    if delegate != "missing":
        odd.delegate = odd if delegate == "itself" else delegate

    assert [odd] == chain_of(odd)


RETRY = retrying(0.0)
OURS = (
    CircuitBreakerClient.new_per_host_decorator(),
    ContentPreviewingClient.new_decorator(10),
    RETRY,
    LoggingClient.new_decorator(),
)


def test_chain_of_our_own_has_no_outcome_recorder():
    """Its clients record themselves what one would record."""
    client = ScriptedTransport([])
    for decorator in (*OURS, DecoratingClient, Inner):
        client = decorator(client)
    links = []
    while client is not None:
        links.append(type(client))
        client = getattr(client, "delegate", None)

    assert OutcomeRecorder not in links
    assert 7 == len(links)


async def test_outcome_recorders_are_not_seen():
    """Neither the description of a chain nor ``unwrap()`` shows one."""
    made = []

    def decorator(delegate):
        made.append(Marking(delegate))
        return made[-1]

    builder = SessionBuilder().decorator(mark).decorator(decorator).decorator(RETRY)
    async with builder.build() as session:
        assert made[-1] is unwrap(session, Marking)
        assert unwrap(session, OutcomeRecorder) is None
    names = [line.strip().partition("(")[0] for line in builder.describe().splitlines()]

    assert ["RetryingClient", "Marking", "mark", "aiohttp.ClientSession"] == names


@pytest.mark.parametrize("outside", [[], [RETRY]], ids=["call", "attempt"])
async def test_arguments_of_the_delegate_that_were_swapped_are_told(outside):
    """By the name of the first; the caller's mistake is not retried."""

    @client_decorator
    async def swapping(delegate, ctx, request):
        return await delegate.execute(request, ctx)

    with capture_logs() as logs:
        async with session([200, 200], swapping, *outside) as client:
            with pytest.raises(ValueError, match="^ctx: .*HttpRequest .*expected: "):
                await client.get(URL)

    assert 1 == logs[0].total_attempts


async def test_client_made_by_hand_keeps_its_log_true():
    """Ours around a transport of the user's retries by the responses."""

    class Transport:
        answers = iter([503, 200])

        async def execute(self, ctx, request):
            return new_response(request, next(self.answers))

    ctx = begin()
    response = await RETRY(Transport()).execute(ctx, REQUEST)

    assert 200 == response.status
    assert [503, 200] == [child.response_status for child in ctx.log.children]


async def patched(ctx, request):
    """Stand for the execute of a client."""
    raise LookupError


async def test_patch_of_a_transport_counts_at_once():
    """A scripted transport is patched for the second call, and not for the third."""
    transport = ScriptedTransport([200, 201])
    async with session(transport, retrying()) as client:
        statuses = [(await client.get(URL)).status]
        with patch.object(transport, "execute", patched), pytest.raises(LookupError):
            await client.get(URL)
        statuses.append((await client.get(URL)).status)

    assert [200, 201] == statuses


async def test_another_delegate_counts_from_the_next_attempt_on():
    """The attempts of a call that is under way go to it, too."""
    other = ScriptedTransport([200])

    async def swap(ctx, request):
        found.delegate = other
        return 503

    async with session(ScriptedTransport([swap]), retrying(0.0)) as client:
        found = unwrap(client, RetryingClient)
        response = await client.get(URL)

    assert (200, []) == (response.status, other.unused)


class Answering:
    """A client of the user's own, which may answer with anything."""

    def __init__(self, answer):
        self.answer = answer

    async def execute(self, ctx, request):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_answer_of_another_delegate_is_recorded():
    """It is looked at as that of any client: what is no response is refused."""
    async with session([], retrying()) as client:
        unwrap(client, RetryingClient).delegate = Answering("a text")
        with pytest.raises(TypeError, match="Answering returned a str"):
            await client.get(URL)


async def test_outcome_of_the_delegate_of_a_dataclass_is_recorded():
    """A class whose constructor is made for it has its delegate recorded, too."""

    @dataclass
    class Named(DecoratingClient):
        delegate: object

    ctx, failure = begin(), LookupError()
    with pytest.raises(LookupError):
        await Named(Answering(failure)).execute(ctx, REQUEST)

    assert failure is ctx.log.response_cause


async def test_property_chooses_the_delegate_of_each_call():
    """A subclass may compute its delegate."""
    transports = [ScriptedTransport([200]), ScriptedTransport([201])]

    class Choosing(DecoratingClient):
        chosen = -1

        @property
        def delegate(self):
            self.chosen += 1
            return transports[self.chosen]

    client = object.__new__(Choosing)
    statuses = [(await client.execute(begin(), REQUEST)).status for _ in transports]

    assert [200, 201] == statuses


async def test_property_chooses_the_settings_of_each_call():
    """A subclass may compute its settings."""
    strategy = RetryStrategy.on_server_error_status(NOW)

    class Growing(RetryingClient):
        most = 1

        @property
        def config(self):
            return RetryConfig(strategy, self.most)

        @config.setter
        def config(self, config):
            pass

    transport = ScriptedTransport([503] * 3)
    client = Growing(transport, RetryConfig(strategy))
    await client.execute(begin(), REQUEST)
    client.most = 2
    await client.execute(begin(), REQUEST)

    assert [] == transport.unused


async def test_client_may_be_frozen():
    """The class of a client may refuse to be written on."""

    @dataclass(frozen=True)
    class Frozen(DecoratingClient):
        delegate: object

    client = Frozen(ScriptedTransport([200]))
    response = await client.execute(begin(), REQUEST)

    assert 200 == response.status


SAFELY_RETRIED = retrying(SAFELY)


async def test_what_fails_around_a_call_is_no_failure_of_its_attempt():
    """The attempt keeps its answer in the log."""

    class Raising(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            raise KeyError

    guarded = CircuitBreakerClient.new_decorator(CircuitBreaker(), Raising())
    async with session([200], SAFELY_RETRIED, guarded) as client:
        with pytest.raises(KeyError) as caught:
            await client.get(URL)
    log = RequestLog.of(caught.value)

    assert KeyError is type(log.response_cause)
    assert [200] == [each.response_status for each in log.children]
