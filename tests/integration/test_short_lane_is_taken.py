"""Which calls take the short lane: those that make no context, and no others."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging

import pytest
from fault_server import End, FaultServer, answer, cut
from lanes import LANES
from story_calls import FINE, form, generated
from story_chains import CHAINS
from story_witness import LOGGER, Witness
from stub import ADDRESS, stubbed
from yarl import URL

from aioretry_smithy import (
    CircuitBreakerClient,
    CircuitState,
    ClientRequestContext,
    RetryConfig,
    request_options,
    unwrap,
)

SHORT = (
    "retry",
    "full",
    "limits",
    "full, decorated",
    "standard",
    "standard, untouched",
)
"""Chains that have one."""

LONG = (
    "breaker forced open",
    "breaker with a strategy",
    "content strategy",
    "buffered",
    "content preview",
    "function inside",
    "protocol inside",
    "request changed inside",
    "own retrying client",
    "own breaker client",
    "own logging client",
)
"""Chains that have none, or none for now."""

USUAL = {
    "GET": {},
    "headers": {"headers": {"X-A": "1"}},
    "params": {"params": {"a": "1"}},
    "cookies": {"cookies": {"a": "1"}},
    "JSON": {"json": {"a": [1]}},
    "bytes": {"data": b"body"},
    "text": {"data": "body"},
    "timeout": {"timeout": 5},
    "JSON, headers and params": {
        "json": {"a": 1},
        "headers": {"X-A": "1"},
        "params": {"a": "1"},
    },
}
"""Arguments that are nothing unusual."""

UNUSUAL = {
    "form": lambda: {"data": form()},
    "file": lambda: {"data": io.BytesIO(b"file")},
    "generator": lambda: {"data": generated()},
    "factory": lambda: {"data": lambda: b"made"},
    "dict": lambda: {"data": {"a": "1"}},
    "bytearray": lambda: {"data": bytearray(b"body")},
    "raise_for_status": lambda: {"raise_for_status": True},
}
"""Arguments that ask for the ordinary lane."""


@pytest.fixture
def contexts(monkeypatch):
    """The contexts that were made, as a list that grows."""
    made = []
    construct = ClientRequestContext.__init__

    def count(context, *arguments, **options):
        made.append(context.__class__)
        construct(context, *arguments, **options)

    monkeypatch.setattr(ClientRequestContext, "__init__", count)
    return made


@contextlib.asynccontextmanager
async def opened(name, **settings):
    """Open a session with a chain whose logging is at the level of that chain."""
    witness = Witness()
    chain = CHAINS[name]
    with witness.listening(chain.level):
        async with chain.open(witness, **settings) as session:
            yield session


async def call(session, url=ADDRESS, method="POST", **options):
    async with session.request(method, url, **options) as response:
        assert response.status == 200


async def warmed(session, contexts, url=ADDRESS):
    """Make the first call to a host, which makes its circuit breaker."""
    await call(session, url, "GET")
    contexts.clear()


@pytest.mark.parametrize("chain", SHORT)
@pytest.mark.parametrize("kind", USUAL)
async def test_usual_call_takes_the_short_lane(chain, kind, contexts):
    """No context is made for it, however often it is made."""
    with stubbed():
        async with opened(chain) as session:
            await warmed(session, contexts)
            for _ in range(5):
                await call(session, **USUAL[kind])

    assert [] == contexts


@pytest.mark.parametrize("chain", SHORT)
async def test_calls_to_many_hosts_take_the_short_lane(chain, contexts):
    """512 hosts in turn are as good as one, once they are known."""
    urls = [f"http://host-{number}.example/ok" for number in range(512)]
    with stubbed():
        async with opened(chain) as session:
            for url in urls:
                await call(session, url, json=1)
            contexts.clear()
            for url in urls:
                await call(session, url, json=1)

    assert [] == contexts


@pytest.mark.parametrize("url", ["http://stub.example", URL(ADDRESS)])
@pytest.mark.parametrize("chain", SHORT)
async def test_targets_of_each_kind_take_the_short_lane(chain, url, contexts):
    """A URL may be an object, or have no path."""
    with stubbed():
        async with opened(chain) as session:
            await warmed(session, contexts, url)
            await call(session, url)

    assert [] == contexts


@pytest.mark.parametrize("chain", SHORT)
async def test_calls_at_once_take_the_short_lane(chain, contexts):
    """A call that is under way is in nobody's way."""
    with stubbed():
        async with opened(chain) as session:
            await warmed(session, contexts)
            await asyncio.gather(*(call(session) for _ in range(100)))

    assert [] == contexts


