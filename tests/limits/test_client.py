"""The decorator that lets only so many requests be in flight at once."""

import asyncio
from contextlib import suppress
from contextvars import copy_context
from unittest import mock

import aiohttp
import pytest
from calls import http, raised, raising
from chains import URL, Scripted, after, connected, now, refused, session

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitError,
    ConcurrencyLimitingClient,
    ConcurrencyLimitListener,
    RequestLog,
    SessionBuilder,
    UnprocessedRequestError,
    is_unprocessed,
    unwrap,
)
from aioretry_smithy._context.holdings import FetchHoldings, holdings_of, is_held
from aioretry_smithy.testing import ScriptedTransport

limiting = ConcurrencyLimitingClient.new_decorator


class Samples(ConcurrencyLimit):
    """Keeps what it hears."""

    limit = 5

    def __init__(self):
        self.heard = []

    def on_sample(self, round_trip, in_flight, dropped):
        self.heard.append((round_trip, in_flight, dropped))


class Broken(ConcurrencyLimit):
    """Raises whatever it is told, and says how many there may be only once."""

    def __init__(self):
        self.answers = [2]

    @property
    def limit(self):
        return self.answers.pop()

    def on_sample(self, round_trip, in_flight, dropped):
        raise LookupError("no such sample")


async def status_of(client):
    """Make a call; return its status and its end, or what was raised."""
    try:
        async with client.get(URL) as response:
            return response.status, now()
    except aiohttp.ClientError as error:
        return type(error), now()


class TestWaiting:
    """Requests wait for a place, and only for so long."""

    async def test_a_request_waits_ten_seconds_at_most(self):
        """Then it is refused; it was not sent, and says so."""
        limit = ConcurrencyLimit.fixed(1, name="orders")
        async with session([after(11.0, 200)], limiting(limit)) as client:
            first = asyncio.create_task(status_of(client))
            await asyncio.sleep(0)
            with pytest.raises(ConcurrencyLimitError) as caught:
                await client.get(URL)

            assert 10.0 == now()
            assert (200, 11.0) == await first

        error = caught.value
        assert ("concurrency limit 'orders': no place in 10.000 s, pending: 0") == str(
            error
        )
        assert (limit, 10.0, 0) == (error.limit, error.waited, error.pending)
        assert isinstance(error, UnprocessedRequestError)
        assert is_unprocessed(error)
        log = RequestLog.of(error)
        assert (False, ConcurrencyLimitError) == (log.sent, type(log.response_cause))

    async def test_a_mock_does_not_keep_its_place(self, monkeypatch):
        """It has no body that ends."""
        mocked = mock.AsyncMock(return_value=mock.MagicMock(status=200))
        monkeypatch.setattr(aiohttp.ClientSession, "_request", mocked)
        limit = ConcurrencyLimit.fixed(1)
        async with connected(None, limiting(limit)) as client:
            await client.get(URL)

        assert 0 == limit.in_flight

    async def test_uvloop_does_not_know_when_a_timer_for_now_is_due(self, monkeypatch):
        """Its ``call_at`` returns a handle without a time where there is no wait."""
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def like_uvloop(when, *arguments, **options):
            if when <= loop.time():
                return loop.call_soon(*arguments, **options)
            return call_at(when, *arguments, **options)

        monkeypatch.setattr(loop, "call_at", like_uvloop)
        async with session([after(2.0, 200)], limiting(1, timeout=0)) as client:
            ends = await asyncio.gather(*(status_of(client) for _ in range(3)))

        assert [(200, 2.0), *[(ConcurrencyLimitError, 0.0)] * 2] == ends

    async def test_without_a_timeout_it_waits_as_long_as_it_takes(self):
        """Up to its deadline."""
        answers = [after(100.0, 200), 201]
        async with session(answers, limiting(1, timeout=None)) as client:
            ends = await asyncio.gather(status_of(client), status_of(client))

        assert [(200, 100.0), (201, 100.0)] == ends

    async def test_the_queue_has_so_many_places(self):
        """Where it is full a request is refused at once, and a listener is called."""
        heard = []

        class Diary(ConcurrencyLimitListener):
            def on_refused(self, limit, ctx):
                heard.append((limit.pending, ctx.request.method))

        limit = ConcurrencyLimit.fixed(1, listeners=[Diary()])
        answers = [after(1.0, 200), 201]
        async with session(answers, limiting(limit, max_pending=1)) as client:
            ends = await asyncio.gather(*(status_of(client) for _ in range(3)))

        assert [(200, 1.0), (201, 1.0), (ConcurrencyLimitError, 0.0)] == ends
        assert [(1, "GET")] == heard


