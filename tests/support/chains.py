"""Sessions on scripted answers, and what else many tests begin with."""

from __future__ import annotations

import asyncio
import math
import random
import re
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
    from random import Random

    from aioretry_smithy import Decorator, HttpClient

URL = "http://localhost/orders"
NOW = Backoff.without_delay()
SAFELY = RetryStrategy.failsafe(NOW)


def decorated(builder: SessionBuilder, *decorators: Decorator) -> SessionBuilder:
    """Give decorators to a builder, inner ones first."""
    for decorator in decorators:
        builder.decorator(decorator)
    return builder


def chain(
    answers: Decorator | Iterable[Any],
    *decorators: Decorator,
    timeout: float | None = None,
    **settings: Any,
) -> SessionBuilder:
    """Begin a session that gets *answers* through *decorators*, inner ones first.

    A transport may stand in place of the answers.
    """
    transport = answers if callable(answers) else ScriptedTransport(answers)
    builder = decorated(SessionBuilder(**settings), transport, *decorators)
    return builder if timeout is None else builder.response_timeout(timeout)


def session(
    answers: Decorator | Iterable[Any], *decorators: Decorator, **settings: Any
) -> aiohttp.ClientSession:
    """Build a session that gets *answers* through *decorators*, inner ones first."""
    return chain(answers, *decorators, **settings).build()


def standard_session(answers: Iterable[Any], **settings: Any) -> aiohttp.ClientSession:
    """Build a session of the standard chain that gets *answers*."""
    transport = ScriptedTransport(answers)
    return SessionBuilder.standard(inside=[transport], **settings).build()


def connected(
    url: Any, *decorators: Decorator, **settings: Any
) -> aiohttp.ClientSession:
    """Build a session that talks to the server at *url* through *decorators*."""
    return decorated(SessionBuilder(url, **settings), *decorators).build()


def retrying(strategy: Any = 0.5, **settings: Any) -> Decorator:
    """Retry as *strategy* says; seconds stand for failures and server errors."""
    if isinstance(strategy, int | float):
        strategy = RetryStrategy.on_server_error_status(Backoff.fixed(strategy))
    return RetryingClient.new_decorator(strategy, **settings)


def retrying_session(
    answers: Decorator | Iterable[Any],
    strategy: Any = SAFELY,
    *inside: Decorator,
    timeout: float | None = None,
    **settings: Any,
) -> aiohttp.ClientSession:
    """Build a session that gets *answers* and retries as *strategy* says."""
    return session(answers, *inside, retrying(strategy, **settings), timeout=timeout)


class Scripted:
    """A session on *answers*, as long as its block lasts, and its transport."""

    def __init__(self, answers: Iterable[Any], *decorators: Decorator) -> None:
        self.transport = ScriptedTransport(answers)
        self.builder = chain(self.transport, *decorators)

    async def __aenter__(self) -> Scripted:
        self.session = self.builder.build()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.session.close()

    async def get(self, url: str = URL) -> int | type[BaseException]:
        """Send a request and return the status, or the class of what was raised."""
        try:
            async with self.session.get(url) as response:
                return response.status
        except aiohttp.ClientError as error:
            return type(error)

    @property
    def sent(self) -> int:
        """How many requests reached the transport."""
        return len(self.transport.requests)


async def response_of(
    client: aiohttp.ClientSession, url: Any = URL, **options: Any
) -> aiohttp.ClientResponse:
    """Make the one call of a session, and close it."""
    async with client:
        return await client.get(url, **options)


async def log_of(
    client: aiohttp.ClientSession,
    url: Any = URL,
    *,
    method: str = "GET",
    **options: Any,
) -> RequestLog:
    """Make the one call of a session, whatever comes of it, for its log."""
    with capture_logs() as logs, suppress(Exception):
        async with client, client.request(method, url, **options):
            pass
    return logs[0]


async def log_of_cancelled(client: aiohttp.ClientSession, after: float) -> RequestLog:
    """Make the one call of a session, which the caller gives up, for its log."""
    with capture_logs() as logs:
        async with client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(after):
                    await client.get(URL)
    return logs[0]


async def status_and_log(client: aiohttp.ClientSession) -> tuple[int, RequestLog]:
    """Make the one call of a session that is answered."""
    async with client, client.get(URL) as response:
        await response.read()
        return response.status, RequestLog.of(response)


