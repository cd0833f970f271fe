"""Every failure that aiohttp reports, provoked on loopback, and what it means to us."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from typing import NamedTuple

import aiohttp
import pytest
import trustme
from aiohttp import ClientTimeout
from chains import retrying
from stream_server import StreamServer
from yarl import URL

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    RetrySafety,
    RetryStrategy,
    decorate,
    is_timeout,
    is_unprocessed,
    retry_safety,
)

YES, MAYBE, NO = RetrySafety.YES, RetrySafety.MAYBE, RetrySafety.NO
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"


class Verdict(NamedTuple):
    kind: type[BaseException]
    safety: RetrySafety
    is_unprocessed: bool = False
    is_timeout: bool = False


def verdict(cause):
    return Verdict(
        type(cause), retry_safety(cause), is_unprocessed(cause), is_timeout(cause)
    )


def redirecting(location, status=303):
    head = (
        f"HTTP/1.1 {status} Away\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    )
    return [head.encode()]


@pytest.fixture
def dead(closed_port):
    """An origin where nobody listens, for as long as the test runs."""
    return f"127.0.0.1:{closed_port}"


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def tls(authority):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
async def quiet_tls():
    """Keep asyncio from reporting the handshakes that fail on the server's side."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)


class Resolver(aiohttp.abc.AbstractResolver):
    """Never asks the network."""

    def __init__(self, resolve):
        self._resolve = resolve

    async def resolve(self, host, port=0, family=socket.AF_INET):
        await self._resolve()
        raise OSError(None, f"no such name: {host}")

    async def close(self):
        pass


async def fail(url, *, method="POST", connector=None, read=True, **options):
    """Make a request through a chain; return what it raised."""
    session = decorate(aiohttp.ClientSession(connector=connector), DecoratingClient)
    async with session:
        with pytest.raises(Exception) as caught:  # noqa: PT012
            async with session.request(method, url, **options) as response:
                assert read
                await response.read()
        assert not session.connector._acquired
    return caught.value


# Before the server can have seen anything


async def test_refused(dead):
    """Nobody listens: surely not processed."""
    cause = await fail(f"http://{dead}/")

    assert Verdict(aiohttp.ClientConnectorError, YES, True) == verdict(cause)
    assert errno.ECONNREFUSED == cause.errno


async def test_unknown_name():
    """The name does not resolve: nothing was sent."""
    connector = aiohttp.TCPConnector(resolver=Resolver(lambda: asyncio.sleep(0)))
    cause = await fail("http://example.test/", connector=connector)

    assert Verdict(aiohttp.ClientConnectorDNSError, YES, True) == verdict(cause)


async def test_slow_resolver():
    """Time ran out before there was a connection."""
    connector = aiohttp.TCPConnector(resolver=Resolver(lambda: asyncio.sleep(3600.0)))
    limits = ClientTimeout(connect=0.05)
    cause = await fail("http://example.test/", connector=connector, timeout=limits)

    assert Verdict(aiohttp.ConnectionTimeoutError, YES, True, True) == verdict(cause)


async def test_call_ends_before_there_is_a_connection():
    """Whose limit it was does not matter: nothing was sent."""
    connector = aiohttp.TCPConnector(resolver=Resolver(lambda: asyncio.sleep(3600.0)))
    cause = await fail("http://example.test/", connector=connector, timeout=TOTAL)

    assert Verdict(ResponseTimeoutError, YES, True, True) == verdict(cause)


async def test_post_is_sent_again_that_had_no_connection_in_its_attempt(serve):
    """As after a limit of aiohttp's own, which is longer by default."""
    lookups = []

    class Hung(aiohttp.ThreadedResolver):
        """Answers the second time."""

        async def resolve(self, host, port=0, family=socket.AF_INET):
            lookups.append(host)
            await asyncio.sleep(3600.0 if len(lookups) == 1 else 0.0)
            return await super().resolve("127.0.0.1", port, family)

    url = URL(await serve([OK + b"0123456789"])).with_host("example.test")
    connector = aiohttp.TCPConnector(resolver=Hung(), use_dns_cache=False)
    session = aiohttp.ClientSession(connector=connector)
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    decorate(session, retrying(strategy, attempt_timeout=0.05))
    async with session, session.post(url) as response:
        log = RequestLog.of(response)

    first = log.children[0]
    assert 2 == len(lookups) == log.total_attempts
    assert isinstance(first.response_cause, AttemptTimeoutError)
    assert not first.sent


