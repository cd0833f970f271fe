"""The demo: ten real calls, each with the troubles and the outcome it promises."""

import itertools
import json

import pytest

pytestmark = pytest.mark.slow

TITLES = [
    "503 twice",
    "silence",
    "reset",
    "429",
    "outage",
    "circuit open",
    "still open",
    "trial",
    "recovered",
    "replica dies",
]


@pytest.fixture
def text(demo_run):
    """Return the demo's output for people."""
    return demo_run.text


@pytest.fixture
def document(demo_run):
    """Return the demo's output for machines."""
    return json.loads(demo_run.json)


@pytest.fixture
def logs(document):
    """The logs of the calls by their titles."""
    return {call["title"]: call["log"] for call in document["calls"]}


def statuses(log):
    return [attempt["response_status"] for attempt in log["children"]]


def test_demo_is_over_soon(demo_run):
    """The demo is short, and prints nothing besides."""
    assert demo_run.seconds < 30
    assert "" == demo_run.errors


def test_every_call_is_a_tree(text):
    """Each title is followed by the headline of its call and by its attempts."""
    lines = text.splitlines()
    headlines = {
        line.partition(":")[0]: following
        for line, following in itertools.pairwise(lines)
        if following.startswith("GET http://127.0.0.1:")
    }

    assert TITLES == [*headlines]
    assert 8 == text.count("├─")
    assert 10 == text.count("└─")


def test_circuit_breaker_shows_its_way(text):
    """The circuit opens in the outage and closes after the trial."""
    lines = text.splitlines()
    changes = [line for line in lines if line.startswith("circuit breaker: ")]

    assert [
        "circuit breaker: open",
        "circuit breaker: half_open, then closed",
    ] == changes


def test_closing_table_has_a_row_for_each_call(text):
    """The table at the end names every call and why it stopped."""
    table = text.rpartition("why it stopped")[2].splitlines()
    rows = [row for row in table if row.startswith(tuple(TITLES))]

    assert len(TITLES) == len(rows)
    assert [7, 1, 2] == [
        sum(row.rstrip().endswith(why) for row in rows)
        for why in ("success", "max_total_attempts", "refused")
    ]


def test_summary_is_the_table_for_machines(document):
    """Every row has the figures as numbers and names the reason, if there is one."""
    summary = document["summary"]
    figures = [(row["call"], row["attempts"], row["outcome"]) for row in summary]
    reasons = {row["call"]: row["stop_reason"] for row in summary if row["stop_reason"]}

    expected = [
        ("503 twice", 3, "200 OK"),
        ("silence", 2, "200 OK"),
        ("reset", 2, "200 OK"),
        ("429", 2, "200 OK"),
        ("outage", 3, "503 Service Unavailable"),
        ("circuit open", 1, "FailFastError"),
        ("still open", 1, "FailFastError"),
        ("trial", 1, "200 OK"),
        ("recovered", 1, "200 OK"),
        ("replica dies", 2, "200 OK"),
    ]
    assert expected == figures
    assert all(isinstance(row["seconds"], float) for row in summary)
    assert {
        "outage": "max_total_attempts",
        "circuit open": "refused",
        "still open": "refused",
    } == reasons


def test_server_errors_are_waited_out(logs):
    """Two failures, with waits that double, then the answer."""
    log = logs["503 twice"]

    assert [503, 503, 200] == statuses(log)
    assert [0.1, 0.2, None] == [attempt["delay"] for attempt in log["children"]]


def test_silence_is_cut_by_the_attempt_timeout(logs):
    """The attempt that gets no answer is cut off after half a second."""
    first, second = logs["silence"]["children"]

    assert "AttemptTimeoutError: attempt 1 had 0.500 s" == first["response_cause"]
    assert 0.5 <= first["duration"] < 5
    assert 200 == second["response_status"]


def test_reset_is_a_reset(logs):
    """The connection breaks without an answer, as it does with real servers."""
    first, second = logs["reset"]["children"]

    assert "reset" in first["response_cause"]
    assert first["response_status"] is None
    assert 200 == second["response_status"]


def test_retry_after_is_obeyed(logs):
    """The wait is the server's second, and a part of the backoff's tenth."""
    first, _ = logs["429"]["children"]

    assert "retry_after" == first["delay_source"]
    assert 1.0 <= first["delay"] < 1.5
    assert logs["429"]["duration"] >= 1


def test_circuit_opens_refuses_tries_and_closes(document, logs):
    """Refused calls take no time, and one trial after the open window closes it."""
    states = {
        call["title"]: call["circuit_breaker_states"]
        for call in document["calls"]
        if call["circuit_breaker_states"]
    }

    assert {"outage": ["open"], "trial": ["half_open", "closed"]} == states
    for title in ("circuit open", "still open"):
        assert "circuit breaker 'demo' is open" in logs[title]["response_cause"]
        assert logs[title]["duration"] < 1.0


def test_dead_replica_costs_one_attempt(logs):
    """The second one goes to another of the three, without a wait."""
    log = logs["replica dies"]
    first, second = log["children"]

    assert [None, 200] == statuses(log)
    assert 0.0 == first["delay"]
    assert first["endpoint"] != second["endpoint"] == log["endpoint"]