async def impatient(
    chance: Random,
    calls: Iterable[Coroutine[Any, Any, object]],
    *,
    pauses: Sequence[float],
    cancelled: float,
) -> None:
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
def drawing(number: float = 0.0) -> Iterator[None]:
    """Let chance draw the same number each time, as long as the block lasts.

    By 0.0 nothing is added to what servers ask for.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random, "random", lambda: number)
        yield


def in_threads(work: Callable[[], object], number: int = 8) -> None:
    """Do the same work in threads that begin at the same time."""
    start = threading.Barrier(number)

    def begin() -> None:
        start.wait()
        work()

    threads = [threading.Thread(target=begin, daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20.0)
        assert not thread.is_alive()


def in_virtual_time(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it in a loop of its own, as each example of Hypothesis needs one."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def raises_exactly(
    text: str, kind: type[BaseException] = ValueError
) -> pytest.RaisesExc[BaseException]:
    """Expect an exception with this text, no more and no less."""
    return pytest.raises(kind, match=rf"\A{re.escape(text)}\Z")


def bad_argument(
    name: str, value: object, expected: str, kind: type[BaseException] = ValueError
) -> pytest.RaisesExc[BaseException]:
    """Expect the error of an argument, in the one form that all of them have."""
    return raises_exactly(f"{name}: {value!r} (expected: {expected})", kind)


_ID = r"id=[a-z2-7]{8}-\d+(?:\.\d+)?"
_SHOWN_ID = re.compile(rf"(?<=\{{){_ID}(?:, )?|, {_ID}")


def without_id(line: str) -> str:
    """Return a line or a note without the id of its call, which differs each time."""
    return _SHOWN_ID.sub("", line)


def notes_of(error: BaseException) -> list[str]:
    """Return the notes on an exception, without the ids of calls."""
    return [*map(without_id, error.__notes__)]


class Always(RetryStrategy):
    """Wants another attempt whatever happens."""

    def __init__(self, backoff: Backoff = NOW) -> None:
        self.backoff = backoff

    def should_retry(self, ctx: Any, cause: Exception | None) -> Backoff:
        return self.backoff


class Answering(RetryStrategy):
    """Gives the one answer, and counts how often it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    def should_retry(self, ctx: Any, cause: Exception | None) -> Any:
        self.asked += 1
        return self.answer


class Opaque:
    """A client that neither describes itself nor shows what it wraps."""

    def __init__(self, delegate: HttpClient) -> None:
        self.inner = delegate

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        return await self.inner.execute(ctx, request)


@client_decorator
async def pass_on(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    """Change nothing, as a decorator of a user's."""
    return await delegate.execute(ctx, request)


@client_decorator
async def twice(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    """Send each request twice, as a refresh of credentials may."""
    (await delegate.execute(ctx, request)).close()
    return await delegate.execute(ctx, request)


async def silence(ctx: ClientRequestContext, request: HttpRequest) -> int:
    """Be a server that never answers."""
    await asyncio.sleep(math.inf if ctx.deadline is None else 1e6)
    raise AssertionError


def after(seconds: float, answer: Any) -> Any:
    """Answer after a while."""

    async def respond(ctx: Any, request: Any) -> Any:
        await asyncio.sleep(seconds)
        return answer

    return respond


def raised_from(error: BaseException, cause: BaseException) -> Any:
    """Return an error as if it was raised from another one."""
    error.__cause__ = cause
    return error


def telling(error: BaseException, **retry_information: Any) -> Any:
    """Return an error with attributes of Smithy's."""
    vars(error).update(retry_information)
    return error


def refused() -> aiohttp.ClientConnectorError:
    """Make the error of a server that takes no connections."""
    key = aiohttp.client_reqrep.ConnectionKey(
        "orders.example.com", 443, True, True, None, None, None
    )
    return aiohttp.ClientConnectorError(
        key, OSError(111, "Connect call failed ('192.0.2.1', 443)")
    )


def now() -> float:
    """Tell the time of the running loop."""
    return asyncio.get_running_loop().time()


def set_time_of_day(moment: float) -> None:
    """Let it be that many seconds since 1970 now."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.began_at = moment - loop.time()


class Clock:
    """A clock moved by hand."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