async def test_full_pool(serve):
    """Waiting for a connection is a connection timeout, or the total if that is."""
    url = await serve([OK, 3600.0])
    connector = aiohttp.TCPConnector(limit=1)
    session = decorate(aiohttp.ClientSession(connector=connector), DecoratingClient)
    async with session, session.get(url):
        causes = []
        for limits in ({"connect": 0.05}, {"total": 0.05}):
            with pytest.raises(TimeoutError) as caught:
                await session.post(url, timeout=ClientTimeout(**limits))
            causes.append(verdict(caught.value))

    assert [
        Verdict(aiohttp.ConnectionTimeoutError, YES, True, True),
        Verdict(ResponseTimeoutError, YES, True, True),
    ] == causes


async def test_hung_handshake(serve):
    """A server that accepts and never speaks TLS has seen no request."""
    url = await serve([])
    limits = ClientTimeout(sock_connect=0.05)
    cause = await fail(url.replace("http", "https"), timeout=limits)

    assert Verdict(aiohttp.ConnectionTimeoutError, YES, True, True) == verdict(cause)


async def test_tls_to_a_plain_server():
    """A server that answers a handshake with HTTP has seen no request."""

    async def answer(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with StreamServer(answer) as server:
        cause = await fail(server.url("https"))

    assert isinstance(cause, aiohttp.ClientConnectorError)
    assert (YES, True, False) == verdict(cause)[1:]


UNTRUSTED = Verdict(aiohttp.ClientConnectorCertificateError, NO, True)
MISMATCH = Verdict(aiohttp.ServerFingerprintMismatch, NO, True)
PINNED = {"ssl": aiohttp.Fingerprint(b"\0" * 32)}


@pytest.mark.usefixtures("quiet_tls")
@pytest.mark.parametrize(
    ("is_known", "options", "expected"),
    [
        (False, {}, UNTRUSTED),
        (True, {"server_hostname": "other.test"}, UNTRUSTED),
        (False, PINNED, MISMATCH),
    ],
    ids=["unknown authority", "another host", "another fingerprint"],
)
async def test_certificate_is_no_good(
    serve, tls, authority, is_known, options, expected
):
    """Nothing was sent, and trying again will not make it better."""
    if is_known:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        options = {"ssl": context, **options}
    cause = await fail(await serve([OK], tls=tls), **options)

    assert expected == verdict(cause)


async def test_proxy_refused(dead):
    """No proxy, no request."""
    cause = await fail("http://example.test/", proxy=f"http://{dead}")

    assert Verdict(aiohttp.ClientProxyConnectionError, YES, True) == verdict(cause)


async def test_proxy_declines(serve):
    """A proxy that opens no tunnel has passed no request on."""
    head = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
    cause = await fail("https://example.test/", proxy=await serve([head]))

    assert Verdict(aiohttp.ClientHttpProxyError, YES, True) == verdict(cause)
    assert 503 == cause.status


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, aiohttp.ServerDisconnectedError),
        (ConnectionResetError, aiohttp.ClientOSError),
        (b"garbage\r\n\r\n", aiohttp.ClientResponseError),
        (3600.0, ResponseTimeoutError),
    ],
    ids=["no answer", "reset", "garbage", "silence"],
)
async def test_proxy_breaks_before_there_is_a_tunnel(serve, answer, kind):
    """The server behind it has seen nothing, however the proxy failed."""
    proxy = await serve([answer])
    cause = await fail("https://example.test/", proxy=proxy, timeout=TOTAL)

    is_late = kind is ResponseTimeoutError
    assert Verdict(kind, YES, True, is_late) == verdict(cause)


