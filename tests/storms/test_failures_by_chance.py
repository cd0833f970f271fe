"""A server that fails by chance, always, on one path, or sheds what is too much."""

from __future__ import annotations

import math
from statistics import fmean

import aiohttp
import pytest
from one_server import (
    ANSWER,
    BAD_PATH,
    SEEDS,
    Away,
    Busy,
    Client,
    Run,
    failing,
    no_retries,
    one_bad_path,
    run,
    standard,
)

KINDS = 502, 503, aiohttp.ServerDisconnectedError
LONG = pytest.mark.long
FIRST = 100
MANY_SEEDS = {2: range(1, 11), 20: range(1, 11), 200: range(1, 81)}
"""By the rate: of a run of five seconds a few trials that fail in a row lose half."""


def by_chance(seed: int, share: float, rate: float, calls: int) -> Run:
    server = failing(seed, share, *KINDS)
    return run(seed, standard(), server, rate=rate, seconds=calls / rate)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3])
@pytest.mark.parametrize(
    ("rate", "calls"),
    [(20, 300), *(pytest.param(rate, 1000, marks=LONG) for rate in (2, 20, 200))],
)
def test_failures_by_chance_hardly_reach_the_caller(share, rate, calls):
    """Gateways that answer 502 and 503, and connections that break."""
    runs = [by_chance(seed, share, rate, calls) for seed in SEEDS]
    first = [each.is_good for done in runs for each in done.calls[:FIRST]]

    assert 0.995 <= fmean(done.success for done in runs)
    assert 0.995 <= fmean(first)


@pytest.mark.parametrize("rate", [2, 20, 200])
@pytest.mark.long
def test_half_of_all_requests_may_fail(rate):
    """Of many runs: in one of them trials may fail so often that calls give up."""
    runs = [by_chance(seed, 0.5, rate, 1000) for seed in MANY_SEEDS[rate]]
    first = [each.is_good for done in runs for each in done.calls[:FIRST]]

    assert 0.95 <= fmean(done.success for done in runs)
    assert 0.95 <= fmean(first)


def minute(seed: int, server: object, processes: int, rate: float) -> Run:
    return run(seed, standard(), server, rate=rate, seconds=75, processes=processes)


def hangs_for_a_minute(now: float, path: str) -> tuple[int, float, bool]:
    return 200, math.inf if 5 <= now < 65 else ANSWER, True


@pytest.mark.parametrize(
    ("processes", "rate", "most"),
    # Of a fleet each process makes a call or two a second.
    [(1, 20, 0.05), (25, 35, 0.32)],
    ids=["one", "fleet"],
)
@pytest.mark.parametrize("kind", ["refused", "reset", "503"])
@pytest.mark.long
def test_minute_of_failures_is_left_alone(kind, processes, rate, most):
    """A server that is gone gets few requests, and is found when it is back."""
    done = minute(1, Away(kind, [(5.0, 65.0)]), processes, rate)

    assert done.between(5, 65).load <= most
    assert 0 == done.between(67).lost


@pytest.mark.long
def test_minute_without_an_answer_is_left_alone_too():
    """Attempts that time out cost the server most."""
    done = minute(1, hangs_for_a_minute, 1, 20)

    assert done.between(5, 65).load <= 0.32
    assert 0 == done.between(70).lost


CAPACITY, DIP = 100.0, (10.0, 20.0, 0.2)


def shedding(
    seed: int, client: Client, price: float, processes: int, **headers: str
) -> Run:
    """Overload a server that answers 503 at once where its queue is long."""
    server = Busy(CAPACITY, DIP, sheds_at=0.2, price=price, headers=headers)
    return run(seed, client, server, rate=70, seconds=45, processes=processes)


@pytest.mark.parametrize("processes", [5, 50])
@pytest.mark.long
def test_shedding_loses_hardly_more_calls_than_without_retries(processes):
    """A 503 at once looks like a failure that cost nothing; so does a busy server's."""
    ours, bare = (
        [shedding(seed, client, 0.05, processes) for seed in SEEDS]
        for client in (standard(1.0), no_retries(1.0))
    )

    assert sum(each.failed for each in ours) <= 1.02 * sum(each.failed for each in bare)
    assert max(each.between(*DIP[:2]).load for each in ours) <= 2.1


@pytest.mark.long
def test_retry_after_spares_a_server_that_sheds():
    """Who says when to come back gets fewer requests until then."""
    plain, told = (
        shedding(1, standard(1.0), 0.05, 5, **more).between(*DIP[:2]).load
        for more in ({}, {"Retry-After": "1"})
    )

    assert told < plain


@pytest.mark.parametrize("bad", [0.2, 0.4])
@pytest.mark.parametrize("rate", [20, pytest.param(200, marks=LONG)])
def test_path_that_always_fails_hardly_harms_the_others(rate, bad):
    """Which fail twice in a hundred themselves; all go to one host."""
    seconds = 300 / rate + 10
    done = [
        run(
            seed,
            standard(),
            one_bad_path(seed, 0.02),
            rate=rate,
            seconds=seconds,
            bad=bad,
        )
        for seed in MANY_SEEDS
    ]
    others = [each.of_path(BAD_PATH, others=True).success for each in done]

    assert 0.996 <= fmean(others)
