"""The calls that are wanted, and the groups that they stand in."""

import pytest
from made_lines import NOON, answers_of, call, failed, function

CALLS = [
    call(at=0, endpoint="eu.example.com:443"),
    call(at=60, request_method="POST", name="POST", status=503, stop_reason="limiter"),
    call(at=120, request_url="http://users.example.com:8080/users/ada?x=1"),
    call(at=180, **failed("TimeoutError"), stop_reason="deadline"),
    function(call(at=240, request_url="http://stock.example.com/7"), at=240),
    function(at=300, name="idle"),
]
START = NOON.timestamp()


def ids(**chosen):
    examples = answers_of(*CALLS, **chosen)["examples"]["slowest"]
    return {line["id"] for line in examples}


def found(*matches):
    wanted = ids(matches=tuple(matches))
    return [number for number, line in enumerate(CALLS) if line["id"] in wanted]


def test_times_are_inclusive():
    """The calls of both moments count."""
    answers = answers_of(*CALLS, since=START + 60, until=START + 180)

    assert (3, 3) == (answers["input"]["calls"], answers["input"]["left_out"])


def test_calls_without_a_time_are_in_none():
    """They count only where any will do."""
    line = call(request_started_at=None)

    assert 1 == answers_of(line)["input"]["calls"]
    assert 0 == answers_of(line, since=0.0)["input"]["calls"]
    assert 0 == answers_of(line, until=1e12)["input"]["calls"]


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        (("method", "POST"), [1]),
        (("method", "P*"), [1]),
        (("host", "*.example.com"), [0, 1, 3, 4]),
        (("host", "users*:8080"), [2]),
        (("path", "/orders/*"), [0, 1, 3]),
        (("path", "/orders/17"), [0, 1, 3]),
        (("path", "/users/[a-c]da"), [2]),
        (("endpoint", "eu.*"), [0]),
        (("name", "load_page"), [4]),
        (("name", "POST"), [1]),
        (("url", "*x=1"), [2]),
        (("status", "503"), [1]),
        (("status", ""), [3, 4, 5]),
        (("outcome", "TimeoutError"), [3]),
        (("outcome", "success"), [0, 2, 4, 5]),
        (("cause", "Time*"), [3]),
        (("stop_reason", "deadline"), [3]),
        (("stop_reason", "limiter"), [1]),
        (("stop_reason", "retry budget"), [1]),
        (("stop_reason", ""), [0, 2, 4, 5]),
        (("success", "no"), [1, 3]),
        (("id", CALLS[2]["id"]), [2]),
        (("method", "post"), []),
    ],
)
def test_matches(match, expected):
    """Patterns are those of file names; a function has the values of calls inside."""
    assert expected == found(match)


def test_all_matches_are_wanted():
    """More of them find fewer calls."""
    assert [1] == found(("path", "/orders/*"), ("success", "no"), ("method", "P*"))


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("path", {"/orders/*": 3, "/users/ada": 1, "/*": 1, "idle": 1}),
        ("method", {"GET": 4, "POST": 1, "idle": 1}),
        (
            "host",
            {
                "shop.example.com": 3,
                "users.example.com:8080": 1,
                "stock.example.com": 1,
                "idle": 1,
            },
        ),
        (
            "endpoint",
            {
                "eu.example.com:443": 1,
                "shop.example.com": 2,
                "users.example.com:8080": 1,
                "stock.example.com": 1,
                "idle": 1,
            },
        ),
        ("name", {"GET": 3, "POST": 1, "load_page": 1, "idle": 1}),
    ],
)
def test_groups(by, keys):
    """Functions stand for the calls inside, and for themselves by name."""
    groups = answers_of(*CALLS, by=by)["groups"]

    assert keys == {group["key"]: group["calls"] for group in groups}
    assert max(keys.values()) == groups[0]["calls"]


def test_calls_without_a_name():
    """A group has one all the same."""
    line = call(name=None, request_url=None)

    assert [""] == [group["key"] for group in answers_of(line)["groups"]]
