"""What is read, and what of it counts."""

import json

import pytest
from made_lines import answers_of, call, failed, function, sent

from aioretry_smithy._report.report import Reading
from aioretry_smithy._report.selection import Selection

AGAIN = {"delay": 0.5, "delay_source": "backoff"}


def input_of(*lines, **chosen):
    return answers_of(*lines, **chosen)["input"]


def test_lines_that_are_no_calls_are_counted():
    """By reason; the calls count all the same."""
    lines = [
        "no json",
        "{}",
        {**call(), "type": "attempt"},
        {**call(), "type": "request"},
        call(took=None, status=None, is_success=False),
        call(),
    ]

    read = input_of(*lines)
    assert {
        "no_json": 1,
        "no_call": 1,
        "attempt": 1,
        "not_nested": 1,
        "under_way": 1,
    } == read["skipped"]
    assert (6, 1) == (read["lines"], read["calls"])


def test_calls_inside_are_counted_with_their_call():
    """Their own lines come first, and are told by their id."""
    inside = call()
    deeper = function(call(), inside)
    outer = function(deeper)
    answers = answers_of(inside, deeper["calls"][0], deeper, outer)

    assert (1, 3) == (answers["input"]["calls"], answers["input"]["inside"])
    assert 1 == answers["summary"]["calls"]
    assert 2 == answers["groups"][0]["calls"]


def test_equal_lines_without_functions_are_calls():
    """Only calls inside are told apart by their ids."""
    line = call()

    assert 2 == input_of(line, line)["calls"]


def test_calls_inside_of_wrapped_lines():
    """A container may stand around them."""
    inside = call()
    line = json.dumps({"log": json.dumps(function(inside))})

    assert (1, 1) == tuple(input_of(inside, line)[key] for key in ("calls", "inside"))


def test_calls_inside_without_ids():
    """Nobody can tell that they are the same."""
    inside = {key: value for key, value in call().items() if key != "id"}
    read = input_of(inside, function(inside), '{"calls": [{')

    assert (2, 0, 1) == (read["calls"], read["inside"], read["without_id"])


def test_calls_nested_too_deep():
    """They are skipped."""
    values = call()
    for _ in range(100):
        values = function(values)

    assert {"too_deep": 1} == input_of(values)["skipped"]


def test_calls_nested_deeper_than_python_goes():
    """They are skipped, too, wherever that is noticed."""
    text = '{"name": "f", "type": "call", "calls": [' * 1500 + "{}" + "]}" * 1500

    assert 0 == input_of(text)["calls"]


def test_ids_after_a_line_that_is_nested_too_deep():
    """What cannot be looked through hides no calls of later lines."""
    deep = '{"type": "call", "name": "page", "calls": [' * 1500 + "]}" * 1500
    outer = function(call(sent(), id="a-1"))
    lines = (each.encode() for each in (deep, json.dumps(outer)))
    reading = Reading("path", 1, Selection())
    reading.note_lines_inside(lines)
    reading.add_lines([json.dumps(call(sent(), id="a-1")).encode()])

    assert 1 == reading.answers().input.inside


def test_calls_nested_deeper_than_anybody_looks():
    """JSON may go deeper than our own code."""
    depth = 490
    text = '{"name": "f", "type": "call", "calls": [' * depth + "{}" + "]}" * depth

    assert {"too_deep": 1} == input_of(text)["skipped"]


def test_groups_that_are_put_together_keep_their_reasons():
    """The others say why their calls stopped."""
    lost = {"status": 503, "stop_reason": "no_retry"}
    lines = [call(request_url=f"https://h/x{n}y", **lost) for n in range(70)]

    assert {"no_retry": 10} == answers_of(*lines)["groups"][-1]["stop_reasons"]


def test_reasons_without_end():
    """A line may have any; a few are told apart, so that they take no memory."""
    lines = [call(status=503, stop_reason=f"reason {n}") for n in range(40)]
    reasons = answers_of(*lines)["groups"][0]["stop_reasons"]

    assert 25 == len(reasons)
    assert 16 == reasons["others"]