async def test_proxy_breaks_that_passes_requests_on(serve):
    """Without a tunnel the server may have seen the request."""
    cause = await fail("http://example.test/", proxy=await serve([None]))

    assert HUNG_UP == verdict(cause)


async def test_hop_that_has_no_connection_in_time(serve):
    """The hop before it was answered."""
    away = b"HTTP/1.1 307 Away\r\nLocation: http://example.test/\r\n"
    url = await serve([away + b"Content-Length: 0\r\n\r\n"])
    connector = aiohttp.TCPConnector(resolver=Resolver(lambda: asyncio.sleep(3600.0)))
    cause = await fail(url, connector=connector, timeout=TOTAL)

    assert LATE == verdict(cause)


async def test_hook_that_is_slow_while_connecting(serve):
    """A user's own code may have sent something meanwhile."""

    async def wait(session, context, parameters):
        await asyncio.sleep(3600.0)

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(wait)
    session = aiohttp.ClientSession(trace_configs=[trace])
    async with decorate(session, DecoratingClient):
        with pytest.raises(ResponseTimeoutError) as caught:
            await session.post(await serve([OK]), timeout=TOTAL)

    assert LATE == verdict(caught.value)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://127.0.0.1:99999/", aiohttp.InvalidUrlClientError),
        ("/relative", aiohttp.InvalidUrlClientError),
        ("http://[::1", aiohttp.InvalidUrlClientError),
        ("ftp://127.0.0.1/", aiohttp.NonHttpUrlClientError),
    ],
)
async def test_bad_url(url, kind):
    """Nothing was sent, and a bad URL stays a bad URL."""
    assert Verdict(kind, NO, True) == verdict(await fail(url))


async def test_closed_session():
    """The caller's mistake."""
    session = decorate(aiohttp.ClientSession(), DecoratingClient)
    await session.close()
    with pytest.raises(RuntimeError) as caught:
        await session.get("http://127.0.0.1:1/")

    assert Verdict(RuntimeError, NO) == verdict(caught.value)


async def test_connector_closed_meanwhile(serve):
    """A session that is closed under a call has sent nothing of it."""

    async def close(session, context, parameters):
        await session.connector.close()

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(close)
    url = await serve([OK])
    session = aiohttp.ClientSession(trace_configs=[trace])
    async with decorate(session, DecoratingClient):
        with pytest.raises(aiohttp.ClientConnectionError) as caught:
            await session.get(url)

    assert Verdict(aiohttp.ClientConnectionError, NO, True) == verdict(caught.value)
    assert str(caught.value).startswith("Connector is closed")


# Nobody can know


async def test_reset(serve):
    """So it may before a reset."""
    cause = await fail(await serve([ConnectionResetError]))

    assert Verdict(aiohttp.ClientOSError, MAYBE) == verdict(cause)
    assert errno.ECONNRESET == cause.errno


async def test_reset_in_mid_upload(serve):
    """Half a request may have been enough."""

    async def upload():
        for _ in range(200):
            yield b"x" * 65_536
            await asyncio.sleep(0.001)

    cause = await fail(await serve([0.02, ConnectionResetError]), data=upload())

    assert isinstance(cause, aiohttp.ClientOSError | aiohttp.ServerDisconnectedError)
    assert (MAYBE, False, False) == verdict(cause)[1:]


