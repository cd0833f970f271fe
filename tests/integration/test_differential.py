"""Every kind of request, bare and through chains: the same on the wire and back."""

from __future__ import annotations

import contextlib
import re
import ssl
import warnings

import aiohttp
import pytest
import trustme
from body_kinds import Content
from request_kind import Scene, made
from request_kinds import KINDS
from request_senders import read
from wire_server import Wire, WireServer

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    LoggingClient,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    decorate,
)

RETRY_COUNT = b"armeria-retry-count: 1\r\n"
ADDRESS = re.compile("0x[0-9a-f]+")


def decorated(**settings):
    return decorate(
        aiohttp.ClientSession(**settings),
        CircuitBreakerClient.new_per_host_decorator(),
        RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.without_delay())),
        LoggingClient.new_decorator(),
    )


WAYS = {
    "empty chain": lambda **settings: SessionBuilder(**settings).build(),
    "standard": lambda **settings: SessionBuilder.standard(**settings).build(),
    "decorated": decorated,
}
"""How a session with a chain is made."""

BEFORE_3_14 = aiohttp.__version__.startswith(("3.12.", "3.13."))


def other(reason):
    return pytest.mark.skipif(BEFORE_3_14, reason=f"before aiohttp 3.14: {reason}")


GOES_ON_EMPTY = other("aiohttp sends on an empty body, which the chain refuses")
CHANGED = {
    "generator redirected by 307": GOES_ON_EMPTY,
    "generator of PUT redirected by 307": GOES_ON_EMPTY,
    "method None": other("aiohttp says so in other words"),
    "method, a number": other("aiohttp says so in other words"),
}
ONCE_PER_CONNECTION = other("aiohttp tells a proxy who it is once per connection")
CHANGED_AGAIN = {
    "proxy with auth": ONCE_PER_CONNECTION,
    "proxy with auth of the session": ONCE_PER_CONNECTION,
    "proxy with auth in its URL": ONCE_PER_CONNECTION,
}


def marked(marks):
    return [pytest.param(name, id=name, marks=marks.get(name, ())) for name in KINDS]


def retrying(**settings):
    backoff = Backoff.without_delay()
    strategy = RetryStrategy.on_status(
        lambda status, cause: backoff if status == 503 else None
    )
    decorator = RetryingClient.new_decorator(strategy, max_total_attempts=2)
    return SessionBuilder(**settings).decorator(decorator).build()


@pytest.fixture(scope="module")
def contexts():
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return served, trusting


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("differential") / "file.txt"
    path.write_text("0123456789" * 20)
    return path


@pytest.fixture
async def scene(contexts, file):
    served, trusting = contexts
    wire = Wire()
    async with WireServer(wire) as server, WireServer(wire, served) as tls_server:
        yield Scene(
            wire, server, tls_server, trusting, Content(file.read_bytes(), file)
        )


async def outcome(scene, kind, new_session):
    """Send a request and one more after it; return all that can be told of it."""
    scene.seen.clear()
    with (
        warnings.catch_warnings(record=True) as caught,
        capture_logs() as logs,
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)
        async with opened(scene, kind, new_session) as session:
            result = await told(scene, kind, session)
            after = None if session.closed else await one_more(scene, session)
            jar = sorted(str(cookie) for cookie in session.cookie_jar)
    return {
        "result": result,
        "after": after,
        "wire": await scene.wire.take(),
        "jar": jar,
        "seen": list(scene.seen),
        "warnings": [(each.category, str(each.message)) for each in caught],
        "attempts": {log.total_attempts for log in logs} or {1},
    }


async def requests_sent(scene, kind, new_session, *, failures):
    """Send a request that is answered 503 so often; return what came."""
    scene.wire.failures = failures
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        async with opened(scene, kind, new_session) as session:
            await told(scene, kind, session)
    return [request for _, request in await scene.wire.take()]


@contextlib.asynccontextmanager
async def opened(scene, kind, new_session):
    """Open a session as the kind asks for."""
    settings = {name: made(value, scene) for name, value in kind.session.items()}
    with scene.content.stack:
        async with new_session(**settings) as session:
            yield session


async def told(scene, kind, session):
    """Send a request, and tell what came of it."""
    url = made(kind.url, scene)
    options = {name: made(value, scene) for name, value in kind.options.items()}
    try:
        if kind.send is not None:
            return await kind.send(session, kind.method, url, options)
        async with session.request(kind.method, url, **options) as response:
            return await read(response)
    except Exception as error:
        return failure(error)


def failure(error):
    """Tell what an exception says, but not where in memory."""
    cause = error.__cause__
    return {
        "class": type(error),
        "text": ADDRESS.sub("0x", str(error)),
        "arguments": len(error.args),
        "status": getattr(error, "status", None),
        "headers": str(getattr(error, "headers", None)),
        "history": [hop.status for hop in getattr(error, "history", ())],
        "cause": (type(cause), ADDRESS.sub("0x", str(cause))),
    }


async def one_more(scene, session):
    """Show which connection is free, and which cookies are kept."""
    try:
        async with session.get(scene.server.url / "after") as response:
            return response.status, await response.read()
    except Exception as error:
        return failure(error)


@pytest.mark.parametrize("name", marked(CHANGED))
async def test_chain_changes_nothing(name, scene):
    """Through every chain go the same bytes, and the same comes of them."""
    bare = await outcome(scene, KINDS[name], aiohttp.ClientSession)
    outcomes = {
        way: await outcome(scene, KINDS[name], new_session)
        for way, new_session in WAYS.items()
    }

    assert dict.fromkeys(WAYS, bare) == outcomes


@pytest.mark.parametrize("name", marked(CHANGED_AGAIN))
async def test_second_attempt_is_the_first(name, scene):
    """After a 503 the same bytes go out again with the retry count, or none do."""
    kind = KINDS[name]
    # What cannot go out again has to be the same as without a chain.
    failures = 0 if kind.again else 1
    expected = await requests_sent(
        scene, kind, aiohttp.ClientSession, failures=failures
    )
    goes_again = kind.again and expected != []
    if goes_again:
        first = 1 if expected[0].startswith(b"CONNECT") else 0
        expected.insert(first, expected[first])
    requests = await requests_sent(scene, kind, retrying, failures=1)

    assert expected == [request.replace(RETRY_COUNT, b"") for request in requests]
    assert goes_again == (RETRY_COUNT in b"".join(requests))
