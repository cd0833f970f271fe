"""Sessions on scripted answers, and what else many tests begin with."""

import asyncio
import math
import random
import re
import threading
from contextlib import contextmanager, suppress

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

URL = "http://localhost/orders"
NOW = Backoff.without_delay()
SAFELY = RetryStrategy.failsafe(NOW)


def decorated(builder, *decorators):
    """Give decorators to a builder, inner ones first."""
    for decorator in decorators:
        builder.decorator(decorator)
    return builder


def chain(answers, *decorators, timeout=None, **settings):
    """Begin a session that gets *answers* through *decorators*, inner ones first.

    A transport may stand in place of the answers.
    """
    transport = answers if callable(answers) else ScriptedTransport(answers)
    builder = decorated(SessionBuilder(**settings), transport, *decorators)
    return builder if timeout is None else builder.response_timeout(timeout)


def session(answers, *decorators, **settings):
    """Build a session that gets *answers* through *decorators*, inner ones first."""
    return chain(answers, *decorators, **settings).build()


def standard_session(answers, **settings):
    """Build a session of the standard chain that gets *answers*."""
    transport = ScriptedTransport(answers)
    return SessionBuilder.standard(inside=[transport], **settings).build()


def connected(url, *decorators, **settings):
    """Build a session that talks to the server at *url* through *decorators*."""
    return decorated(SessionBuilder(url, **settings), *decorators).build()


def retrying(strategy=0.5, **settings):
    """Retry as *strategy* says; seconds stand for failures and server errors."""
    if isinstance(strategy, int | float):
        strategy = RetryStrategy.on_server_error_status(Backoff.fixed(strategy))
    return RetryingClient.new_decorator(strategy, **settings)


def retrying_session(answers, strategy=SAFELY, *inside, timeout=None, **settings):
    """Build a session that gets *answers* and retries as *strategy* says."""
    return session(answers, *inside, retrying(strategy, **settings), timeout=timeout)


class Scripted:
    """A session on *answers*, as long as its block lasts, and its transport."""

    def __init__(self, answers, *decorators):
        self.transport = ScriptedTransport(answers)
        self.builder = chain(self.transport, *decorators)

    async def __aenter__(self):
        self.session = self.builder.build()
        return self

    async def __aexit__(self, *error):
        await self.session.close()

    async def get(self, url=URL):
        """Send a request and return the status, or the class of what was raised."""
        try:
            async with self.session.get(url) as response:
                return response.status
        except aiohttp.ClientError as error:
            return type(error)

    @property
    def sent(self):
        """How many requests reached the transport."""
        return len(self.transport.requests)


async def response_of(client, url=URL, **options):
    """Make the one call of a session, and close it."""
    async with client:
        return await client.get(url, **options)


async def log_of(client, url=URL, *, method="GET", **options):
    """Make the one call of a session, whatever comes of it, for its log."""
    with capture_logs() as logs, suppress(Exception):
        async with client, client.request(method, url, **options):
            pass
    return logs[0]


async def log_of_cancelled(client, after):
    """Make the one call of a session, which the caller gives up, for its log."""
    with capture_logs() as logs:
        async with client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(after):
                    await client.get(URL)
    return logs[0]


async def status_and_log(client):
    """Make the one call of a session that is answered."""
    async with client, client.get(URL) as response:
        await response.read()
        return response.status, RequestLog.of(response)


async def impatient(chance, calls, *, pauses, cancelled):
    """Begin calls one after another, and cancel some of them at any moment.

    Args:
        chance: Chooses.
        calls: The calls.
        pauses: The seconds to choose from after each beginning.
        cancelled: The probability that a call is cancelled after each pause.
    """
    tasks = []
    for call in calls:
        tasks.append(asyncio.create_task(call))
        await asyncio.sleep(chance.choice(pauses))
        if chance.random() < cancelled:
            chance.choice(tasks).cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def drawing(number=0.0):
    """Let chance draw the same number each time, as long as the block lasts.

    By 0.0 nothing is added to what servers ask for.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "random", lambda: number)
        yield


def in_threads(work, number=8):
    """Do the same work in threads that begin at the same time."""
    start = threading.Barrier(number)

    def begin():
        start.wait()
        work()

    threads = [threading.Thread(target=begin, daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20.0)
        assert not thread.is_alive()


def in_virtual_time(work):
    """Run it in a loop of its own, as each example of Hypothesis needs one."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def raises_exactly(text, kind=ValueError):
    """Expect an exception with this text, no more and no less."""
    return pytest.raises(kind, match=rf"\A{re.escape(text)}\Z")


def bad_argument(name, value, expected, kind=ValueError):
    """Expect the error of an argument, in the one form that all of them have."""
    return raises_exactly(f"{name}: {value!r} (expected: {expected})", kind)


_ID = r"id=[a-z2-7]{8}-\d+(?:\.\d+)?"
_SHOWN_ID = re.compile(rf"(?<=\{{){_ID}(?:, )?|, {_ID}")


def without_id(line):
    """Return a line or a note without the id of its call, which differs each time."""
    return _SHOWN_ID.sub("", line)


def notes_of(error):
    """Return the notes on an exception, without the ids of calls."""
    return [*map(without_id, error.__notes__)]


class Always(RetryStrategy):
    """Wants another attempt whatever happens."""

    def __init__(self, backoff=NOW):
        self.backoff = backoff

    def should_retry(self, ctx, cause):
        return self.backoff


class Answering(RetryStrategy):
    """Gives the one answer, and counts how often it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    def should_retry(self, ctx, cause):
        self.asked += 1
        return self.answer


class Opaque:
    """A client that neither describes itself nor shows what it wraps."""

    def __init__(self, delegate):
        self.inner = delegate

    async def execute(self, ctx, request):
        return await self.inner.execute(ctx, request)


@client_decorator
async def pass_on(delegate, ctx, request):
    """Change nothing, as a decorator of a user's."""
    return await delegate.execute(ctx, request)


@client_decorator
async def twice(delegate, ctx, request):
    """Send each request twice, as a refresh of credentials may."""
    (await delegate.execute(ctx, request)).close()
    return await delegate.execute(ctx, request)


async def silence(ctx, request):
    """Be a server that never answers."""
    await asyncio.sleep(math.inf if ctx.deadline is None else 1e6)
    raise AssertionError


def after(seconds, answer):
    """Answer after a while."""

    async def respond(ctx, request):
        await asyncio.sleep(seconds)
        return answer

    return respond


def raised_from(error, cause):
    """Return an error as if it was raised from another one."""
    error.__cause__ = cause
    return error


def telling(error, **retry_information):
    """Return an error with attributes of Smithy's."""
    vars(error).update(retry_information)
    return error


def refused():
    """Make the error of a server that takes no connections."""
    key = aiohttp.client_reqrep.ConnectionKey(
        "orders.example.com", 443, True, True, None, None, None
    )
    return aiohttp.ClientConnectorError(
        key, OSError(111, "Connect call failed ('192.0.2.1', 443)")
    )


def now():
    """Tell the time of the running loop."""
    return asyncio.get_running_loop().time()


def set_time_of_day(moment):
    """Let it be that many seconds since 1970 now."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.began_at = moment - loop.time()


class Clock:
    """A clock moved by hand."""

    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now