SOON, TOTAL = ClientTimeout(sock_read=0.05), ClientTimeout(total=0.05)
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01"
GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n"
BROKEN = Verdict(aiohttp.ClientPayloadError, MAYBE)
SILENT = Verdict(aiohttp.SocketTimeoutError, MAYBE, False, True)
LATE = Verdict(ResponseTimeoutError, MAYBE, False, True)
ENDLESS = Verdict(aiohttp.TooManyRedirects, NO)
NO_HTTP = Verdict(aiohttp.NonHttpUrlRedirectClientError, NO)
NO_URL = Verdict(aiohttp.InvalidUrlRedirectClientError, NO)
LONG = b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000 + b"\r\n\r\n"
HUNG_UP = Verdict(aiohttp.ServerDisconnectedError, MAYBE)
UNREADABLE = Verdict(aiohttp.ClientResponseError, MAYBE)
SERVED = {
    "no answer": ([None], {}, HUNG_UP),
    "half a head": ([b"HTTP/1.1 200 OK\r\nContent-Le", None], {}, HUNG_UP),
    "garbage": ([b"garbage\r\n\r\n"], {}, UNREADABLE),
    "header too long": ([LONG], {}, UNREADABLE),
    "silence, seen by the socket": ([3600.0], {"timeout": SOON}, SILENT),
    "silence, seen by the call": ([3600.0], {"timeout": TOTAL}, LATE),
    "silence in the body": ([OK + b"01234", 3600.0], {"timeout": SOON}, SILENT),
    "call ends in the body": ([OK + b"01234", 3600.0], {"timeout": TOTAL}, LATE),
    "length": ([OK + b"01234", None], {}, BROKEN),
    "chunks": ([CHUNKS, None], {}, BROKEN),
    "encoding": ([GZIP, 0.01, b"01234"], {}, BROKEN),
    "endless redirects of a GET": (redirecting("/"), {"method": "GET"}, ENDLESS),
    "endless redirects of a POST": (redirecting("/"), {}, ENDLESS),
    "redirect to ftp": (redirecting("ftp://127.0.0.1/"), {}, NO_HTTP),
    "redirect to nowhere": (redirecting("http://127.0.0.1:99999/"), {}, NO_URL),
}
"""By name: what the server says, the options of the request, and the verdict."""


@pytest.mark.parametrize(("parts", "options", "expected"), SERVED.values(), ids=SERVED)
async def test_answer_is_no_good(serve, parts, options, expected):
    """Silence may be work; only what may be done twice is done again after a part.

    Another round of redirects leads nowhere, and a bad one will be no better.
    """
    assert expected == verdict(await fail(await serve(parts), **options))


# The server has processed it


async def test_reset_in_the_body(serve):
    """A reset in the body is a broken body, whichever class says so."""
    cause = await fail(await serve([OK + b"01234", 0.02, ConnectionResetError]))

    assert isinstance(cause, aiohttp.ClientPayloadError | aiohttp.ClientOSError)
    assert (MAYBE, False, False) == verdict(cause)[1:]


# The caller's own


@pytest.mark.parametrize("error", [ZeroDivisionError("mine"), ValueError("mine")])
async def test_generator_of_the_caller_raises(serve, error):
    """A body that fails to come is the caller's to mend."""

    async def upload():
        yield b"abc"
        raise error

    cause = await fail(await serve([3600.0]), data=upload())

    assert Verdict(aiohttp.ClientConnectionError, NO) == verdict(cause)
    assert error is cause.__cause__


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_refused_after_a_redirect(serve, dead, status):
    """A POST that was answered by a redirect has been processed."""
    url = await serve(redirecting(f"http://{dead}/", status))
    cause = await fail(url, data=b"abc")

    assert Verdict(aiohttp.ClientConnectorError, MAYBE) == verdict(cause)


# What the strategy of most people makes of it


@pytest.mark.parametrize(
    ("method", "redirected", "attempts"),
    [("POST", False, 3), ("POST", True, 1), ("GET", True, 3)],
)
async def test_failsafe_knows_the_difference(serve, dead, method, redirected, attempts):
    """A refused POST is sent again, one that a server has redirected is not."""
    url = (
        await serve(redirecting(f"http://{dead}/")) if redirected else f"http://{dead}"
    )
    strategy = RetryStrategy.failsafe(Backoff.fixed(0.0))
    async with decorate(
        aiohttp.ClientSession(), retrying(strategy, max_total_attempts=3)
    ) as session:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session.request(method, url)

    assert attempts == RequestLog.of(caught.value).total_attempts
