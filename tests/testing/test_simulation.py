"""Simulations: their settings, the chains that go through them, what comes of it."""

import json
import math
from functools import partial

import pytest
from chains import bad_argument, raises_exactly
from one_server import settings

from aioretry_smithy import RequestLog, SessionBuilder, capture_logs
from aioretry_smithy._context.options import UNSET
from aioretry_smithy.testing import simulate
from aioretry_smithy.testing._simulation import read_outage, read_restart

tiny = partial(
    simulate, clients=2, rate=10.0, capacity=15.0, outage=(2.0, 1.0, 0.2), duration=5.0
)


def test_standard_chain_is_compared():
    """By default three chains are run, with the same calls."""
    runs = tiny().runs

    assert ["standard chain", "plain retries", "no retries"] == [*runs]
    assert 1 == len({run.calls for run in runs.values()})
    assert runs["no retries"].calls == runs["no retries"].attempts
    assert 1.0 == runs["no retries"].load_in_outage


@pytest.mark.parametrize(
    ("chains", "names"),
    [
        (SessionBuilder, ["your chain", "plain retries", "no retries"]),
        ({"ours": SessionBuilder, "theirs": SessionBuilder}, ["ours", "theirs"]),
    ],
    ids=["function", "named"],
)
def test_chains_of_the_caller_are_run(chains, names):
    """One takes the place of the standard chain; named ones are run alone."""
    assert names == [*tiny(chains).runs]


def test_results_repeat_exactly():
    """The seed decides about all chance; another one about other calls."""
    first, again, other = (
        tiny({"standard": SessionBuilder.standard}, seed=seed, error_rate=0.3)
        for seed in (1, 1, 2)
    )

    assert first == again
    assert first.runs != other.runs


def test_result_is_plain_json():
    """The result as a dict has the settings, the counts and the measures."""
    result = tiny({"ours": SessionBuilder}, outage="2:1:0.2")
    values = json.loads(json.dumps(result.to_dict()))
    run = result.runs["ours"]

    assert values == result.to_dict()
    assert [2.0, 1.0, 0.2] == values["settings"]["outage"]
    assert 10.0 == values["settings"]["rate"]
    assert {
        "calls": [*run.calls],
        "attempts": [*run.attempts],
        "answered": [*run.answered],
        "failed": [*run.failed],
        "late": [*run.late],
        "by_replica": [[*run.attempts]],
        "shares": [1.0],
        "success": run.success,
        "attempts_per_call": run.attempts_per_call,
        "load_in_outage": run.load_in_outage,
        "seconds_to_recover": run.seconds_to_recover,
    } == values["runs"]["ours"]


def test_simulation_without_an_outage_is_plain_json():
    """No outage is None in the dict too."""
    result = tiny({"ours": SessionBuilder}, outage=None, duration=1.5)

    assert None is result.to_dict()["settings"]["outage"]
    assert 2 == len(result.runs["ours"].calls)


def test_progress_is_told_once_a_second():
    """For each chain by its name, up to its end."""
    told = []
    tiny(
        {"a": SessionBuilder, "b": SessionBuilder}, progress=lambda *it: told.append(it)
    )
    shares = [done for name, done in told if name == "a"]

    assert ["a"] * 6 + ["b"] * 6 == [name for name, _ in told]
    assert [0, 1, 2, 3, 4] == [int(5 * done) for done in shares[:-1]]
    assert 1.0 == shares[-1]


