"""Every kind of request, bare and through chains: the same on the wire and back."""

import aiohttp
import hypothesis
import pytest
from request_kinds import KINDS, outcome, requests_sent

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    LoggingClient,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    decorate,
)

IS_RELEASE = hypothesis.settings.get_current_profile_name() == "release"
RETRY_COUNT = b"armeria-retry-count: 1\r\n"


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
    # By its class and place it is a failed connection, which chains try again.
    "server_hostname, a number": pytest.mark.skipif(
        IS_RELEASE, reason="aiohttp meets it while it connects, by an AttributeError"
    ),
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
    return (
        SessionBuilder(**settings)
        .decorator(RetryingClient.new_decorator(strategy, max_total_attempts=2))
        .build()
    )


def ways_of(name):
    """Return how sessions are made for a kind: in all ways, or in one in its turn.

    That a chain lets a kind through is also recorded, see ``story_sets.py``.
    """
    if IS_RELEASE:
        return WAYS
    way = [*WAYS][[*KINDS].index(name) % len(WAYS)]
    return {way: WAYS[way]}


@pytest.mark.parametrize("name", marked(CHANGED))
async def test_chain_changes_nothing(name, scene):
    """Through every chain go the same bytes, and the same comes of them."""
    bare = await outcome(scene, KINDS[name], aiohttp.ClientSession)
    outcomes = {
        way: await outcome(scene, KINDS[name], new_session)
        for way, new_session in ways_of(name).items()
    }

    assert dict.fromkeys(outcomes, bare) == outcomes


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
