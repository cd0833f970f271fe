"""Every kind of telemetry shares its place in the chain, and its manners."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
)
from aioretry_smithy._context.client import chain_of
from aioretry_smithy._telemetry.client import Observation, TelemetryClient
from aioretry_smithy.testing import ScriptedTransport

URL = "http://example.com/"


class Note(Observation):
    """Writes down how it went."""

    def __init__(self, request, notes):
        self.request = request
        self._notes = notes

    def end(self, ctx, cause):
        status = None if cause is not None else self.response.status
        self._notes.append((ctx.attempt, status, ctx.log.duration is not None))


class Observer(TelemetryClient):
    """Keeps notes, or fails, or is not heard."""

    notes: list[object]
    heard = True
    fails_at = None

    def __init__(self, delegate):
        super().__init__(delegate, id(self.notes))

    def begin(self, ctx, request):
        if self.fails_at == "begin":
            raise LookupError("begin")
        if not self.heard:
            return None
        notes = None if self.fails_at == "end" else self.notes
        return Note(request.with_header("X-Seen", "1"), notes)


def observer(**attributes):
    return type("OneObserver", (Observer,), {"notes": [], **attributes})


one = observer()


def places(decorators):
    """Return what each observer of a chain sees, from the outside in."""
    client = ScriptedTransport([])
    for decorator in decorators:
        client = decorator(client)
    return [
        (link.sees_calls, link.is_innermost)
        for link in chain_of(client)
        if isinstance(link, Observer)
    ]


retry = RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.fixed(1)))


@pytest.mark.parametrize(
    ("decorators", "expected"),
    [
        ([one], [(False, True)]),
        ([one, retry], [(False, True)]),
        ([retry, one], [(True, True)]),
        ([one, retry, one], [(True, False), (False, True)]),
        ([one, one], [(True, False), (False, True)]),
    ],
    ids=["alone", "inside", "outside", "both", "twice without retries"],
)
def test_place_says_what_is_seen(decorators, expected):
    """Attempts inside, calls outside; where nothing retries the call is an attempt."""
    assert expected == places(decorators)


def test_other_listeners_do_not_count():
    """One listener inside does not make another one outside see calls."""
    other = observer()

    assert [(False, True)] * 2 == places([one, other])
    assert [(True, False), (True, False), (False, True), (False, True)] == places(
        [one, other, retry, one, other]
    )


def test_retries_further_in_are_known():
    """A client inside of them, or without them, is told apart."""
    client = retry(one(ScriptedTransport([])))

    assert [True, False] == [
        link.surrounds_retries
        for link in chain_of(one(client))
        if isinstance(link, Observer)
    ]


async def call(decorator, answers, *, retries=True):
    transport = ScriptedTransport(answers)
    builder = SessionBuilder().decorator(transport).decorator(decorator)
    if retries:
        builder = builder.decorator(retry)
    with capture_logs() as logs:
        try:
            async with builder.build() as session, session.get(URL):
                pass
        except (aiohttp.ClientError, asyncio.CancelledError):
            pass
    return transport, logs[0]


async def test_every_attempt_is_observed():
    """Each is reported at its end, when its log is complete."""
    decorator = observer()

    transport, _ = await call(decorator, [503, aiohttp.ServerDisconnectedError(), 200])

    assert [(1, 503, True), (2, None, True), (3, 200, True)] == decorator.notes
    assert ["1"] * 3 == [request.headers["X-Seen"] for request in transport.requests]


async def test_cancelled_attempt_is_observed():
    """Cancellation is an end too."""
    decorator = observer()

    await call(decorator, [asyncio.CancelledError()])

    assert [(1, None, True)] == decorator.notes


async def test_response_that_is_none_is_a_failure():
    """A decorator that forgets to return is found out here, not in an observer."""
    decorator = observer()

    class Forgetful:
        async def execute(self, ctx, request):
            """Return nothing."""

    builder = SessionBuilder().decorator(lambda delegate: Forgetful())
    async with builder.decorator(decorator).build() as session:
        with pytest.raises(TypeError, match="expected: what the delegate returned"):
            await session.get(URL)

    assert [(None, None, True)] == decorator.notes


async def test_who_is_not_heard_does_nothing():
    """The request passes through as it is."""
    transport, _ = await call(observer(heard=False), [200])

    assert transport.contexts[0].request is transport.requests[0]


@pytest.mark.parametrize("where", ["begin", "end"])
@pytest.mark.parametrize("answer", [200, aiohttp.InvalidURL("x")])
async def test_error_of_an_observer_changes_nothing(where, answer, caplog):
    """It is logged, and the call ends as it would have."""
    _, log = await call(observer(fails_at=where), [answer])

    (record,) = caplog.records
    assert ("aioretry_smithy", "WARNING") == (record.name, record.levelname)
    assert record.exc_info is not None
    if answer == 200:
        assert 200 == log.response_status
    else:
        assert answer is log.response_cause
