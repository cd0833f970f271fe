"""What backoff does around a call of aiohttp, and what stands in its place."""

import asyncio

import pytest

pytest.importorskip("backoff.types")  # "backoff" is a folder of these tests too

from aiohttp import web
from chains import connected

from aioretry_smithy import ResponseTimeoutError
from aioretry_smithy.testing import ScriptedTransport

# From Python 3.14 on.
pytestmark = pytest.mark.filterwarnings("ignore:.*iscoroutinefunction")


def pending(request):
    return web.json_response({"state": "pending"})


@pytest.mark.parametrize(
    ("name", "answers", "expected"),
    [
        ("fetch_in_time", [503, 503, 200], {"state": "done"}),
        ("fetch_when_done", [pending, pending, 200], {"state": "done"}),
        ("fetch_when_done", [pending] * 3, {"state": "pending"}),
    ],
)
async def test_same_calls_with_the_same_outcome(
    either, scripted, waits, name, answers, expected
):
    """Each function asks as often as the one it stands for."""
    server, url = await scripted(*answers)
    async with either.new_session(url) as session:
        answer = await getattr(either, name)(session)

    assert expected == answer
    assert len(answers) == len(server.methods)


@pytest.mark.virtual_time
async def test_deadline_cuts_an_attempt(theirs, ours, outcome_of):
    """The other limit is looked at between two attempts."""

    async def silent(ctx, request):
        await asyncio.sleep(60.0)
        return 200, {"Content-Type": "application/json"}, b"{}"

    outcomes = []
    for functions in (theirs, ours):
        async with connected(
            "http://localhost", ScriptedTransport([silent])
        ) as session:
            outcomes.append(await outcome_of(functions.fetch_in_time(session)))

    assert [({}, 60.0), (ResponseTimeoutError, 10.0)] == outcomes


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("failure", "expected", "calls"),
    [
        (None, "an order", ["fetch", "log_in", "fetch"]),
        (PermissionError, PermissionError, ["fetch", "log_in"]),
    ],
)
async def test_what_is_done_before_a_retry_may_end_the_call(
    either, outcome_of, failure, expected, calls
):
    """A wrong password reaches the caller, who would not see it from a listener."""
    seen = []

    class Client:
        async def log_in(self):
            seen.append("log_in")
            if failure is not None:
                raise failure

        async def fetch(self):
            seen.append("fetch")
            if "log_in" not in seen:
                raise either.NotLoggedInError
            return "an order"

    outcome, _ = await outcome_of(either.fetch_as_user(Client()))

    assert (expected, calls) == (outcome, seen)
