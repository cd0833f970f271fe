"""Limits of a call: aiohttp's own, or one that was set through us."""

import asyncio
import contextlib
import math

import pytest
from aiohttp import ClientSession, ClientTimeout
from aiohttp.helpers import sentinel
from chains import decorated, now, retrying
from yarl import URL

from aioretry_smithy import (
    AttemptTimeoutError,
    DecoratingClient,
    HttpRequest,
    ResponseTimeoutError,
    SessionBuilder,
    client_decorator,
    decorate,
    new_response,
    request_options,
)

SILENCE = 1000.0
"""Seconds after which the server answers."""

LIMIT = ClientTimeout(total=10.0, sock_connect=4.0)
BARE = {"logging": None, "circuit_breaker": None}


def ours_by_builder(*decorators):
    return decorated(SessionBuilder().response_timeout(10.0), *decorators).build()


def ours_by_standard(*decorators):
    builder = SessionBuilder.standard(response_timeout=10.0, retrying=None, **BARE)
    return decorated(builder, *decorators).build()


def ours_by_timeout_of_standard(*decorators):
    builder = SessionBuilder.standard(timeout=LIMIT, retrying=None, **BARE)
    return decorated(builder, *decorators).build()


def own_of_builder(*decorators):
    return decorated(SessionBuilder(timeout=LIMIT), *decorators).build()


def exact_of_builder(*decorators):
    timeout = ClientTimeout(total=10.0, ceil_threshold=math.inf)
    return decorated(SessionBuilder(timeout=timeout), *decorators).build()


def own_of_session(*decorators):
    return decorate(ClientSession(timeout=LIMIT), *decorators)


def default_of_builder(*decorators):
    return decorated(SessionBuilder(), *decorators).build()


def default_of_session(*decorators):
    return decorate(ClientSession(), *decorators)


def none_of_ours(*decorators):
    return decorated(
        SessionBuilder(timeout=LIMIT).response_timeout(None), *decorators
    ).build()


OURS = [ours_by_builder, ours_by_standard, ours_by_timeout_of_standard]
OWN = [own_of_builder, exact_of_builder, own_of_session]
DEFAULT = [default_of_builder, default_of_session]
LIFTED = [None, 0, -1.0, ClientTimeout(total=0), ClientTimeout(total=-1)]
"""Timeouts by which a request says that it has no limit."""

SILENT = [ClientTimeout(), ClientTimeout(sock_read=60, connect=2)]
"""Timeouts of a request that leave the whole call alone."""


@pytest.fixture(autouse=True)
def timeouts(monkeypatch):
    """Let a silent server be asked by what keeps time as aiohttp does."""
    seen = []

    async def _request(self, method, url, **options):
        timeout = options.get("timeout", sentinel)
        if timeout is sentinel:
            timeout = self._timeout
        elif not isinstance(timeout, ClientTimeout):
            timeout = ClientTimeout(total=timeout)
        seen.append(timeout)
        total = timeout.total
        async with asyncio.timeout(total if total and total > 0 else None):
            await asyncio.sleep(SILENCE)
        return new_response(HttpRequest(method, URL(url)))

    monkeypatch.setattr(ClientSession, "_request", _request)
    return seen


async def seconds(session, **options):
    """Make one call and say how long it took, or how long until it failed."""
    started = now()
    async with session:
        with contextlib.suppress(TimeoutError):
            await session.get("http://h/", **options)
    return now() - started


@pytest.mark.slow
@pytest.mark.parametrize("make", [*OURS, *OWN])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 10.0),
        ({"timeout": sentinel}, 10.0),
        ({"timeout": 5}, 5.0),
        ({"timeout": 20.0}, 20.0),
        ({"timeout": ClientTimeout(total=5)}, 5.0),
        ({"timeout": ClientTimeout(total=20, sock_read=60)}, 20.0),
        *(({"timeout": timeout}, SILENCE) for timeout in LIFTED),
    ],
    ids=str,
)
async def test_request_with_a_total_or_none_has_its_own_limit(make, options, expected):
    """Whosever limit the session's is."""
    assert expected == await seconds(make(DecoratingClient), **options)