class TestSamples:
    """Samples of requests in flight reach the limit."""

    @pytest.mark.parametrize("inside", [(), (raising,)], ids=["returned", "raised"])
    @pytest.mark.parametrize(
        ("answer", "heard"),
        [
            (200, [(2.0, 1, False)]),
            (404, [(2.0, 1, False)]),
            (500, []),
            (502, []),
            (429, [(2.0, 1, True)]),
            (503, [(2.0, 1, True)]),
            (TimeoutError(), [(2.0, 1, True)]),
            (refused(), [(2.0, 1, True)]),
            (aiohttp.ServerDisconnectedError(), [(2.0, 1, True)]),
            (ConnectionResetError(), [(2.0, 1, True)]),
            (aiohttp.ClientPayloadError(), []),
            (aiohttp.InvalidURL("http://"), []),
            (raised(503, kind=aiohttp.ClientHttpProxyError), []),
            (UnprocessedRequestError(), []),
            (ValueError("a bug"), []),
        ],
        ids=repr,
    )
    async def test_it_hears_of_what_speaks_of_the_load(self, answer, heard, inside):
        """Drops and successes, whichever way the server says so; nothing else."""
        limit = Samples()
        async with session([after(2.0, answer)], *inside, limiting(limit)) as client:
            try:
                async with client.get(URL):
                    pass
            except (aiohttp.ClientError, OSError, ValueError):
                pass

        assert heard == limit.heard
        assert 0 == limit.in_flight

    async def test_it_hears_nothing_of_a_cancelled_request(self):
        """The server may have been about to answer."""
        limit = Samples()
        async with session([after(2.0, 200)], limiting(limit)) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await client.get(URL)

        assert [] == limit.heard
        assert 0 == limit.in_flight

    async def test_a_limit_that_raises_changes_nothing_for_the_call(self, caplog):
        """It is logged, unless there is no limit to begin with."""
        async with Scripted([200], limiting(Broken())) as scripted:
            assert 200 == await scripted.get()
            with pytest.raises(IndexError):
                await scripted.get()

        raised = [record.exc_info[0] for record in caplog.records]
        assert [LookupError, IndexError] == raised