def test_sampled_lines_weigh():
    """One of a tenth stands for ten."""
    answers = answers_of(
        call(sampling_rate=0.1), call(status=503, sampling_rate=0.5), call()
    )

    assert (13, 11) == tuple(answers["summary"][key] for key in ("calls", "successes"))
    assert 2 == answers["input"]["sampled"]
    assert [13] == [group["calls"] for group in answers["groups"]]
    assert [2] == [ending["calls"] for ending in answers["endings"]]
    assert [2] == [failure["attempts"] for failure in answers["failures"]]
    assert [13] == [moment["calls"] for moment in answers["timeline"]["moments"]]


@pytest.mark.parametrize("rate", [0, 1, -1, 1e-300, "0.1", 2])
def test_rates_that_are_none(rate):
    """The line counts once."""
    answers = answers_of(call(sampling_rate=rate))

    assert (1, 0) == (answers["summary"]["calls"], answers["input"]["sampled"])


def test_thirds_of_calls():
    """Counts may be fractions."""
    assert 3.333333 == answers_of(call(sampling_rate=0.3))["summary"]["calls"]


def test_lines_chosen_by_a_function_are_counted_and_warned_of():
    """Nobody knows for how many calls they stand."""
    read = input_of(call(sampled=True))

    assert 1 == read["sampled_by_function"]
    (warning,) = read["warnings"]
    assert warning == (
        "1 calls were chosen by a function, and stand for an unknown number of others"
    )


def test_lines_of_old_versions():
    """They have neither ids nor successes; the report works all the same."""
    new = {"id", "is_success", "response_cause_type", "v"}
    wanted = call(sent(0, 0.1, 503, **AGAIN), sent(0.6), took=0.7)
    lost = call(
        sent(0, 0.1, **failed("E")), status=None, **failed("E"), stop_reason="no_retry"
    )
    old = [
        {
            **{key: value for key, value in line.items() if key not in new},
            "children": [
                {key: value for key, value in child.items() if key not in new}
                for child in line["children"]
            ],
        }
        for line in (wanted, lost)
    ]
    answers = answers_of(*old)

    assert 2 == answers["input"]["without_id"]
    assert (2, 1, 0) == tuple(
        answers["summary"][key]
        for key in ("calls", "successes", "successes_without_retries")
    )
    assert [("no_retry", "E")] == [
        (ending["stop_reason"], ending["outcome"]) for ending in answers["endings"]
    ]


def test_lines_of_newer_versions():
    """They are read as far as they are known, with a warning."""
    read = input_of({**call(), "v": 2})

    assert 1 == read["calls"]
    assert ["1 lines are of a newer version than this one"] == read["warnings"]


def test_bodies_that_nobody_knows_of():
    """The line was written at the headers."""
    known, failed_body = call(), call(**failed("E"))

    assert 1 == input_of(known, failed_body, call(is_complete=False))["unknown_bodies"]


def test_moments_of_the_first_and_the_last_call():
    """In UTC; none without a moment."""
    read = input_of(call(at=60, took=5), call(at=0), call(at=30))

    assert ("2026-11-26T12:00:00Z", "2026-11-26T12:01:05Z") == (
        read["started_at"],
        read["ended_at"],
    )
    lost = input_of(call(request_started_at="noon"))
    assert (1, None, None) == (lost["calls"], lost["started_at"], lost["ended_at"])


def test_failures_without_a_moment():
    """They are counted, in no minute."""
    reading = Reading("path", 1, Selection())
    reading.add(call(status=503, request_started_at="noon"))
    answers = reading.answers()

    assert (1, []) == (answers.summary.calls, answers.timeline.moments)


def test_too_many_groups():
    """They are bounded, the rarest are put together, and a warning says so."""
    lines = [call(request_url=f"https://h/{n:x}x") for n in range(2100)]
    answers = answers_of(*lines)

    assert 61 == len(answers["groups"])
    assert 2100 == sum(group["calls"] for group in answers["groups"])
    assert 2040 <= answers["groups"][-1]["merged"]
    assert ["there are too many groups: calls of rare ones may be in the others"] == (
        answers["input"]["warnings"]
    )


