"""Sessions with a chain: built, decorated in place, described and taken apart."""

from __future__ import annotations

import asyncio
import gc
import math
import weakref
from dataclasses import dataclass
from unittest.mock import AsyncMock, MagicMock, Mock, NonCallableMagicMock

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import Opaque

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    DecoratingClient,
    HttpClient,
    HttpRequest,
    LoggingClient,
    RequestLog,
    RetryConfig,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    decorate,
    new_response,
    undecorate,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

FAILSAFE = RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.fixed(1.0)))
NEVER = RetryingClient.new_decorator(RetryStrategy.never())


class Inner(DecoratingClient):
    pass


class Outer(DecoratingClient):
    pass


def naming(name, seen):
    @client_decorator
    async def note(delegate, ctx, request):
        seen.append(name)
        response = await delegate.execute(ctx, request)
        seen.append(name.upper())
        return response

    return note


async def test_last_decorator_is_outermost():
    """Requests pass from the last one added to the first, responses the other way."""
    seen = []
    builder = (
        SessionBuilder("http://h")
        .decorator(ScriptedTransport([200]))
        .decorator(naming("inner", seen))
        .decorator(naming("outer", seen))
    )
    async with builder.build() as session:
        await session.get("/")

    assert ["outer", "inner", "INNER", "OUTER"] == seen


@pytest.mark.parametrize(
    "verb", ["get", "options", "head", "post", "put", "patch", "delete"]
)
async def test_every_verb_goes_through_the_chain(verb):
    """There is no way around the chain."""
    transport = ScriptedTransport([200, 200])
    async with SessionBuilder("http://h").decorator(transport).build() as session:
        await getattr(session, verb)("/")
        async with session.request(verb, "/") as response:
            pass

    assert [verb.upper()] * 2 == [request.method for request in transport.requests]
    assert verb.upper() == response.method


async def test_arguments_go_to_the_session():
    """The builder takes all arguments that a session takes."""
    builder = SessionBuilder(
        "http://h/", headers={"A": "1"}, timeout=ClientTimeout(sock_read=2.0)
    )
    async with builder.build() as session:
        assert "1" == session.headers["A"]
        assert ClientTimeout(sock_read=2.0) == session.timeout


async def test_builder_builds_more_than_one():
    """Sessions of one builder share what the decorators hold, and nothing else."""
    breaker = CircuitBreaker()
    builder = SessionBuilder().decorator(CircuitBreakerClient.new_decorator(breaker))
    builder.decorator(Inner)
    async with builder.build() as first, builder.build() as second:
        assert unwrap(first, Inner) is not unwrap(second, Inner)
    builder.decorator(Outer)
    async with builder.build() as third:
        assert unwrap(third, Outer) is not None

    assert unwrap(first, Outer) is None


async def test_response_timeout_is_the_total():
    """It is exact, and the other limits of the session stay."""
    timeout = ClientTimeout(total=1.0, connect=2.0, sock_read=3.0, sock_connect=4.0)
    async with SessionBuilder(timeout=timeout).response_timeout(10).build() as session:
        assert session.timeout == ClientTimeout(
            total=10,
            connect=2.0,
            sock_read=3.0,
            sock_connect=4.0,
            ceil_threshold=math.inf,
        )


@pytest.mark.parametrize(
    "seconds", [0, -1.0, math.inf, math.nan, True, "10", ClientTimeout(), 10**400]
)
def test_bad_response_timeouts_are_refused(seconds):
    """A time that is no limit at all is refused where it is given."""
    with pytest.raises(ValueError, match=r"^seconds: .*\(expected: finite and > 0, or"):
        SessionBuilder().response_timeout(seconds)


def test_response_timeout_needs_a_client_timeout():
    """A total cannot be put into a number; the session would refuse that anyway."""
    with pytest.raises(ValueError, match=r"^timeout: 5 \(expected: an aiohttp.Client"):
        SessionBuilder(timeout=5).response_timeout(10.0)
    with pytest.raises(ValueError, match=r"^timeout: '5' \(expected: an aiohttp.Clie"):
        SessionBuilder(timeout="5").response_timeout(10.0)


@client_decorator
async def note(delegate, ctx, request):
    return await delegate.execute(ctx, request)


