"""Functions that answer in turn, and retries beside those of other libraries."""

from __future__ import annotations

import asyncio
import itertools
import ssl

import aiohttp
import chains
import pytest
from balanced import call
from chains import refused

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetryRule,
    rpc,
)


def lookups(*outcomes, seconds=0.25):
    """Make a function that raises or returns each of the outcomes in turn."""
    pending = iter(outcomes)

    async def fetch():
        await asyncio.sleep(seconds)
        outcome = next(pending)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return fetch


def observed(telemetry, *inside, name="fetch", **settings):
    """Decorate with telemetry in both places around a retrying client."""
    rule = RetryRule(exceptions=[LookupError], backoff=Backoff.fixed(1.0))
    retry = RetryingRpcClient.new_decorator(rule, **settings)
    return rpc(*inside, telemetry, retry, telemetry, name=name)


URL = "https://api.example.com/orders"


def chain(tracing, answers, *, inside=True, outside=True, **settings):
    """Tracing in one or both places around a retrying client."""
    parts = [tracing] * inside, [chains.retrying(chains.SAFELY)], [tracing] * outside
    return chains.chain(answers, *itertools.chain(*parts), **settings)


async def get(builder, **options):
    async with builder.build() as session, session.get(URL, **options):
        pass


async def get_in_vain(builder, answer):
    """Make a call that ends with an answer, or is ended by it."""
    if answer == 200:
        await get(builder)
    else:
        with pytest.raises(type(answer)):
            await get(builder)


GONE = ConnectionResetError("gone")


class SameCalls:
    """Both make the same calls, with the same outcome."""

    async def test_each_function_asks_as_often(
        self, either, failing, name, outcomes, expected, outcome_of
    ):
        """As often as the one it stands for, and no more."""
        client = failing(outcomes)

        result, _ = await outcome_of(getattr(either, name)(client))

        assert expected == result
        assert len(outcomes) == len(client.starts)


class Different:
    """What differs on purpose."""

    waits: tuple[float, ...]
    """The plain waits of ``fetch_patiently``."""
    added: float
    """The seconds that the library adds to each at most."""

    async def test_an_attempt_is_cut_at_the_deadline(
        self, theirs, ours, failing, outcome_of
    ):
        """The library looks at its limit between two attempts."""
        silent = {"outcomes": ["late"], "seconds": 60.0}
        late = await outcome_of(theirs.fetch_within_ten_seconds(failing(**silent)))
        cut = await outcome_of(ours.fetch_within_ten_seconds(failing(**silent)))

        assert [("late", 60.0), (ResponseTimeoutError, 10.0)] == [late, cut]

    async def test_jitter_is_a_share_of_the_wait(self, theirs, ours, failing):
        """And not so many seconds of any wait."""
        clients = [failing([GONE, GONE, GONE, "a"]) for _ in range(2)]
        await theirs.fetch_patiently(clients[0])
        await ours.fetch_patiently(clients[1])
        added, scaled = (
            [later - earlier for earlier, later in itertools.pairwise(client.starts)]
            for client in clients
        )
        shares = [wait / plain for wait, plain in zip(scaled, self.waits, strict=True)]

        half = self.added / 2
        middle = [plain + half for plain in self.waits]
        assert middle == pytest.approx(added, abs=half + 0.001)
        assert [1.0] * 3 == pytest.approx(shares, abs=0.201)

    async def test_retries_do_not_multiply(self, theirs, ours, failing, outcome_of):
        """A call that was given up inside is not tried again outside."""
        clients = [failing(itertools.repeat(GONE)) for _ in range(2)]
        await outcome_of(theirs.fetch_nested(clients[0]))
        await outcome_of(ours.fetch_nested(clients[1]))

        assert [9, 3] == [len(client.starts) for client in clients]


def certificate():
    """Make the error of a server with a wrong certificate."""
    key = refused().args[0]
    return aiohttp.ClientConnectorCertificateError(
        key, ssl.SSLCertVerificationError(1, "Hostname mismatch")
    )


async def logged(fleet, group, *decorators, **options):
    """Make one call, and return its status, its log and who was asked."""
    settings = {name: options.pop(name) for name in ("timeout",) if name in options}
    async with fleet.session(group, *decorators, **settings) as client:
        status, log = await call(client, **options)
    return status, log, fleet.text


def delays(log):
    """Return the wait after each attempt but the last, and its source."""
    return [(each.delay, each.delay_source) for each in log.children[:-1]]


class Breakers:
    """A circuit breaker per host, the first failure of which opens it."""

    def __init__(self, *opened, window=20.0):
        self.window = window
        self.opened = opened
        self.keys = []
        self.decorator = CircuitBreakerClient.new_per_host_decorator(self.make)

    def make(self, key):
        self.keys.append(key)
        breaker = CircuitBreaker(
            key, minimum_request_threshold=1, circuit_open_window=self.window
        )
        if key[0] in self.opened:
            breaker.enter_state(CircuitState.OPEN)
        return breaker
