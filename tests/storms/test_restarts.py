"""One server that goes away for a while: what its callers lose.

In virtual time, through real sessions; a quarter of the calls are POSTs, of which only
those count that the server has not had.
"""

from __future__ import annotations

from functools import partial

import pytest
from one_server import (
    SEEDS,
    URL_OF_IT,
    Away,
    Client,
    Kind,
    Run,
    mean,
    no_retries,
    run,
    standard,
)

from aioretry_smithy import SessionBuilder
from aioretry_smithy.testing import SimulatedRun, simulate

KINDS = ("refused", "swallowed", "reset", "503")
BEGIN, AFTERWARDS = 2.0, 1.0
LONG = pytest.mark.long
RELEASE = pytest.mark.long, pytest.mark.release


def restart(
    seed: int,
    kind: Kind,
    length: float,
    *,
    rate: float = 20.0,
    processes: int = 1,
    client: Client | None = None,
) -> Run:
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


def failed(seed: int, kind: Kind, length: float, client: Client) -> int:
    return restart(seed, kind, length, client=client).failed


@pytest.mark.parametrize("rate", [2, 20, pytest.param(200, marks=LONG)])
@pytest.mark.parametrize("length", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("kind", KINDS)
def test_no_call_is_lost_in_a_restart(kind, length, rate):
    """However short, however many calls there are, and whatever they meet."""
    runs = [restart(seed, kind, length, rate=rate) for seed in SEEDS]

    assert [0, 0, 0] == [each.lost for each in runs]


@pytest.mark.parametrize(
    "length",
    [*(pytest.param(each, marks=RELEASE) for each in (0.3, 1.0)), 3.0],
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


def herd(**settings: object) -> SimulatedRun:
    """Restart a server that is used to 70 %, whose queue has no end."""

    def chain() -> SessionBuilder:
        return SessionBuilder.standard(URL_OF_IT, logging=None, **settings)

    return simulate(
        {"it": chain},
        clients=5,
        rate=70.0,
        capacity=100.0,
        restart="10:3",
        duration=45.0,
    ).runs["it"]


def seconds_lost(done: SimulatedRun) -> float:
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
