"""Chains that go through a simulated outage."""

from __future__ import annotations

import json
from functools import partial

import pytest

from aioretry_smithy import RequestLog, SessionBuilder, capture_logs
from aioretry_smithy.testing import simulate

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


def test_chain_of_the_caller_takes_the_place_of_the_standard_chain():
    """A function is run beside the two other chains."""
    runs = tiny(SessionBuilder).runs

    assert ["your chain", "plain retries", "no retries"] == [*runs]


def test_named_chains_are_run_alone():
    """With names given, there is no other chain, and the names stay."""
    runs = tiny({"ours": SessionBuilder, "theirs": SessionBuilder.standard}).runs

    assert ["ours", "theirs"] == [*runs]


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


def test_progress_is_told_of_loops_too():
    """The loop that a chain is compared with has its own."""
    told = {}
    tiny(progress=told.__setitem__)

    assert {"standard chain": 1.0, "plain retries": 1.0, "no retries": 1.0} == told


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
