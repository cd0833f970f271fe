"""After a redirect only the request that broke is sent again."""

from __future__ import annotations

import asyncio
from collections import Counter

import aiohttp
import pytest
from fault_server import End, Fault, response
from pairs import each_pair
from parity import BARE, CHAINS, PATIENCE, RETRYING, each, in_use, stale_pool, status_of
from pool_server import RESET, PoolServer
from yarl import URL

HOP = "/see/302/b"
ONE_EACH = {2: RESET}
"""Each connection answers once, and breaks when it is used again."""


def sent(server):
    """Return what came over the wire, in order."""
    return [
        (request.method, request.target, bytes(request.body))
        for request in server.requests
    ]


async def wire_of(make, method, path, **options):
    """Make one call with connections that answer once each; return all about it."""
    async with (
        asyncio.timeout(PATIENCE),
        PoolServer() as server,
        make(server.url) as session,
    ):
        server.places = ONE_EACH
        try:
            async with session.request(method, path, **options) as got:
                hops = [(hop.status, hop.url.path) for hop in got.history]
                outcome = got.status, got.url.path_qs, hops, await got.text()
        except aiohttp.ClientError:
            outcome = None
        assert 0 == in_use(session)

        return sent(server), outcome


@each_pair(
    status=[301, 302, 303, 307, 308],
    method=["GET", "PUT", "DELETE", "OPTIONS"],
    chain=CHAINS,
)
async def test_same_requests_are_sent_as_by_a_bare_session(status, method, chain):
    """Body and parameters included; the response has the same history."""
    options = {"params": {"q": "1"}, "data": b"body" if method == "PUT" else None}
    options |= {"allow_redirects": True, "max_redirects": 2}
    path = f"/see/{status}/b"
    bare = await wire_of(aiohttp.ClientSession, method, path, **options)
    ours = await wire_of(CHAINS[chain], method, path, **options)

    assert bare == ours
    assert 200 == bare[1][0]
    assert 3 == len(bare[0])


@each(CHAINS)
async def test_each_of_several_hops_may_break(make):
    """Each is sent again, and none that was answered."""
    wire, outcome = await wire_of(make, "GET", "/see/302/see/302/c")

    paths = Counter(target for _, target, _ in wire)
    assert {"/see/302/see/302/c": 1, "/see/302/c": 2, "/c": 2} == paths
    assert 200 == outcome[0]


def closing_redirect():
    """Redirect once, and say that the connection ends."""
    moved = response(302, b"", "Location: /b", "Connection: close")
    return Fault(send=(moved,), end=End.CLOSE)


@each(RETRYING)
async def test_attempt_after_a_hop_that_failed_begins_anew(make):
    """An attempt is the whole way."""
    async with stale_pool(make, 0) as (server, session):
        server.scripts = {HOP: [closing_redirect()], "/b": [RESET]}
        status = await status_of(session.get(HOP))

    assert 200 == status
    assert {HOP: 2, "/b": 2} == server.paths()


@each(BARE | CHAINS)
async def test_newer_cookie_is_not_overwritten_by_the_redirect(make):
    """What is sent again has the cookies of the moment."""
    moved = response(302, b"", "Location: /b", "Set-Cookie: sid=old; Path=/")
    renewed = response(200, b"", "Set-Cookie: sid=new; Path=/")
    broken = asyncio.Event()
    jar = aiohttp.CookieJar(unsafe=True)
    async with stale_pool(make, 0, cookie_jar=jar) as (server, session):
        server.scripts = {
            HOP: [Fault(send=(moved,))],
            "/b": [Fault(send=(broken,), end=End.RESET)],
            "/renew": [Fault(send=(renewed,))],
        }
        call = asyncio.create_task(status_of(session.get(HOP)))
        await server.arrived(2)
        renewal = await status_of(session.get("/renew"))
        broken.set()
        status = await call

    cookies = [request.header("Cookie") for request in server.to("/b")]
    assert (200, 200) == (renewal, status)
    assert [b"sid=old", b"sid=new"] == cookies
    assert ["new"] == [cookie.value for cookie in jar]
    assert 1 == len(server.to(HOP))


@each(BARE | CHAINS)
async def test_secrets_stay_behind_at_another_origin(make):
    """Also with what is sent there again."""
    async with PoolServer() as other, stale_pool(make, 0) as (server, session):
        away = response(302, b"", f"Location: {other.url / 'b'}")
        server.scripts[HOP] = [Fault(send=(away,)) for _ in range(2)]
        warming = await status_of(session.get(other.url / "warm"))
        other.leave_stale()
        secret = {"Authorization": "Bearer token"}
        status = await status_of(session.get(HOP, headers=secret))

    assert (200, 200) == (warming, status)
    told = [request.header("Authorization") for request in server.to(HOP)]
    assert [b"Bearer token"] == told
    assert [b"", b""] == [request.header("Authorization") for request in other.to("/b")]


@pytest.mark.parametrize("of_the_request", [False, True])
@each(CHAINS)
async def test_middlewares_see_what_they_see_in_a_bare_session(make, of_the_request):
    """Users' own ones run once for each request on the wire."""

    async def seen_by(make):
        seen = []

        async def note(request, handler):
            seen.append((request.method, request.url.path))
            got = await handler(request)
            seen.append(got.status)
            return got

        where = "request" if of_the_request else "session"
        both = {"session": {}, "request": {}, where: {"middlewares": (note,)}}
        async with stale_pool(make, **both["session"]) as (server, session):
            seen.clear()
            server.places = {2: RESET}
            status = await status_of(session.get("/b", **both["request"]))
            assert 200 == status

            seen.append(URL(HOP).path)
            server.places = {3: RESET}
            await status_of(session.get(HOP, **both["request"]))
        return seen, sent(server)

    assert await seen_by(aiohttp.ClientSession) == await seen_by(make)
