"""Listeners hear of retries before they are made, and break nothing."""

import asyncio
import logging
import weakref

import aiohttp
import pytest
from balanced import Fleet, call, group_of
from chains import (
    SAFELY,
    URL,
    bad_argument,
    log_of,
    log_of_cancelled,
    now,
    refused,
    retrying,
    retrying_session,
    session,
    status_and_log,
)
from functions import lookups
from limiters import Recording
from token_strategies import SCOPE, THROTTLED, adaptive

from aioretry_smithy import (
    Backoff,
    ResponseTimeoutError,
    RetryConfig,
    RetryingRpcClient,
    RetryListener,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport

SOON = RetryStrategy.on_server_error_status(Backoff.fixed(1.0))


class Diary(RetryListener):
    """Notes when it heard of what."""

    def __init__(self, takes=0.0):
        self.takes = takes
        self.heard = []

    def on_retry(self, ctx, cause, delay):
        what = ctx.log.response_status if cause is None else type(cause)
        self.heard.append((ctx.attempt, what, delay, now()))


class Slow(Diary):
    """Takes its time."""

    async def on_retry(self, ctx, cause, delay):
        super().on_retry(ctx, cause, delay)
        await asyncio.sleep(self.takes)


class Broken(RetryListener):
    """Raises."""

    def on_retry(self, ctx, cause, delay):
        raise ZeroDivisionError

    def __repr__(self):
        return "Broken()"


class BrokenLater(Broken):
    """Raises after a while."""

    async def on_retry(self, ctx, cause, delay):
        await asyncio.sleep(0.25)
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", [Diary, Slow])
async def test_hears_of_each_retry_right_after_its_attempt(kind):
    """Of statuses and exceptions, with the wait that follows; not of the end."""
    diary = kind()
    client = session([503, refused(), 200], retrying(SOON, listeners=[diary]))
    status, log = await status_and_log(client)

    assert [
        (1, 503, 1.0, 0.0),
        (2, aiohttp.ClientConnectorError, 1.0, 1.0),
    ] == diary.heard
    assert (200, 3, 2.0) == (status, log.total_attempts, log.duration)


async def test_hears_nothing_of_a_retry_that_is_not_made():
    """Because of the strategy, a limit of the call, or the limiter."""
    diary = Diary()
    limiter = Recording(permits=0)
    for settings in (
        {"max_total_attempts": 1},
        {"timeout": 0.5},
        {"limiter": limiter},
        {"strategy": RetryStrategy.never()},
    ):
        client = retrying_session(
            [503], **{"strategy": SOON} | settings, listeners=[diary]
        )
        await status_and_log(client)

    assert [] == diary.heard
    assert "acquire 1 NoneType" in limiter.heard


async def test_hears_after_the_limiter_and_the_release_of_the_response():
    """So it may use the connection, and what it does is not in vain."""
    heard, limiter, responses = [], Recording(), []

    def respond(ctx, request):
        responses.append(new_response(request, 503, body=b"busy"))
        return responses[0]

    class Looking(RetryListener):
        def on_retry(self, ctx, cause, delay):
            heard.extend([*limiter.heard, responses[0].closed])

    client = retrying_session(
        [respond, 200], SOON, limiter=limiter, listeners=[Looking()]
    )
    await status_and_log(client)

    assert ["failure 1 NoneType", "acquire 1 NoneType", True] == heard


@pytest.mark.parametrize(
    ("takes", "waited"),
    [([0.25], 1.0), ([0.5, 0.5], 1.0), ([3.0], 3.0), ([2.0, 1.5], 3.5)],
)
async def test_its_time_counts_into_the_wait(takes, waited):
    """The wait is as long as it would have been, unless listeners take longer."""
    listeners = [*map(Slow, takes)]
    client = session([503, 200], retrying(SOON, listeners=listeners))
    status, log = await status_and_log(client)

    first = log.children[0]
    assert (200, waited, waited) == (status, first.delay, log.duration)
    assert "backoff" == first.delay_source


async def test_listeners_hear_one_after_the_other():
    """In the order in which they were given."""
    slow, other = Slow(0.25), Diary()
    await status_and_log(retrying_session([503, 200], SOON, listeners=(slow, other)))

    assert [(1, 503, 1.0, 0.0)] == slow.heard
    assert [(1, 503, 1.0, 0.25)] == other.heard


async def test_deadline_is_looked_at_again():
    """It is not cut at the deadline; but after that no attempt begins."""
    limiter, failure = Recording(), refused()
    client = session(
        [failure], retrying(SOON, listeners=[Slow(5.0)], limiter=limiter), timeout=3.0
    )
    with capture_logs() as logs:
        async with client:
            with pytest.raises(ResponseTimeoutError) as caught:
                await client.get(URL)

    (log,) = logs
    assert ResponseTimeoutError is type(caught.value)
    assert (failure, 5.0) == (caught.value.__cause__, now())
    assert ("deadline", 1, 5.0) == (
        log.stop_reason,
        log.total_attempts,
        log.children[0].delay,
    )
    assert ["acquire 1 ClientConnectorError", "release 1"] == limiter.heard[-2:]


async def test_deadline_that_it_has_moved_counts():
    """It may give the call more time, as a strategy may."""

    class Generous(Slow):
        async def on_retry(self, ctx, cause, delay):
            await super().on_retry(ctx, cause, delay)
            ctx.root.set_response_timeout(10.0)

    client = retrying_session([503, 200], SOON, timeout=3.0, listeners=[Generous(5.0)])
    status, log = await status_and_log(client)

    assert (200, 5.0) == (status, log.duration)


@pytest.mark.parametrize("kind", [Broken, BrokenLater])
async def test_errors_are_reported_and_break_nothing(kind, caplog):
    """The other listeners hear, and the retry is made."""
    diary = Diary()
    listeners = [kind(), diary]
    client = session([503, 503, 200], retrying(SOON, listeners=listeners))
    status, log = await status_and_log(client)

    assert (200, 2.0) == (status, log.duration)
    assert [1, 2] == [attempt for attempt, *_ in diary.heard]
    assert [
        ("aioretry_smithy", logging.WARNING, "retrying client: Broken() raised")
    ] * 2 == caplog.record_tuples
    assert {ZeroDivisionError} == {record.exc_info[0] for record in caplog.records}


async def test_cancellation_goes_through():
    """And leaves nothing behind: no permit, no response, no attempt under way."""
    limiter = Recording()
    client = session([503], retrying(SOON, listeners=[Slow(5.0)], limiter=limiter))
    log = await log_of_cancelled(client, 0.25)

    assert ("cancelled", 1, 0.25) == (
        log.stop_reason,
        log.total_attempts,
        log.children[0].delay,
    )
    assert ["acquire 1 NoneType", "release 1"] == limiter.heard[-2:]


async def test_frames_are_there_while_it_runs_and_nothing_is_kept():
    """A listener may look at the traceback; afterwards nobody has the failure."""

    class Failure(aiohttp.ClientError):
        pass

    kept, looked = [], []

    class Looking(RetryListener):
        async def on_retry(self, ctx, cause, delay):
            kept.append(weakref.ref(cause))
            looked.append(cause.__traceback__ is not None)

    def fail(ctx, request):
        raise Failure

    listeners = [Looking(), Looking()]
    client = retrying_session([fail, 200], SOON, listeners=listeners)
    async with client, client.get(URL):
        assert [True, True] == looked
        assert {None} == {reference() for reference in kept}


async def test_what_it_puts_into_the_context_is_there_for_the_next_attempt():
    """For a decorator further in, which sends it another way."""

    class Elsewhere(RetryListener):
        def on_retry(self, ctx, cause, delay):
            ctx.attributes["proxy"] = f"http://proxy-{ctx.attempt}.example"

    @client_decorator
    async def through_proxy(delegate, ctx, request):
        proxy = ctx.attributes.get("proxy")
        return await delegate.execute(ctx, request.replace(proxy=proxy))

    transport = ScriptedTransport([refused(), 503, 200])
    client = session(transport, through_proxy, retrying(SOON, listeners=[Elsewhere()]))
    await status_and_log(client)

    assert [None, "http://proxy-1.example", "http://proxy-2.example"] == [
        request.options["proxy"] for request in transport.requests
    ]


async def test_hears_of_the_next_endpoint():
    """The retry is made at once, and elsewhere."""
    diary, fleet = Diary(), Fleet(a=refused())
    async with fleet.session(group_of("ab"), retrying(listeners=[diary])) as client:
        await call(client)

    assert "ab" == fleet.text
    assert [(1, aiohttp.ClientConnectorError, 0.0, 0.0)] == diary.heard


async def test_hears_nothing_of_the_wait_before_a_first_attempt():
    """A rate limiter holds that up; it is no retry."""
    strategy, diary = adaptive(max_attempts=1), Diary()
    await status_and_log(retrying_session([THROTTLED], strategy, listeners=[diary]))
    _, log = await status_and_log(retrying_session([200], strategy, listeners=[diary]))

    assert pytest.approx(2.0) == log.delay
    assert [] == diary.heard


async def test_wait_for_a_rate_limiter_comes_after_the_listeners():
    """It is part of the delay in the log."""
    client = retrying_session([THROTTLED, 200], adaptive(), listeners=[Slow(5.0)])
    status, log = await status_and_log(client)

    first = log.children[0]
    assert (200, 5.0, "backoff") == (status, first.delay, first.delay_source)


async def test_no_turn_of_a_rate_limiter_is_spent_after_the_deadline():
    """As no attempt follows."""
    strategy = adaptive()
    client = retrying_session([THROTTLED], strategy, timeout=4.0, listeners=[Slow(6.0)])
    log = await log_of(client)

    assert ("deadline", 6.0) == (log.stop_reason, log.children[0].delay)
    # One in two seconds since the start, of which none was taken.
    assert 1.0 <= strategy.limiter_for(SCOPE).capacity


@pytest.mark.parametrize("kind", [Diary, Slow])
async def test_hears_of_the_retries_of_a_function(kind):
    """Its request has the name, and the attempt is over."""
    diary = kind(0.5)
    rule = RetryRule(exceptions=[LookupError], backoff=Backoff.fixed(1.0))

    retry = RetryingRpcClient.new_decorator(
        rule, listeners=[diary], attempt_timeout=0.5
    )
    fetch = rpc(retry, name="fetch")(lookups(LookupError(), 7))

    assert (7, 1.5) == (await fetch(), now())
    assert [(1, LookupError, 1.0, 0.25)] == diary.heard


def test_settings_say_that_there_are_listeners():
    """In the description of a chain; nothing where there are none."""
    described = SessionBuilder().decorator(retrying(listeners=[Broken()])).describe()
    without = SessionBuilder().decorator(retrying()).describe()

    assert "listeners=(Broken(),)" in described
    assert "listeners" not in without


async def test_listener_need_not_override_anything():
    """It hears, and does nothing."""
    client = retrying_session([503, 200], SOON, listeners=[RetryListener()])

    assert 200 == (await status_and_log(client))[0]


@pytest.mark.parametrize("given", [5, None, "listener", [print], RetryListener()])
def test_anything_else_is_refused(given):
    """Also one that is not in a list, and a function."""
    with bad_argument("listeners", given, "RetryListener objects"):
        RetryConfig(SAFELY, listeners=given)
