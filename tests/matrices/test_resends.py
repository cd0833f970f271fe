"""What breaks on a used connection is sent again: whole, within limits, unseen."""

import asyncio
import contextlib
from itertools import cycle

import aiohttp
import pytest
from body_kinds import KINDS, Content
from chains import connected, retrying
from fault_server import End, Fault, Read, answer, cut, response
from pairs import each_pair
from pool_server import (
    BARE,
    BREAKS,
    CHAINS,
    CLOSE,
    CONTINUE,
    NEVER,
    RESET,
    RETRYING,
    SOON,
    PoolServer,
    each,
    stale_pool,
    status_of,
    warm,
)

from aioretry_smithy import (
    IDEMPOTENT_METHODS,
    CircuitBreaker,
    CircuitBreakerClient,
    ContentPreviewingClient,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    RetryStrategy,
    client_decorator,
    is_unprocessed,
    request_options,
)
from aioretry_smithy.smithy import StandardRetryStrategy, sdk_headers

BROKEN = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)


# Which requests


HARMLESS = [(method, {}, None) for method in sorted(IDEMPOTENT_METHODS)]
HARMLESS += [("POST", {"Idempotency-Key": "7"}, None), ("POST", {}, True)]


@each(NEVER)
@pytest.mark.parametrize(("method", "headers", "idempotent"), HARMLESS)
async def test_harmless_request_is_sent_again(method, headers, idempotent, make):
    """Also where nothing is retried; by its method, a key or an option."""
    async with stale_pool(make) as (server, session):
        with request_options(idempotent=idempotent):
            call = session.request(method, "/x", data=b"body", headers=headers)
            status = await status_of(call)

    assert 200 == status
    assert [b"body", b"body"] == server.bodies


@each_pair(method=["POST", "PATCH", "LOCK"], how=BREAKS, chain=CHAINS)
async def test_other_request_is_not_sent_again(method, how, chain):
    """The server may have done what it asked for."""
    async with stale_pool(CHAINS[chain], how=BREAKS[how]) as (server, session):
        with pytest.raises(BROKEN):
            await session.request(method, "/x", data=b"once")

    assert [b"once"] == server.bodies


@each(CHAINS)
async def test_request_that_is_said_not_to_be_idempotent_is_sent_once(make):
    """A GET may do something."""
    async with stale_pool(make) as (server, session):
        with request_options(idempotent=False), pytest.raises(BROKEN):
            await session.get("/x")

    assert 1 == len(server.to("/x"))


@each(CHAINS)
async def test_request_is_sent_again_where_retries_are_off(make, monkeypatch):
    """No call of a suite is lost either that bare aiohttp would have saved."""
    monkeypatch.setenv("AIORETRY_SMITHY_NO_RETRIES", "1")
    async with stale_pool(make) as (server, session):
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 2 == len(server.to("/x"))


# How often


@each(NEVER)
@pytest.mark.parametrize(("stale", "expected"), [(1, 200), (3, 200), (4, None)])
async def test_request_is_sent_again_three_times_at_most(stale, expected, make):
    """Then the break is the outcome of the attempt."""
    async with stale_pool(make, stale) as (server, session):
        status = await status_of(session.get("/x"))

    assert expected == status
    assert min(4, stale + 1) == len(server.to("/x"))


@each(RETRYING)
@pytest.mark.parametrize(("stale", "counts"), [(5, "000011"), (10, "00001111222")])
async def test_stale_connections_do_not_cost_the_call(stale, counts, make):
    """Each attempt uses up four of them; the next goes on, with its number."""
    async with stale_pool(make, stale) as (server, session):
        status = await status_of(session.get("/x"))

    told = [request.header("armeria-retry-count") for request in server.to("/x")]
    assert 200 == status
    assert [*counts] == [count.decode() or "0" for count in told]


# Which connections


@each(NEVER)
async def test_fresh_connection_that_breaks_after_a_stale_one_counts(make):
    """A server that breaks all connections gets no third request."""
    async with stale_pool(make) as (server, session):
        server.scripts["/x"] = [RESET, RESET]
        with pytest.raises(BROKEN):
            await session.get("/x")

    assert [2, 1] == [request.place for request in server.to("/x")]


@each(NEVER)
async def test_connection_that_is_never_reused_cannot_be_stale(make):
    """``force_close`` makes each one fresh."""
    connector = aiohttp.TCPConnector(force_close=True)
    async with stale_pool(make, 2, connector=connector) as (server, session):
        server.scripts["/x"] = [RESET]
        status = await status_of(session.get("/x"))

    assert status is None
    assert 1 == len(server.to("/x"))


async def test_server_may_have_seen_what_is_refused_when_it_is_sent_again():
    """The first request arrived, so the call was not unprocessed."""
    strategy = RetryStrategy.on_unprocessed(SOON)
    make = lambda url: connected(url, retrying(strategy))  # noqa: E731
    async with stale_pool(make) as (server, session), server.closed_port():
        with pytest.raises(aiohttp.ClientConnectorError) as e:
            await session.get("/x")

    log = RequestLog.of(e.value)
    assert not is_unprocessed(e.value)
    assert ("no_retry", 2) == (log.stop_reason, log.total_attempts)
    assert log.sent