@pytest.mark.parametrize("chain", SHORT)
async def test_real_success_takes_the_short_lane(chain, contexts):
    """So it is with sockets, below a base URL."""
    async with (
        FaultServer(then=FINE) as server,
        opened(chain, base_url=server.url) as session,
    ):
        await warmed(session, contexts, "/shop")
        for _ in range(3):
            await call(session, "/shop", "GET")

    assert [] == contexts


async def test_short_lane_is_taken_again_after_a_failure(contexts):
    """A call that failed does not keep the next one from the short lane."""
    async with (
        FaultServer([cut(end=End.RESET), FINE], then=FINE) as server,
        opened("full", base_url=server.url) as session,
    ):
        await call(session, "/", "GET")
        before = len(contexts)
        await call(session, "/", "GET")

    assert before > 0
    assert before == len(contexts)


@pytest.mark.parametrize("kind", UNUSUAL)
async def test_unusual_call_takes_the_ordinary_lane(kind, contexts):
    """A body that needs care, or a refusal that the caller asked for."""
    with stubbed():
        async with opened("full") as session:
            await warmed(session, contexts)
            await call(session, **UNUSUAL[kind]())

    assert contexts


@pytest.mark.parametrize("chain", LONG)
async def test_unusual_chain_has_no_short_lane(chain, contexts):
    """Something in it wants to see each call."""
    async with (
        FaultServer(then=FINE) as server,
        opened(chain, base_url=server.url) as session,
    ):
        for _ in range(2):
            contexts.clear()
            with contextlib.suppress(Exception):
                await call(session, "/", "GET")

    assert contexts


@pytest.mark.parametrize("fault", [answer(503), answer(500), cut(end=End.RESET)])
async def test_failed_attempt_is_handed_over(fault, contexts):
    """It is the first attempt of the ordinary lane, and is not made twice."""
    async with (
        FaultServer([fault], then=FINE) as server,
        opened("retry", base_url=server.url) as session,
    ):
        await call(session, "/", "GET")

    assert contexts
    assert 2 == len(server.requests)


async def test_open_block_takes_the_ordinary_lane(contexts):
    """Its options stand in a context."""
    with stubbed():
        async with opened("full") as session:
            await warmed(session, contexts)
            with request_options(retry=RetryConfig.no_retry()):
                await call(session)

    assert contexts


async def test_level_that_is_switched_on_counts_at_once():
    """Logging may be configured while the session is in use."""
    witness = Witness()
    with stubbed(), witness.listening(CHAINS["full"].level):
        async with CHAINS["full"].open(witness) as session:
            for level in (logging.CRITICAL, logging.CRITICAL, logging.DEBUG):
                LOGGER.setLevel(level)
                await call(session)

    heard = [
        text.split(":")[0] for kind, *_, text, _ in witness.seen if kind == "record"
    ]

    assert ["Request", "Response"] == heard


async def test_circuit_that_is_not_closed_takes_the_ordinary_lane(contexts):
    """The trial of a half-open circuit is no usual call."""
    async with (
        FaultServer(then=FINE) as server,
        opened("full", base_url=server.url) as session,
    ):
        await warmed(session, contexts, "/")
        (breaker,) = unwrap(session, CircuitBreakerClient).circuit_breakers.values()
        breaker.enter_state(CircuitState.HALF_OPEN)
        await call(session, "/", "GET")

    assert contexts


async def test_ordinary_lane_makes_contexts(contexts):
    """The other tests of lanes compare with calls that have contexts."""
    with stubbed(), LANES["ordinary"]():
        async with opened("full") as session:
            await call(session)

    assert contexts