def test_description_lists_the_chain():
    """From the outside in, a line each, with the settings that count."""
    builder = (
        SessionBuilder("https://u:p@example.com/")
        .decorator(Opaque)
        .decorator(Inner)
        .decorator(naming("x", []))
        .decorator(RetryingClient.new_decorator(RetryConfig(RetryStrategy.never())))
        .response_timeout(10.0)
    )
    lines = builder.describe().splitlines()

    assert lines[0].startswith("RetryingClient(strategy=RetryStrategy.never(), max_to")
    assert [
        "  note",
        "    Inner",
        "      Opaque",
    ] == lines[1:4]
    assert lines[4] == (
        "        aiohttp.ClientSession(base_url='https://****@example.com/',"
        " response_timeout=10.0)"
    )


async def test_session_is_undecorated():
    """The class and the attributes are as before."""
    async with aiohttp.ClientSession() as session:
        before = dict(vars(session))
        decorate(session, FAILSAFE)
        assert before != vars(session)

        assert session is undecorate(session)
        assert before == vars(session)
        assert session is undecorate(session)
        assert before == vars(session)
        decorate(session, FAILSAFE)


@pytest.mark.parametrize("decorators", [[], [Inner], [FAILSAFE]])
async def test_decorating_twice_is_refused(decorators):
    """Two chains on one session would retry within retries."""
    async with aiohttp.ClientSession() as session:
        decorate(session, *decorators)
        with pytest.raises(
            ValueError, match=r"^session: .*expected: not decorated yet; undecorate"
        ):
            decorate(session, Inner)
    async with SessionBuilder().build() as built:
        with pytest.raises(ValueError, match=r"expected: not decorated yet"):
            decorate(built, Inner)


@pytest.mark.parametrize("session", [None, "http://h", object(), SessionBuilder()])
def test_only_sessions_can_be_decorated(session):
    """A builder in the place of its session is found out at once."""
    with pytest.raises(ValueError, match=r"^session: .*\(expected: an aiohttp.ClientS"):
        decorate(session, Inner)


@pytest.mark.parametrize("mock", [Mock, MagicMock, AsyncMock, NonCallableMagicMock])
@pytest.mark.parametrize(
    "use", [decorate, undecorate, lambda session: unwrap(session, Inner)]
)
def test_mock_of_a_session_is_none(use, mock):
    """It passes for an instance of the class, and has nothing to put a chain into."""
    name = mock.__name__
    expected = rf"an aiohttp.ClientSession, not a {name} that looks like one"
    with pytest.raises(ValueError, match=rf"^session: .*\(expected: {expected}\)$"):
        use(mock(spec=aiohttp.ClientSession))


async def test_calls_under_way_end_as_they_began():
    """A session may be undecorated while a call waits for its next attempt."""
    async with aiohttp.ClientSession("http://h") as session:
        decorate(session, ScriptedTransport([503, 200]), FAILSAFE)
        call = asyncio.create_task(session.get("/"))
        await asyncio.sleep(0.5)
        undecorate(session)

        assert 200 == (await call).status


@pytest.mark.parametrize(
    ("decorator", "resends"),
    [
        (FAILSAFE, False),
        (Inner, True),
        (NEVER, False),
    ],
    ids=["retrying", "no retrying client", "never"],
)
async def test_hidden_resend_is_off_where_we_may_retry(decorator, resends):
    """One attempt is one request, also where only a block of code asks for retries."""
    async with aiohttp.ClientSession() as session:
        decorate(session, decorator)
        assert resends is session._retry_connection
        undecorate(session)

        assert True is session._retry_connection


async def test_resend_that_was_off_stays_off():
    """A test client's session is given back as it came."""
    async with aiohttp.ClientSession() as session:
        session._retry_connection = False
        decorate(session, FAILSAFE)
        undecorate(session)

        assert False is session._retry_connection


async def test_clients_are_found_in_a_session():
    """The outermost of a class, or None; a plain session has none."""
    builder = SessionBuilder().decorator(Inner).decorator(FAILSAFE).decorator(Outer)
    async with builder.build() as session:
        assert isinstance(unwrap(session, Inner), Inner)
        assert 10 == unwrap(session, RetryingClient).config.max_total_attempts
        assert unwrap(session, Outer) is unwrap(session, DecoratingClient)
        assert unwrap(session, LoggingClient) is None
    async with aiohttp.ClientSession() as session:
        assert unwrap(session, DecoratingClient) is None


@pytest.mark.parametrize(
    "client", [FAILSAFE, "RetryingClient", DecoratingClient[HttpClient], None]
)
async def test_what_is_no_class_is_not_looked_for(client):
    """A decorator in the place of its class, for one."""
    async with SessionBuilder().decorator(FAILSAFE).build() as session:
        with pytest.raises(ValueError, match="^client: .*a class of clients, such as"):
            unwrap(session, client)