@pytest.mark.parametrize("given", SILENT)
@pytest.mark.parametrize("make", OURS)
async def test_request_without_a_total_does_not_lift_our_limit(timeouts, make, given):
    """Its other limits hold all the same."""
    assert 10.0 == await seconds(make(DecoratingClient), timeout=given)
    (used,) = timeouts
    assert (given.connect, given.sock_read, given.sock_connect) == (
        used.connect,
        used.sock_read,
        used.sock_connect,
    )


@pytest.mark.parametrize("given", SILENT)
@pytest.mark.parametrize("make", [*OWN, *DEFAULT, none_of_ours])
async def test_request_without_a_total_replaces_what_is_aiohttps(timeouts, make, given):
    """As without a chain: a download by ``sock_read`` has no limit of its own."""
    assert SILENCE == await seconds(make(DecoratingClient), timeout=given)
    assert [given] == timeouts


@pytest.mark.parametrize("make", DEFAULT)
@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 300.0), ({"timeout": 5}, 5.0), ({"timeout": None}, SILENCE)],
)
async def test_default_is_that_of_aiohttp(make, options, expected):
    """Five minutes, for requests that say nothing."""
    assert expected == await seconds(make(DecoratingClient), **options)


@pytest.mark.slow
@pytest.mark.parametrize("given", [*LIFTED, *SILENT, 5, ClientTimeout(total=5)])
@pytest.mark.parametrize("make", [*OURS, *OWN, *DEFAULT])
async def test_limit_of_an_attempt_is_lifted_by_no_request(timeouts, make, given):
    """It is the retrying client's; the request's other limits stay."""
    once = retrying(0.0, attempt_timeout=3.0, max_total_attempts=1)
    sock_read = getattr(given, "sock_read", None)

    assert 3.0 == await seconds(make(once), timeout=given)
    assert [(3.0, sock_read)] == [(each.total, each.sock_read) for each in timeouts]


@client_decorator
async def lose_time(delegate, ctx, request):
    await asyncio.sleep(0.3)
    return await delegate.execute(ctx, request)


@pytest.mark.parametrize(
    ("limit", "error"), [(None, AttemptTimeoutError), (0.25, ResponseTimeoutError)]
)
@pytest.mark.parametrize("attempt_timeout", [0.0005, 0.001, 0.2])
async def test_attempt_whose_time_is_lost_before_it_is_sent_is_not_sent(
    timeouts, attempt_timeout, limit, error
):
    """However short it was: a millisecond is not lost, but nothing goes out late."""
    once = retrying(0.0, attempt_timeout=attempt_timeout, max_total_attempts=1)
    builder = SessionBuilder().response_timeout(limit)
    async with decorated(builder, lose_time, once).build() as session:
        with pytest.raises(error):
            await session.get("http://h/")

    assert [] == timeouts


@pytest.mark.parametrize("given", SILENT)
@pytest.mark.parametrize(
    ("makers", "expected"), [(OURS, 10.0), (OWN, 15.0), (DEFAULT, 15.0)]
)
async def test_attempts_go_on_until_the_limit_of_the_call(makers, expected, given):
    """Or to the last of five, where the request has lifted it."""
    for make in makers:
        session = make(retrying(0.0, attempt_timeout=3.0, max_total_attempts=5))

        assert expected == await seconds(session, timeout=given)


@pytest.mark.slow
@pytest.mark.parametrize("given", [*LIFTED, *SILENT, 5])
@pytest.mark.parametrize("make", [*OURS, *OWN, *DEFAULT])
async def test_limit_of_a_block_is_lifted_by_no_request(make, given):
    """It has precedence over all others."""
    with request_options(response_timeout=7.0):
        assert 7.0 == await seconds(make(DecoratingClient), timeout=given)