def test_mistake_while_telling_ends_the_simulation():
    """An error of the function comes out as it is."""

    def stop(name, done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny(progress=stop)


def test_blocks_around_hear_nothing():
    """The calls are not those of the code around, and nor are their logs."""
    with capture_logs() as logs:
        tiny({"ours": SessionBuilder})

    assert [] == [log for log in logs if isinstance(log, RequestLog)]


@pytest.mark.parametrize("chains", [{}, SessionBuilder(), "standard", 7])
def test_bad_chains_are_refused(chains):
    """An argument that is neither a function nor a dict of functions is refused."""
    with pytest.raises(ValueError, match=r"^chains: .* a function that returns a new"):
        simulate(chains)


async def later():
    return SessionBuilder()


@pytest.mark.parametrize("chain", [SessionBuilder(), later])
def test_bad_chain_is_refused_by_its_name(chain):
    """Each of the named chains has to be a plain function."""
    with pytest.raises(ValueError, match=r"^chains\['ours'\]: .* a function that"):
        simulate({"fine": SessionBuilder, "ours": chain})


def test_function_without_a_builder_is_refused_by_its_name():
    """A function that returns something else is named in the error."""
    with pytest.raises(ValueError, match=r"^chains\['ours'\]\(\): None"):
        simulate({"ours": lambda: None})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("clients", 0),
        ("clients", 10**12),
        ("outage", "10:20"),
        ("outage", (100, 30, 0.5)),
        ("progress", 7),
    ],
)
def test_bad_settings_are_refused(name, value):
    """A bad argument is refused before anything is run."""
    with pytest.raises(ValueError, match=f"^{name}: "):
        simulate(**{name: value})


async def test_running_loop_is_refused():
    """In an event loop it is an error at once, and no warning besides."""
    with pytest.raises(RuntimeError, match="running event loop"):
        simulate()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("clients", 0, "an integer >= 1 and <= 1000000"),
        ("clients", 2.0, "an integer >= 1 and <= 1000000"),
        ("clients", True, "an integer >= 1 and <= 1000000"),
        ("clients", 10**30, "an integer >= 1 and <= 1000000"),
        ("rate", 0, "finite and > 0"),
        ("rate", math.inf, "finite and > 0"),
        ("rate", 1e308, "> 0 and <= 1000000"),
        ("capacity", "1000", "finite and > 0"),
        ("duration", -1.0, "finite and > 0"),
        ("error_rate", 1.1, ">= 0 and <= 1"),
        ("error_rate", None, ">= 0 and <= 1"),
        ("seed", "7", "an integer"),
    ],
)
def test_bad_number_is_refused(name, value, expected):
    """A number that is out of range is refused by its name."""
    with bad_argument(name, value, expected):
        settings(**{name: value})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"replicas": 0}, "replicas: 0 (expected: an integer >= 1 and <= 1000)"),
        ({"replicas": 2.0}, "replicas: 2.0 (expected: an integer >= 1 and <= 1000)"),
        ({"dead": -1}, "dead: -1 (expected: an integer >= 0)"),
        ({"failing": True}, "failing: True (expected: an integer >= 0)"),
        ({"dead": 4}, "dead: 4 (expected: <= replicas, 3)"),
        ({"failing": 4}, "failing: 4 (expected: <= replicas, 3)"),
        ({"dead": 2, "failing": 2}, "failing: 2 (expected: <= replicas left, 1)"),
        ({"slow": 0.5}, "slow: 0.5 (expected: finite and >= 1)"),
        ({"slow": math.inf}, "slow: inf (expected: finite and >= 1)"),
        (
            {"slow": 10.0, "dead": 2, "failing": 1},
            "slow: 10.0 (expected: 1 where dead and failing are all of 3 replicas)",
        ),
        (
            {"dead": 1, "outage": None},
            "outage: None (expected: a time when replicas are dead, failing or slow)",
        ),
    ],
)
def test_trouble_of_replicas_that_cannot_be_is_refused(changes, said):
    """There cannot be more replicas in trouble than there are."""
    usual = {"replicas": 3, "outage": (1.0, 2.0, 0.2)}
    with raises_exactly(said):
        settings(**usual | changes)


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"outage": None}, 1.0),
        ({}, 0.2),
        ({"dead": 1}, 0.75),
        ({"failing": 2}, 0.5),
        ({"slow": 10.0}, 0.775),
        ({"dead": 1, "failing": 1, "slow": 2.0}, 0.375),
    ],
)
def test_capacity_is_left_by_those_that_are_well(changes, left):
    """Where some are in trouble, the others have all of theirs."""
    usual = {"replicas": 4, "outage": (1.0, 2.0, 0.2)}

    assert left == pytest.approx(settings(**usual | changes).share_left)


