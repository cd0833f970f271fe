"""The numbers of a report, each computed a second way."""

import json
from datetime import datetime

import counted_again as again
import pytest
from counted_again import made_lines

from aioretry_smithy._report.fields import bucket_of
from aioretry_smithy._report.report import Reading
from aioretry_smithy._report.selection import Selection

FEW = 400
MANY = 20_000


def answers_of(lines, by="path", top=10, **chosen):
    """Return the answers as a program gets them."""
    reading = Reading(by, top, Selection(**chosen))
    data = [line.encode() for line in lines]
    reading.note_lines_inside(data)
    reading.add_lines(data)
    return json.loads(json.dumps(reading.answers().to_dict()))


@pytest.fixture(
    scope="module",
    params=[FEW, pytest.param(MANY, marks=[pytest.mark.long, pytest.mark.release])],
)
def made(request):
    """The answers about calls of a real chain, and these calls."""
    lines = made_lines(request.param)
    return answers_of(lines), again.outermost([*map(json.loads, lines)])


def near(value):
    """Expect a quantile, or what is like one."""
    return pytest.approx(value, rel=0.02)


def times(value):
    """Expect seconds that are sums of moments written to the microsecond."""
    return pytest.approx(value, rel=1e-3, abs=1e-2)


@pytest.mark.slow
def test_summary(made):
    """Counts of calls, and what retries, hedges and calls inside made of them."""
    answers, calls = made
    shown = answers["summary"]
    expected = again.summary(calls)

    assert expected == {key: shown[key] for key in expected}
    assert expected["successes"] / len(calls) == pytest.approx(shown["success"])
    assert shown["hedges"] > 0 < shown["retries"]
    assert shown["successes_without_retries"] < shown["successes"] < shown["calls"]


@pytest.mark.parametrize(("name", "part"), [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)])
def test_quantiles(made, name, part):
    """They are within 2 % of the exact ones, for all calls and for groups."""
    answers, calls = made

    assert near(again.quantile(calls, part)) == answers["summary"]["duration"][name]
    for group in answers["groups"]:
        members = again.by_path(calls)[group["key"]]
        assert near(again.quantile(members, part)) == group["duration"][name]


def test_longest(made):
    """The maximum is exact."""
    answers, calls = made

    longest = max(call["duration"] for call in calls)
    assert longest == answers["summary"]["duration"]["max"]
    assert longest == answers["examples"]["slowest"][0]["duration"]


def test_time(made):
    """The parts of the time, of all calls and of the slowest."""
    answers, calls = made
    time = answers["time"]
    bucket = bucket_of(again.quantile(calls, 0.95))
    slow = [call for call in calls if bucket_of(call["duration"]) >= bucket]

    for key, chosen in (("seconds", calls), ("slowest_seconds", slow)):
        shown = {
            " ".join(filter(None, (part["part"], part["source"]))): part[key]
            for part in time["parts"]
        }
        expected = again.total([*map(again.parts, chosen)])
        assert times(expected) == {name: shown.get(name, 0.0) for name in expected}
        assert times(sum(shown.values())) == time[key]
    assert len(slow) == time["slowest_calls"]


def test_time_of_each_call_is_split_in_whole(made):
    """What was waited and what was tried add up to the time of the calls."""
    answers, calls = made
    spent = sum(max(call["duration"], call.get("total_duration", 0)) for call in calls)

    assert times(spent) == answers["time"]["seconds"]
    assert 1.0 == pytest.approx(sum(part["share"] for part in answers["time"]["parts"]))


def test_groups(made):
    """Calls by path; functions stand for the requests that were made inside."""
    answers, calls = made
    groups = again.by_path(calls)

    assert {*groups} == {group["key"] for group in answers["groups"]}
    for group in answers["groups"]:
        members = groups[group["key"]]
        waits = sum(
            attempt.get("delay", 0)
            for call in members
            for attempt in again.attempts(call)
        )
        assert again.summary(members)["attempts"] == group["attempts"]
        assert len(members) == group["calls"]
        assert sum(call["is_success"] for call in members) == group["successes"]
        assert times(waits) == group["waited"]
        reasons = again.Counter(
            call["stop_reason"] for call in members if not call["is_success"]
        )
        assert reasons == group["stop_reasons"]


def test_endings(made):
    """Calls without success, by why they stopped and with what; one example each."""
    answers, calls = made

    assert again.endings(calls) == {
        (ending["stop_reason"], ending["outcome"]): ending["calls"]
        for ending in answers["endings"]
    }
    for ending in answers["endings"]:
        assert ending["outcome"] == again.outcome(ending["example"])


def test_failures(made):
    """Attempts that failed, those of calls inside too, and what followed on them."""
    answers, calls = made
    shown = {(each["where"], each["outcome"]): each for each in answers["failures"]}
    expected = again.failures(calls)

    assert {*expected} == {*shown}
    for key, counts in expected.items():
        assert counts == {name: shown[key][name] for name in counts}
        assert counts["attempts"] == shown[key]["sent"] + shown[key]["not_sent"]


def test_steps(made):
    """Calls by the step of time in which they began."""
    answers, calls = made
    expected = again.by_step(calls, answers["timeline"]["step"])
    moments = answers["timeline"]["moments"]

    assert len(expected) == len(moments)
    for moment in moments:
        members = expected[datetime.fromisoformat(moment["started_at"]).timestamp()]
        every = [deep for call in members for deep in again.everything(call)]
        assert len(members) == moment["calls"]
        assert sum(not call["is_success"] for call in members) == moment["failures"]
        assert sum(map(again.requests, members)) == moment["attempts"]
        assert sum(len(again.rounds(each)) - 1 for each in every) == moment["retries"]
        assert near(again.quantile(members, 0.99)) == moment["p99"]


def test_most_attempts(made):
    """The calls that made most requests in vain are shown."""
    answers, calls = made
    extra = sorted(again.requests(call) - again.necessary(call) for call in calls)
    shown = answers["examples"]["most_attempts"]

    assert extra[-10:][::-1] == [
        again.requests(call) - again.necessary(call) for call in shown
    ]


def test_input(made):
    """Lines of calls inside are counted with their call."""
    answers, calls = made
    read = answers["input"]

    assert len(calls) == read["calls"]
    assert read["lines"] == read["calls"] + read["inside"]
    assert read["inside"] > 0
    assert ({}, 0, 0, 0) == (
        read["skipped"],
        read["left_out"],
        read["without_id"],
        read["unknown_bodies"],
    )
