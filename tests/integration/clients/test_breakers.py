"""What purgatory and aiobreaker do around a call of aiohttp, and what stands there."""

import asyncio
from datetime import timedelta

import aiohttp
import pytest

pytest.importorskip("aiobreaker")
pytest.importorskip("purgatory")

from aiobreaker import CircuitBreakerError
from aiohttp import web
from purgatory.domain.model import OpenedState

from aioretry_smithy import CircuitBreakerClient, CircuitState, FailFastError, unwrap

# One asks for the time in a way that Python has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:.*utcnow")

REFUSED = (CircuitBreakerError, FailFastError, OpenedState)


@pytest.fixture
def ours(example):
    """The function without a library around it."""
    return example("in_place_of_breakers")


@pytest.fixture
def with_purgatory(example):
    """The function with a circuit that opens for a moment."""
    functions = example("with_purgatory")
    functions.circuits.default_ttl = 0.5
    return functions


@pytest.fixture
def with_aiobreaker(example):
    """The function with a circuit that opens for a moment."""
    functions = example("with_aiobreaker")
    functions.breaker.timeout_duration = timedelta(seconds=0.5)
    return functions


@pytest.fixture(params=["with_purgatory", "with_aiobreaker"])
def theirs(request):
    """Each of the two other libraries in turn."""
    return request.getfixturevalue(request.param)


async def outcome_of(functions, session):
    try:
        return await functions.fetch_order(session)
    except aiohttp.ClientResponseError as error:
        return error.status
    except REFUSED:
        return "refused"
    except TimeoutError:
        return "cancelled"


async def outcomes_of(functions, url, calls=7):
    async with functions.new_session(url) as session:
        return [await outcome_of(functions, session) for _ in range(calls)]


async def test_circuit_opens_after_five_failures(with_purgatory, ours, scripted):
    """And sends nothing more."""
    servers, outcomes = [], []
    for functions in (with_purgatory, ours):
        server, url = await scripted(503)
        servers.append(server)
        outcomes.append(await outcomes_of(functions, url))

    assert [[503] * 5 + ["refused"] * 2] * 2 == outcomes
    assert [5, 5] == [len(server.methods) for server in servers]


async def test_failure_that_opens_a_circuit_is_the_callers(
    with_aiobreaker, ours, scripted
):
    """The other library raises that the circuit is open in its place."""
    _, url = await scripted(503)
    replaced = await outcomes_of(with_aiobreaker, url, calls=5)
    _, url = await scripted(503)
    kept = await outcomes_of(ours, url, calls=5)

    assert [503] * 4 + ["refused"] == replaced
    assert [503] * 5 == kept


async def test_mistakes_of_the_caller_open_no_circuit(theirs, ours, scripted):
    """They say that the server is well."""
    _, url = await scripted(404)
    refused = await outcomes_of(theirs, url)
    _, url = await scripted(404)
    answered = await outcomes_of(ours, url)

    assert "refused" == refused[-1]
    assert [404] * 7 == answered


async def test_calls_that_are_cancelled_open_no_circuit(
    with_purgatory, with_aiobreaker, ours, scripted
):
    """They say nothing about the server."""
    left = asyncio.Event()

    async def silent(request):
        await left.wait()
        return web.Response()

    async def impatiently(functions):
        _, url = await scripted(silent)
        async with functions.new_session(url) as session:

            async def call():
                async with asyncio.timeout(0.02):
                    return await functions.fetch_order(session)

            asked = type(functions)(fetch_order=lambda _: call())
            return [await outcome_of(asked, session) for _ in range(11)][-1]

    outcomes = [
        await impatiently(functions)
        for functions in (with_purgatory, with_aiobreaker, ours)
    ]
    left.set()

    assert ["refused", "cancelled", "cancelled"] == outcomes


async def test_trial_is_one_request(theirs, ours, scripted):
    """Not as many as there are calls when the server comes back."""

    async def all_at_once(functions, session):
        calls = [outcome_of(functions, session) for _ in range(10)]
        return (await asyncio.gather(*calls)).count("refused")

    async def slowly(request):
        await asyncio.sleep(0.1)
        return web.json_response({"state": "done"})

    _, url = await scripted(*[503] * 5, slowly)
    async with theirs.new_session(url) as session:
        for _ in range(5):
            await outcome_of(theirs, session)
        await asyncio.sleep(0.6)
        refused_there = await all_at_once(theirs, session)
    _, url = await scripted(*[503] * 5, slowly)
    async with ours.new_session(url) as session:
        for _ in range(5):
            await outcome_of(ours, session)
        (breaker,) = unwrap(session, CircuitBreakerClient).circuit_breakers.values()
        breaker.enter_state(CircuitState.HALF_OPEN)
        refused_here = await all_at_once(ours, session)

    assert [0, 9] == [refused_there, refused_here]