@pytest.mark.parametrize(
    "outage",
    [
        (-1.0, 20.0, 0.2),
        (10.0, 0.0, 0.2),
        (10.0, 20.0, -0.1),
        (10.0, 20.0, 1.1),
        (10.0, 110.1, 0.2),
        (math.nan, 20.0, 0.2),
    ],
)
def test_impossible_outage_is_refused(outage):
    """An outage lies within the duration, and leaves a part of the capacity."""
    with pytest.raises(ValueError, match=r"^outage: .*over within the duration"):
        settings(outage=outage, duration=120.0)


@pytest.mark.parametrize("outage", [None, (0.0, 120.0, 0.0), (119.0, 1.0, 1.0)])
def test_outage_may_take_all_the_time_and_all_of_the_server(outage):
    """There may be no outage, one from beginning to end, or one that leaves nothing."""
    assert outage == settings(outage=outage, duration=120.0).outage


@pytest.mark.parametrize("outage", ["10:20:0.2", (10, 20, 0.2), [10.0, 20.0, 0.2]])
def test_outage_is_text_or_numbers(outage):
    """An outage in any of its forms is the same three numbers."""
    assert (10.0, 20.0, 0.2) == read_outage(outage)


@pytest.mark.parametrize(
    "outage", ["10:20", "a:b:c", "", 10, (10, 20), (10**400, 1, 1)]
)
def test_outage_that_cannot_be_read_is_refused(outage):
    """A text that is not three numbers is refused, and the form is said."""
    with pytest.raises(ValueError, match=r"^outage: .*start:length:capacity"):
        read_outage(outage)


@pytest.mark.parametrize(
    "restart",
    [(-1.0, 3.0), (10.0, 0.0), (10.0, 110.1), (math.nan, 3.0), (10.0, math.inf)],
)
def test_impossible_restart_is_refused(restart):
    """A restart lies within the duration."""
    with pytest.raises(ValueError, match=r"^restart: .*over within the duration"):
        settings(restart=restart, duration=120.0)


@pytest.mark.parametrize("restart", ["10:3", (10, 3), [10.0, 3.0]])
def test_restart_is_text_or_numbers(restart):
    """A restart in any of its forms is the same two numbers; there may be none."""
    assert (10.0, 3.0) == read_restart(restart)
    assert read_restart(None) is None


@pytest.mark.parametrize("restart", ["10", "10:3:0.2", "10:soon", "", 10, object()])
def test_what_is_no_restart_is_refused(restart):
    """It says what would be one."""
    with pytest.raises(ValueError, match=r"^restart: .*'start:length' with start >= 0"):
        read_restart(restart)


@pytest.mark.parametrize(
    ("given", "restart", "outage"),
    [
        (UNSET, None, (10.0, 20.0, 0.2)),
        (UNSET, (10.0, 3.0), None),
        ("1:2:0", (10.0, 3.0), (1.0, 2.0, 0.0)),
        (None, None, None),
    ],
)
def test_restart_takes_the_place_of_an_outage_that_is_not_given(given, restart, outage):
    """Of one that is given it does not."""
    assert outage == read_outage(given, restart)


@pytest.mark.parametrize(
    ("changes", "shares"),
    [
        ({}, (1.0, 0.0, 1.0)),
        ({"outage": (2.0, 3.0, 0.2)}, (1.0, 0.0, 0.2)),
        ({"replicas": 4}, (1.0, 0.75, 1.0)),
        ({"replicas": 4, "outage": (2.0, 3.0, 0.2)}, (1.0, 0.15, 0.2)),
        ({"replicas": 4, "outage": (2.0, 3.0, 0.2), "dead": 1}, (1.0, 0.75, 0.75)),
        ({"replicas": 4, "outage": (2.0, 3.0, 0.2), "slow": 4.0}, (1.0, 0.75, 0.8125)),
    ],
)
def test_capacity_is_less_in_a_restart(changes, shares):
    """By what its replica had until then."""
    them = settings(restart=(2.0, 2.0), **changes | {"duration": 9.0})

    assert pytest.approx(shares) == tuple(map(them.share_at, (1.9, 2.0, 4.0)))