ONCE = {
    "``FormData`` with an async generator",
    "async generator",
    "``aiohttp.StreamReader``",
    "``asyncio.StreamReader``",
    "pipe",
    "``AsyncIterablePayload``",
}
"""What can be read once."""

UNKNOWN = {"``Payload`` subclass of your own", "async iterable that starts afresh"}
"""What a bare session believes to be harmless, on some aiohttp, and we do not."""


@pytest.fixture(scope="module")
def content_path(tmp_path_factory):
    """A file to send."""
    path = tmp_path_factory.mktemp("bodies") / "file.txt"
    path.write_text("0123456789" * 3000)
    return path


async def put(make, path, kind, how=RESET):
    """Send a body on a stale connection; return how it ended, and what arrived."""
    with contextlib.ExitStack() as stack:
        content = Content(path.read_bytes(), path, stack)
        async with stale_pool(make, how=how) as (server, session):
            options = KINDS[kind](content)
            status = await status_of(session.put("/x", **options))
            return status, [bytes(each.body) for each in server.to("/x")]


@pytest.mark.parametrize(
    ("kind", "chain"),
    [
        *((kind, "standard") for kind in KINDS),
        *zip(KINDS, cycle([name for name in CHAINS if name != "standard"])),
    ],
)
async def test_body_is_sent_again_whole_or_not_at_all(kind, chain, content_path):
    """Nearly every kind that a bare session saves, and some that it cuts."""
    status, bodies = await put(CHAINS[chain], content_path, kind)

    assert 1 == len({*bodies})
    if kind in ONCE | UNKNOWN:
        assert (None, 1) == (status, len(bodies))
    else:
        assert (200, 2) == (status, len(bodies))


EXPECTING = {
    "before a 100": cut(read=Read.HEAD, end=End.RESET),
    "after a 100": cut(CONTINUE, read=Read.HEAD, end=End.RESET),
    "closed after a 100": cut(CONTINUE, read=Read.HEAD, end=End.CLOSE),
    "after the body": Fault(Read.WHOLE, end=End.RESET, send=()),
}


@each(BARE | CHAINS)
@pytest.mark.parametrize("how", EXPECTING.values(), ids=EXPECTING)
async def test_body_that_waits_for_leave_does_not_hang(how, make):
    """``expect100=True`` waits again."""
    async with stale_pool(make, how=how) as (server, session):
        call = session.put("/x", data=b"whole", expect100=True)
        status = await status_of(call)

    expected = [request.header("Expect") for request in server.to("/x")]
    assert 200 == status
    assert [b"100-continue"] * 2 == expected
    assert b"whole" == server.bodies[-1]


@pytest.mark.skipif(not hasattr(aiohttp, "UploadTracker"), reason="a newer aiohttp")
@each(CHAINS)
async def test_tracked_upload_is_sent_again_by_aiohttp(make):
    """As by a bare session, and without a log."""
    tracker = aiohttp.UploadTracker()
    options = {"data": b"whole", "upload_tracker": tracker}
    async with (
        stale_pool(make) as (server, session),
        session.put("/x", **options) as got,
    ):
        log = RequestLog.of(got)

    assert 200 == got.status
    assert [b"whole", b"whole"] == server.bodies
    assert 1 == log.total_attempts


STALE = "stale_connection"


def counts(server, header="armeria-retry-count"):
    """Return a header of all requests, in order."""
    return [request.header(header).decode() for request in server.to("/x")]


def sources(log):
    """Return why there was another request after each."""
    return [child.delay_source for child in log.children]


def failsafe(*inside, **settings):
    """Make what makes sessions, with plain retries around other decorators."""
    chain = (*inside, retrying(RetryStrategy.failsafe(SOON), **settings))
    return lambda url: connected(url, *chain)


async def test_requests_that_a_decorator_sends_side_by_side_have_a_log_each():
    """None that is under way is taken for one that broke."""

    @client_decorator
    async def race(delegate, ctx, request):
        racers = [asyncio.create_task(delegate.execute(ctx, request)) for _ in range(2)]
        first, *_ = await asyncio.gather(*racers)
        return first

    async with stale_pool(failsafe(race), 4) as (_, session):
        async with session.get("/x") as got:
            log = RequestLog.of(got)
        sent_again = [child for child in log.children if child.delay_source == STALE]

    assert 200 == log.response_status
    assert sent_again
    assert all(isinstance(child.response_cause, BROKEN) for child in sent_again)
    assert all(child.is_complete for child in log.children)


async def test_attempt_keeps_its_number_when_it_is_sent_again():
    """The header counts attempts, and so do decorators and strategies."""
    seen, answered = [], []

    @client_decorator
    async def note(delegate, ctx, request):
        seen.append(ctx.attempt)
        try:
            return await delegate.execute(ctx, request)
        finally:
            answered.append(ctx.log.response_status)

    make = failsafe(note, max_total_attempts=2)
    async with stale_pool(make) as (server, session):
        seen.clear()
        answered.clear()
        server.scripts["/x"] = [answer(503)]
        async with session.get("/x") as got:
            log = RequestLog.of(got)

    assert ["", "", "1"] == counts(server)
    assert [STALE, "backoff", None] == sources(log)
    assert 3 == log.total_attempts
    assert ([1, 2], [503, 200]) == (seen, answered)


