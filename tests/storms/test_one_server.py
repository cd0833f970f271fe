"""One server that goes away, fails by chance or on one path, or sheds too much."""

import math
from functools import partial
from statistics import fmean

import aiohttp
import pytest
from one_server import (
    ANSWER,
    BAD_PATH,
    SEEDS,
    URL_OF_IT,
    Away,
    Busy,
    failing,
    mean,
    no_retries,
    one_bad_path,
    run,
    standard,
)

from aioretry_smithy import SessionBuilder
from aioretry_smithy.testing import simulate

KINDS = ("refused", "swallowed", "reset", "503")
BEGIN, AFTERWARDS = 2.0, 1.0
LONG = pytest.mark.long
RELEASE = pytest.mark.long, pytest.mark.release


def restart(seed, kind, length, *, rate=20.0, processes=1, client=None):
    """Have a server go away once."""
    end = BEGIN + length
    return run(
        seed,
        client or standard(),
        Away(kind, [(BEGIN, end)]),
        rate=rate,
        seconds=end + AFTERWARDS,
        processes=processes,
        posts=0.25,
    )


def failed(seed, kind, length, client):
    return restart(seed, kind, length, client=client).failed


@pytest.mark.parametrize("rate", [2, 20, pytest.param(200, marks=LONG)])
@pytest.mark.parametrize("length", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("kind", KINDS)
def test_no_call_is_lost_in_a_restart(kind, length, rate):
    """However short, however many calls there are, and whatever they meet."""
    runs = [restart(seed, kind, length, rate=rate) for seed in SEEDS]

    assert [0, 0, 0] == [each.lost for each in runs]


@pytest.mark.parametrize(
    "length", [*(pytest.param(each, marks=RELEASE) for each in (0.3, 1.0)), 3.0]
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.long
def test_no_call_is_lost_by_a_fleet(kind, length):
    """Five hundred processes that make less than a call in two seconds each."""
    assert 0 == restart(1, kind, length, rate=200, processes=500).lost


@pytest.mark.parametrize(
    ("length", "most"), [(6.0, 0.4), pytest.param(20.0, 0.97, marks=LONG)]
)
@pytest.mark.parametrize("kind", ["refused", "reset", "503"])
def test_longer_outage_costs_less_than_without_retries(kind, length, most):
    """Calls wait for five seconds: the last ones that began in it are not lost."""
    ours, bare = (
        mean(partial(failed, kind=kind, length=length, client=client))
        for client in (standard(), no_retries())
    )

    assert ours <= most * bare


@pytest.mark.parametrize(("rate", "longest"), [(0.2, 5.0 + 7.5), (20.0, 5.0 + 2.5)])
@pytest.mark.parametrize("kind", ["refused", "reset", "503"])
def test_nobody_hears_of_a_long_outage_late(kind, rate, longest):
    """What a call waits adds up, also of one that is alone and asks each time."""
    away = Away(kind, [(BEGIN, BEGIN + 60.0)])
    done = run(1, standard(), away, rate=rate, seconds=55.0)

    # Backoffs come on top: those of all attempts, or those until the circuit is open.
    assert 5.0 < max(each.ended - each.began for each in done.calls) <= longest


@pytest.mark.long
def test_long_silence_of_the_network_costs_more_than_without_retries():
    """Connections that nobody answers for look like overload, which nothing waits for.

    The kernel asks again after 1, 3 and 7 s; who does not fail fast gets through.
    """
    ours, bare = (
        mean(partial(failed, kind="swallowed", length=20.0, client=client))
        for client in (standard(), no_retries())
    )

    assert bare < ours <= 1.75 * bare


@pytest.mark.parametrize("away", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("kind", ["refused", "reset", "503"])
def test_no_call_is_lost_where_a_server_flaps(kind, away):
    """It is up for two seconds and away for less, again and again."""
    times = [(2.0 + n * (2.0 + away), 2.0 + n * (2.0 + away) + away) for n in range(5)]
    done = run(
        1, standard(), Away(kind, times), rate=20, seconds=times[-1][1] + 1, posts=0.25
    )

    assert 0 == done.lost


def herd(**settings):
    """Restart a server that is used to 70 %, whose queue has no end."""

    def chain():
        return SessionBuilder.standard(URL_OF_IT, logging=None, **settings)

    return simulate(
        {"it": chain},
        clients=5,
        rate=70.0,
        capacity=100.0,
        restart="10:3",
        duration=45.0,
    ).runs["it"]


def seconds_lost(done):
    return sum(done.failed) / 70.0


@pytest.mark.long
def test_attempts_shorter_than_the_backlog_lose_calls():
    """All who have waited come at once; those that are given up are served, too."""
    ours, patient = herd(attempt_timeout=1.0), herd()

    assert 0 == sum(patient.failed)
    assert 3.0 < seconds_lost(ours) <= 8.0
    assert ours.seconds_to_recover <= 10


@pytest.mark.long
def test_limit_that_learns_lets_them_come_as_the_server_bears():
    """So fewer calls are lost where attempts are short."""
    limited = herd(attempt_timeout=1.0, concurrency="aimd")

    assert seconds_lost(limited) <= 3.7
    assert seconds_lost(limited) < seconds_lost(herd(attempt_timeout=1.0))


OF_A_GATEWAY = 502, 503, aiohttp.ServerDisconnectedError
FIRST = 100
MANY_SEEDS = {2: range(1, 11), 20: range(1, 11), 200: range(1, 81)}
"""By the rate: of a run of five seconds a few trials that fail in a row lose half."""


def by_chance(seed, share, rate, calls):
    server = failing(seed, share, *OF_A_GATEWAY)
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


def minute(seed, server, processes, rate):
    return run(seed, standard(), server, rate=rate, seconds=75, processes=processes)


def hangs_for_a_minute(now, path):
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


def shedding(seed, client, price, processes, **headers):
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
