"""Endpoints in trouble: what callers notice of it, and its bounds.

The model of the goals, through real chains in virtual time: calls of one process, three
replicas, answers with a median of 10 ms. Figures are means of three seeds.
"""

import math
from functools import cache, partial
from itertools import pairwise

import pytest
from replica_model import (
    BEGIN,
    LENGTH,
    SEEDS,
    Run,
    Worker,
    hedging_chain,
    mean,
    refuses,
    retrying_chain,
    run,
    slower,
    standard_chain,
    swallows,
    unavailable,
)

from aioretry_smithy import EndpointSelectionStrategy

# One process runs them all: each simulation serves several tests.
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("endpoints")]
END = BEGIN + LENGTH
FEW_SEEDS = SEEDS[:2]
ROUND_ROBIN = EndpointSelectionStrategy.round_robin()
DEAD = {"refuses": refuses, "answers 503": unavailable}

dead = pytest.mark.parametrize("trouble", DEAD.values(), ids=DEAD)


@cache
def one_of_three(trouble, **settings):
    """Run what several tests look at."""
    return [run(seed, {0: trouble}, **settings) for seed in FEW_SEEDS]


def test_all_is_well_before():
    """Without trouble a call takes as long as an answer, and all do the same."""
    runs = one_of_three(refuses)
    sent = [each.sent_between(0, BEGIN) for each in runs]

    assert all(each.success(0, BEGIN) == 1 for each in runs)
    assert all(each.attempts_per_call(0, BEGIN) == 1 for each in runs)
    assert mean(runs, lambda each: each.percentile(0.99, 0, BEGIN)) <= 36
    assert all(counts[0] / counts.total() >= 0.25 for counts in sent)


@dead
def test_nobody_notices_a_dead_one(trouble):
    """All calls succeed, hardly later; it gets a request now and then."""
    runs = one_of_three(trouble)
    left_alone = BEGIN + 0.1

    assert all(each.success(BEGIN, END) == 1 for each in runs)
    assert mean(runs, lambda each: each.percentile(0.99)) <= 36
    assert mean(runs, Run.attempts_per_call) <= 1.01
    assert all(len(each.sent_to(0, left_alone)) <= 0.5 * LENGTH for each in runs)


@pytest.mark.release
def test_black_hole_is_out_once_it_has_let_a_request_wait():
    """Then it gets one request at a time, at most six in a minute."""
    runs = [run(seed, {0: swallows}, length=60.0, end=BEGIN + 60) for seed in FEW_SEEDS]
    for each in runs:
        trials = each.sent_to(0, BEGIN + 1.0 + 0.020, BEGIN + 60)
        pauses = [after - before for before, after in pairwise(trials)]

        assert each.success() == 1
        assert len(trials) <= 6
        assert all(pause >= 1.0 for pause in pauses)
    assert mean(runs, lambda each: each.percentile(0.99, BEGIN, BEGIN + 60)) <= 36


@pytest.mark.parametrize("rate", [20.0, pytest.param(200.0, marks=pytest.mark.release)])
def test_slow_one_gets_little(rate):
    """One of ten times the latency hardly raises the 99th percentile."""
    runs = one_of_three(slower(10), rate=rate)

    assert all(each.success() == 1 for each in runs)
    assert mean(runs, lambda each: each.percentile(0.99)) <= 50 * 1.1
    assert mean(runs, lambda each: each.share(0)) <= 0.015


@pytest.mark.release
def test_hedges_go_elsewhere():
    """With one that is slow they cut what is left of the tail."""
    runs = one_of_three(slower(10), chain=hedging_chain)

    assert all(each.success() == 1 for each in runs)
    assert mean(runs, lambda each: each.percentile(0.999)) <= 70


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(refuses, marks=pytest.mark.release),
        pytest.param(unavailable, marks=pytest.mark.release),
        swallows,
    ],
    ids=lambda each: each.__name__,
)
def test_all_that_failed_serve_as_soon_as_they_can(trouble):
    """When all have failed for 16 s, whatever begins after that succeeds."""
    back = BEGIN + 16
    for seed in FEW_SEEDS:
        done = run(seed, dict.fromkeys(range(3), trouble), length=16.0, end=back + 20)

        assert done.success(back) == 1