async def test_masks_of_the_chain_are_those_of_the_log():
    """A name that a logging client hides is hidden in every view."""
    logging = LoggingClient.new_decorator(
        sensitive_headers=["X-Own"], sensitive_query_parameters=["code"]
    )
    builder = SessionBuilder("http://h").decorator(ScriptedTransport([200]))
    async with builder.decorator(logging).build() as session:
        response = await session.get("/?code=S3CR3T", headers={"X-Own": "S3CR3T"})
    log = RequestLog.of(response)

    assert "S3CR3T" not in log.render()
    assert "S3CR3T" not in str(log.to_dict())


async def test_mask_of_another_meaning_is_left_alone():
    """A decorator may call something of its own ``mask``."""

    class Masking(DecoratingClient):
        mask = "*"

    builder = SessionBuilder("http://h").decorator(ScriptedTransport([200]))
    async with builder.decorator(Masking).build() as session:
        assert 200 == (await session.get("/")).status


async def test_waiting_call_keeps_its_session():
    """``await ClientSession().get(url)`` works as it does without a chain."""

    @client_decorator
    async def pause(delegate, ctx, request):
        gc.collect()
        await asyncio.sleep(1.0)
        return await delegate.execute(ctx, request)

    @client_decorator
    async def answer(delegate, ctx, request):
        await alive().close()
        return new_response(request)

    session = decorate(aiohttp.ClientSession(), answer, pause)
    alive = weakref.ref(session)
    call = session.get("http://h/")
    del session

    assert 200 == (await call).status


async def test_session_is_freed_at_once():
    """A chain does not keep its session for the garbage collector to find."""
    gc.disable()
    try:
        session = aiohttp.ClientSession()
        decorate(session, ScriptedTransport([200]), FAILSAFE)
        await session.get("http://h/")
        await session.close()
        freed = weakref.ref(session)
        del session

        assert freed() is None
    finally:
        gc.enable()


async def test_call_of_a_session_that_is_gone():
    """A bound method outlives nothing; it says that the session is closed."""
    session = aiohttp.ClientSession()
    decorate(session, Inner)
    request = vars(session)["_request"]
    await session.close()
    del session
    gc.collect()

    with pytest.raises(RuntimeError, match="Session is closed"):
        await request("GET", "http://h/")


async def test_function_in_the_place_of_the_request_stays_in_use():
    """A decorator put on by hand is inside ours."""
    seen = []
    async with aiohttp.ClientSession() as session:

        async def by_hand(method, url, **options):
            seen.append((method, url))
            return new_response(HttpRequest(method, url))

        vars(session)["_request"] = by_hand
        decorate(session, DecoratingClient)
        await session.get("http://localhost/")
        undecorate(session)
        await session.get("http://localhost/")

        assert [("GET", "http://localhost/")] * 2 == seen
        assert by_hand is vars(session)["_request"]


@dataclass(slots=True)
class Slotted:
    """A decorator without a dictionary, and without our base class."""

    delegate: HttpClient

    async def execute(self, ctx, request):
        return await self.delegate.execute(ctx, request)


async def test_chain_goes_on_behind_a_decorator_with_slots():
    """The clients inside it are found, and found twice where there may be one."""
    retrying = RetryingClient.new_decorator(RetryStrategy.failsafe())
    builder = SessionBuilder().decorator(retrying).decorator(Slotted)
    async with builder.build() as session:
        assert unwrap(session, RetryingClient) is not None
        assert not session._retry_connection

    with pytest.raises(ValueError, match="at most one RetryingClient"):
        builder.decorator(retrying).build()


async def test_undecorate_leaves_a_function_that_was_put_over_ours():
    """To take it away silently would undo another library's work."""
    async with aiohttp.ClientSession() as session:
        decorate(session, DecoratingClient)
        ours = session._request
        vars(session)["_request"] = print
        with pytest.raises(ValueError, match=r"session._request: "):
            undecorate(session)

        vars(session)["_request"] = ours
        undecorate(session)

        assert "_request" not in vars(session)


async def test_undecorate_works_where_our_function_was_deleted():
    """A mock that cleaned up too much leaves the rest to be restored."""
    async with aiohttp.ClientSession() as session:
        decorate(session, RetryingClient.new_decorator(RetryStrategy.failsafe()))
        del session._request
        undecorate(session)

        assert session._retry_connection
        assert unwrap(session, RetryingClient) is None