class TestDecorators:
    """One limit for all, or one for each host."""

    async def test_each_host_has_a_limit_of_its_own(self):
        """A number stands for a limit with the name of the host."""
        answers = [after(1.0, 200)] * 3
        decorator = ConcurrencyLimitingClient.new_per_host_decorator(lambda key: 1)
        async with Scripted(answers, decorator) as scripted:
            hosts = "http://a/x", "http://b/x", "http://a/x"
            await asyncio.gather(*map(scripted.get, hosts))
            limits = unwrap(scripted.session, ConcurrencyLimitingClient).limits

            assert 2.0 == now()
        assert ["b:80", "a:80"] == [limit.name for limit in limits.values()]
        assert ["b:80", "a:80"] == [*limits]

    async def test_a_request_without_a_host_goes_through(self):
        """The transport says what is wrong with it."""
        decorator = ConcurrencyLimitingClient.new_per_host_decorator(lambda key: 1)
        async with Scripted([], decorator) as scripted:
            with pytest.raises(aiohttp.InvalidURL):
                await scripted.session.get("/orders")

    @pytest.mark.parametrize("made", [0, None, "5", True])
    async def test_a_factory_that_makes_no_limit_is_found_out(self, made):
        """By the caller of the request, and in its log."""
        decorator = ConcurrencyLimitingClient.new_per_host_decorator(lambda key: made)
        async with Scripted([], decorator) as scripted:
            with pytest.raises(ValueError, match=f"^limit: {made!r} ") as caught:
                await scripted.get()

        assert ValueError is type(RequestLog.of(caught.value).response_cause)

    @pytest.mark.parametrize(
        ("argument", "options"),
        [
            ("limit", {"limit": 0}),
            ("limit", {"limit": lambda: 5}),
            ("max_pending", {"limit": 1, "max_pending": -1}),
            ("max_pending", {"limit": 1, "max_pending": 1.5}),
            ("timeout", {"limit": 1, "timeout": -1}),
            ("timeout", {"limit": 1, "timeout": float("inf")}),
        ],
    )
    def test_bad_arguments_are_refused(self, argument, options):
        """Where the decorator is made."""
        with pytest.raises(ValueError, match=f"^{argument}: "):
            limiting(**options)

    def test_a_factory_has_to_be_one(self):
        """A limit is not one."""
        with pytest.raises(ValueError, match="^factory: 5 "):
            ConcurrencyLimitingClient.new_per_host_decorator(5)

    def test_it_describes_itself(self):
        """With its limits and its queue."""

        def few(key):
            return 1

        builder = SessionBuilder().decorator(limiting(ConcurrencyLimit.aimd()))
        builder.decorator(ConcurrencyLimitingClient.new_per_host_decorator(few))
        text = builder.describe()

        assert "ConcurrencyLimitingClient(ConcurrencyLimit.aimd(initial=20" in text
        assert "few, max_pending=None, timeout=10.0)" in text
        assert "(per='host', factory=TestDecorators" in text


async def test_place_is_given_back_once():
    """What the attempt has taken a second time stays with it."""
    limit = ConcurrencyLimit.fixed(2)
    around, inside = http("http://shop/"), http("http://shop/inner")
    holdings = holdings_of(around)
    loop = around.call.loop
    one, two = (limit._try_enter(loop) for _ in "12")
    one.hold(holdings)
    two.hold(holdings)
    one.release()
    one.release()

    assert (1, True) == (limit.in_flight, is_held(inside, limit))

    two.release()

    assert (0, False) == (limit.in_flight, is_held(inside, limit))
    holdings.end()


@pytest.mark.virtual_time
@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("is_released", [True, False])
async def test_permit_that_comes_as_a_fetch_is_cancelled_is_released(
    turns, is_released
):
    """Whether the request inside the fetch had it by then or not, or was refused."""
    limit, context = ConcurrencyLimit.fixed(1), copy_context()
    loop = asyncio.get_running_loop()
    FetchHoldings().enter_in(context)
    held = limit._try_enter(loop)
    transport, decorator = ScriptedTransport([200]), limiting(limit, timeout=2.0)
    async with connected("http://shop/", transport, decorator) as session:

        async def fetch():
            async with session.get("/token"):
                pass

        task = loop.create_task(fetch(), context=context)
        await asyncio.sleep(1.0 if is_released else 2.0)
        if is_released:
            held.release()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError, ConcurrencyLimitError):
            await task
        held.release()

    assert (0, 0) == (limit.in_flight, limit.pending)


async def test_an_answer_without_a_status_keeps_no_place(monkeypatch):
    """A mock without one is closed, and its log says what was wrong."""
    mocked = mock.AsyncMock(return_value=mock.MagicMock())
    monkeypatch.setattr(aiohttp.ClientSession, "_request", mocked)
    limit = ConcurrencyLimit.fixed(1)
    async with connected(None, limiting(limit)) as client:
        with pytest.raises(TypeError) as caught:
            await client.get(URL)

    assert 0 == limit.in_flight
    mocked.return_value.close.assert_called_with()
    assert TypeError is type(RequestLog.of(caught.value).response_cause)