async def test_own_header_of_the_caller_stays():
    """A first attempt is sent again with the value that it had."""
    async with stale_pool(failsafe()) as (server, session):
        headers = {"armeria-retry-count": "7"}
        status = await status_of(session.get("/x", headers=headers))

    assert 200 == status
    assert ["7", "7"] == counts(server)


async def test_header_of_the_sdks_counts_attempts_too():
    """A request that is sent again is the same attempt of the same call."""
    strategy = StandardRetryStrategy(max_attempts=2)
    chain = (sdk_headers, retrying(strategy))
    async with stale_pool(lambda url: connected(url, *chain)) as (server, session):
        server.scripts["/x"] = [answer(503)]
        status = await status_of(session.get("/x"))

    attempts = [told.partition(";")[0] for told in counts(server, "amz-sdk-request")]
    assert 200 == status
    assert ["attempt=1", "attempt=1", "attempt=2"] == attempts
    assert 1 == len({*counts(server, "amz-sdk-invocation-id")})


def session_with(*chain):
    """Make what makes sessions."""
    return lambda url: connected(url, *chain)


async def test_open_circuit_is_not_asked_for_what_is_sent_again():
    """A half-open one has let the trial through, which may take four requests."""
    breaker = CircuitBreaker(minimum_request_threshold=0, circuit_open_window=0.01)
    inside = CircuitBreakerClient.new_decorator(breaker)
    chain = session_with(inside, retrying(RetryStrategy.never()))
    async with stale_pool(chain, 0) as (server, session):
        assert 200 == await status_of(session.get("/x"))
        server.scripts["/x"] = [answer(503)] * 3
        for _ in range(3):
            await status_of(session.get("/x"))
        opened = breaker.state
        server.scripts.clear()
        await asyncio.sleep(0.02)
        server.leave_stale()
        status = await status_of(session.get("/x"))

    assert ("OPEN", "CLOSED") == (opened.name, breaker.state.name)
    assert 200 == status


async def test_rate_is_not_used_up():
    """What is sent again needs no other turn."""
    limit = RateLimit(1, per=1000.0, burst=2)
    inside = RateLimitingClient.new_decorator(limit, timeout=0.01)
    chain = session_with(inside, retrying(RetryStrategy.never()))
    async with stale_pool(chain) as (server, session):
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 2 == len(server.to("/x"))


async def test_decorator_that_sends_twice_has_each_of_them_sent_again():
    """Each time its own connection may be stale."""

    @client_decorator
    async def twice(delegate, ctx, request):
        first = await delegate.execute(ctx, request)
        await first.read()
        server.leave_stale()
        return await delegate.execute(ctx, request)

    chain = session_with(twice, retrying(RetryStrategy.never()))
    async with stale_pool(chain, 0) as (server, session):
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 3 == len(server.to("/x"))


async def test_content_is_previewed_of_the_answer():
    """The log has the body of the request that counts."""
    chain = session_with(
        ContentPreviewingClient.new_decorator(100), retrying(RetryStrategy.never())
    )
    answered = response(200, b"answered", "Content-Type: text/plain")
    async with stale_pool(chain) as (server, session):
        server.scripts["/x"] = [Fault(send=(answered,))]
        async with session.put("/x", data="sent") as got:
            await got.read()
        log = RequestLog.of(got)

    previews = [child.request_content_preview for child in log.children]
    assert 200 == got.status
    assert ["sent", "sent"] == previews
    assert "answered" == log.children[-1].response_content_preview


NOTHING = retrying(RetryStrategy.never())


@pytest.fixture
async def server():
    async with PoolServer() as running:
        yield running


async def log_after_a_resend(server, *decorators, path="/orders"):
    """Make a call that meets a stale connection, and return its log."""
    async with connected(server.url, *decorators) as session:
        await warm(server, session, 1)
        server.leave_stale(CLOSE)
        async with session.get(path) as response:
            await response.read()
    return RequestLog.of(response)


async def test_span_of_the_call_counts_one_attempt_and_has_an_event(server):
    """What is sent again is no attempt, but one can see when it happened."""
    pytest.importorskip("opentelemetry.sdk")
    from heard import Heard  # noqa: PLC0415

    heard = Heard()
    await log_after_a_resend(server, heard.decorator(), NOTHING, heard.decorator())
    call, (*_, attempt) = heard.spans()[-2], heard.attempts

    assert 1 == call.attributes["aioretry_smithy.attempts"]

    assert [("aioretry_smithy.resend", {"aioretry_smithy.attempt": 1})] == [
        (event.name, dict(event.attributes)) for event in call.events
    ]

    assert "http.request.resend_count" not in attempt.attributes