def cold_return(seed, selection):
    """Return the 99th percentile while one is slow that was down for 4 s."""
    cold = Worker(8, down=4.0, cold=10.0, times=5.0)
    replicas = iter([cold, Worker(8), Worker(8)])
    done = run(
        seed,
        {},
        usual=lambda: next(replicas),
        begin=5.0,
        length=30.0,
        end=24.0,
        rate=500.0,
        selection=selection,
    )
    assert cold.back_at is not None
    return done.percentile(0.99, cold.back_at, cold.back_at + 10)


@pytest.mark.release
def test_one_that_is_back_may_be_slow_at_first():
    """What it does not do yet the others do; under round robin it is overrun."""
    usual = EndpointSelectionStrategy.peak_ewma()
    took = [cold_return(seed, usual) for seed in FEW_SEEDS]

    assert sum(took) / len(took) <= 90
    assert cold_return(SEEDS[0], ROUND_ROBIN) >= 250


@pytest.mark.release
@pytest.mark.parametrize("processes", [1, 50])
def test_equal_ones_do_the_same(processes):
    """Ten that are busy for 85 % of the time get as much, but for chance."""
    places, mean_time = 4, 0.010 * math.exp(0.5**2 / 2)
    done = run(
        1,
        {},
        replicas=10,
        usual=lambda: Worker(places),
        rate=0.85 * 10 * places / mean_time,
        end=13.0,
        processes=processes,
    )
    sent = done.sent_between(3.0, 13.0)
    usually = sent.total() / 10

    # The highest of ten is 1.5 standard deviations above what each is to get.
    assert max(sent.values()) / usually <= 1.05 + 1.5 / math.sqrt(usually)


def of_finagle(selection, seconds=60.0):
    """Return the share that is answered within 1 s, with one that takes 2 s."""
    done = run(
        1,
        {0: lambda since, seconds: (200, 2.0)},
        replicas=11,
        rate=1000.0,
        median=0.167,
        sigma=0.03,
        begin=seconds / 4,
        length=seconds / 2,
        end=seconds,
        chain=partial(retrying_chain, timeout=10.0),
        selection=selection,
    )
    return done.within(1.0, 0.0, seconds)


@pytest.mark.release
def test_run_that_finagle_was_measured_by():
    """1000 calls a second to eleven, one of which is slow for half of it."""
    assert of_finagle(EndpointSelectionStrategy.peak_ewma()) >= 0.999
    assert of_finagle(ROUND_ROBIN, seconds=20.0) <= 0.96


def test_nobody_waits_for_a_group_that_is_away():
    """Its budget is used up at once, and its endpoints have no circuits."""
    away = dict.fromkeys(range(3), refuses)
    done = run(
        7, away, begin=5.0, length=1.0, end=10.0, rate=200.0, chain=standard_chain
    )

    assert done.success(5.0, 6.0) <= 0.1
    assert 1 == done.success(6.0)


@pytest.mark.parametrize(
    ("processes", "load"),
    [
        (1, 1.02),
        pytest.param(50, 1.25, marks=pytest.mark.release),
        pytest.param(500, 3.2, marks=pytest.mark.release),
    ],
)
@dead
def test_total_outage_is_no_storm(trouble, processes, load):
    """The standard chain sends little more than clients without retries do.

    Servers that refuse at once look like ones that are away, so each of many slow
    processes tries each of them a few times before its circuits open.
    """
    done = run(
        7,
        dict.fromkeys(range(3), trouble),
        begin=5.0,
        length=10.0,
        end=25.0,
        rate=200.0 if processes == 1 else 700.0,
        chain=standard_chain,
        processes=processes,
    )

    assert done.attempts_per_call(5.0, 15.0) <= load
    assert done.success(15.0) == 1