def test_many_groups_are_shown_as_60_and_others():
    """Nothing was lost while they were counted."""
    lines = [call(request_url=f"https://h/x{n}y") for n in range(70)]
    answers = answers_of(*lines)

    assert ("others", 10, 10) == tuple(
        answers["groups"][-1][key] for key in ("key", "merged", "calls")
    )
    assert [] == answers["input"]["warnings"]


def test_group_with_most_calls_is_the_first():
    """However many attempts others made."""
    often = call(request_url="https://h/often")
    retried = call(request_url="https://h/a", children=[failed("OSError"), call()])
    groups = answers_of(retried, often, often)["groups"]

    assert ["/often", "/a"] == [group["key"] for group in groups]


def test_many_endings_and_failures_are_bounded():
    """60 of each, and all others together."""
    lines = [call(**failed(f"Error{n}")) for n in range(70)]
    answers = answers_of(*lines)

    for key in ("endings", "failures"):
        assert 61 == len(answers[key])
        assert "others" == answers[key][-1]["outcome"]
    assert answers["endings"][-1]["example"] is None


def test_nothing():
    """All numbers are there, and zero or unknown."""
    answers = answers_of()

    assert (0, 0.0, None) == (
        answers["summary"]["calls"],
        answers["summary"]["success"],
        answers["summary"]["duration"]["p50"],
    )
    assert "no call has a known duration" == answers["time"]["said"]
    assert [] == answers["hints"]


def test_durations_that_are_missing():
    """The call counts, but in no quantile."""
    answers = answers_of(call(took=None), call(took=0.5))

    assert 2 == answers["summary"]["calls"]
    assert 0.5 == answers["summary"]["duration"]["p50"]


def test_hostile_values():
    """Values of the wrong kinds are missing, whatever they are."""
    values = {key: [{"a": [1]}] for key in call()}
    lines = [
        {**call(), key: junk}
        for key in values
        if key != "type"
        for junk in ([{"a": [1]}], {"b": 1}, "x", -1, True, None, 1e308)
    ]
    answers = answers_of(*lines)

    assert answers["input"]["calls"] + answers["input"]["skipped"].get(
        "under_way", 0
    ) + answers["input"]["skipped"].get("attempt", 0) == len(lines)
    json.dumps(answers)


def test_examples_are_cleaned_and_masked():
    """A line of somebody else's may have credentials in it, and much besides."""
    line = call(
        request_url="https://user:S3CR3T@h/?token=S3CR3T",
        request_headers={"Authorization": "S3CR3T", "Accept": "*/*", "X": 1},
        response_headers=["S3CR3T"],
        password="S3CR3T",
        connection={"queued": 0.5, "dns": "S3CR3T", "reused": "S3CR3T"},
    )
    (example,) = answers_of(line)["examples"]["slowest"]

    assert "S3CR3T" not in json.dumps(example)
    assert {"Authorization": "****", "Accept": "*/*"} == example["request_headers"]
    assert {"queued": 0.5, "dns": None, "connect": None, "reused": None} == (
        example["connection"]
    )


@pytest.mark.parametrize(
    ("length", "expected"),
    [(3_000_000_000, 3_000_000_000), (-1, None), (True, None), (10**400, None)],
)
def test_lengths_of_bodies(length, expected):
    """Some have gigabytes."""
    (example,) = answers_of(call(response_length=length))["examples"]["slowest"]

    assert expected == example.get("response_length")


def test_examples():
    """The slowest and those with most attempts, at most as many as asked for."""
    slow = [call(took=float(n)) for n in range(5)]
    tried = [call(sent(0, 0.1, 503), sent(1), took=0.5) for _ in range(3)]
    examples = answers_of(*slow, *tried, top=2)["examples"]

    assert [4.0, 3.0] == [line["duration"] for line in examples["slowest"]]
    assert [each["id"] for each in tried[:2]] == [
        line["id"] for line in examples["most_attempts"]
    ]
    assert {"slowest": [], "most_attempts": []} == answers_of(*slow, top=0)["examples"]


def test_children_of_examples_are_numbered():
    """Whatever the line says."""
    line = call(sent(0, 0.1, 503), sent(1, attempt="second"))
    (example,) = answers_of(line)["examples"]["slowest"]

    assert [1, 2] == [child["attempt"] for child in example["children"]]
