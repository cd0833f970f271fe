"""Answers of a report as a test wants them, where it is not about counting."""

import dataclasses
from datetime import UTC, datetime, timedelta

from aioretry_smithy._report import answers

BEGUN = datetime(2026, 11, 26, 12, tzinfo=UTC)
DURATIONS = answers.Durations(p50=0.0106, p95=0.31, p99=1.012, max=2.054)
TIMES = (
    ("wait", "retry_after", 121.4, 0.24, 61.2, 0.42),
    ("failed_attempt", None, 20.3, 0.04, 52.0, 0.36),
    ("wait", "backoff", 168.7, 0.33, 27.4, 0.19),
    ("connection_queue", None, 1.2, 0.002, 2.9, 0.02),
    ("answer", None, 197.5, 0.388, 1.4, 0.01),
)
HINT = answers.Hint(
    hint="retry_after_waits",
    said="Of the slowest calls 42 % of the time were waits for Retry-After.",
    setting="RetryConfig(max_retry_after=...)",
    where="shop:8080",
    figures={"share": 0.42},
)


def iso(seconds):
    """Return a moment so many seconds after the first call."""
    return (BEGUN + timedelta(seconds=seconds)).isoformat()


def attempt(number, begun, took, **values):
    """Return an attempt as a line has it."""
    return {
        "name": "GET",
        "request_method": "GET",
        "request_url": "http://shop:8080/orders/17?page=2",
        "request_headers": {"Accept": "*/*"},
        "request_started_at": iso(begun),
        "sent": True,
        "response_status": 200,
        "response_reason": "OK",
        "response_headers": {},
        "duration": took,
        "total_duration": took,
        "is_complete": True,
        "attempt": number,
        "children": [],
        **values,
    }


def line(*attempts, **values):
    """Return a call as a line has it: three attempts, unless others are given."""
    children = list(attempts) or [
        attempt(
            *(1, 0.0, 0.212),
            response_status=503,
            response_reason="Service Unavailable",
            delay=1.0,
            delay_source="retry_after",
        ),
        attempt(
            *(2, 1.212, 0.5),
            response_status=None,
            response_reason=None,
            response_cause="AttemptTimeoutError: attempt 2 had 0.500 s",
            delay=0.3,
            delay_source="backoff",
        ),
        attempt(3, 2.012, 0.042),
    ]
    call = attempt(
        0,
        0.0,
        2.054,
        response_timeout=3.0,
        attempt=None,
        total_attempts=len(children),
        children=children,
    )
    return {"type": "call", "v": 1, "id": "k3j9x0qa-17", **call, **values}


def failed(**values):
    """Return a call that ended badly."""
    return line(
        response_status=503,
        response_reason="Service Unavailable",
        stop_reason="max_total_attempts",
        **values,
    )


def parts(figures=TIMES):
    """Return parts of the time."""
    return tuple(answers.TimePart(*each) for each in figures)


def group(key, merged=0, **values):
    """Return the figures of a group."""
    figures = {
        "calls": 6769,
        "successes": 6768,
        "success": 0.99985,
        "attempts": 7277,
        "attempts_per_call": 1.075,
        "duration": DURATIONS,
        "waited": 168.7,
        "stop_reasons": {"max_total_attempts": 1.0},
        "slowest": parts(),
    }
    return answers.GroupRow(key=key, merged=merged, **figures | values)


def moment(minute, **values):
    """Return the figures of a minute."""
    calls = 90 + minute * 37 % 20
    retries = 40 if minute in {12, 13, 14} else minute % 4
    figures = {
        "started_at": iso(60 * minute),
        "calls": calls,
        "failures": retries // 15,
        "attempts": calls + retries,
        "retries": retries,
        "retry_share": retries / (calls + retries),
        "p99": 1.9 if retries > 30 else 0.4,
        "max": 2.05,
    }
    return answers.Moment(**figures | values)


def failure(where, outcome, number, **values):
    """Return attempts that failed."""
    figures = {
        "sent": number,
        "not_sent": 0,
        "retried": number,
        "refused_by_budget": 0,
        "refused": 0,
    }
    return answers.FailureRow(where, outcome, number, **figures | values)


def made_answers(**changes):
    """Return the answers about an hour of calls, some of them changed."""
    made = answers.Answers(
        v=1,
        input=answers.Input(
            sources=("calls.jsonl",),
            by="path",
            lines=20_012,
            calls=20_000,
            inside=0,
            left_out=0,
            skipped={"no_json": 12},
            without_id=0,
            unknown_bodies=0,
            sampled=0,
            sampled_by_function=0,
            started_at=iso(0),
            ended_at=iso(3599.4),
            warnings=(),
        ),
        summary=answers.Summary(
            calls=20_000,
            successes=19_996,
            success=0.9998,
            successes_without_retries=18_610,
            success_without_retries=0.9305,
            successes_by_retries=1386,
            attempts=21_480,
            attempts_per_call=1.074,
            extra_requests=1480,
            extra_requests_per_call=0.074,
            retries=1480,
            hedges=0,
            resends=0,
            resumes=0,
            duration=DURATIONS,
        ),
        groups=(
            group("shop:8080/orders/*"),
            group("shop:8080/prices/*", success=1.0, stop_reasons={}),
            group("shop:8080/users/*/basket", success=0.9721),
            group("others", merged=14),
        ),
        time=answers.Time(
            seconds=509.1,
            parts=parts(),
            slowest_calls=1000,
            slowest_from=0.309,
            slowest_seconds=144.9,
            said="The slowest 5 % spent 42 % of their time in waits for Retry-After,"
            " 36 % in failed attempts and 19 % in waits of the backoff.",
        ),
        endings=(
            answers.Ending("max_total_attempts", "503", 3, failed()),
            answers.Ending("deadline", "AttemptTimeoutError", 1, failed()),
        ),
        failures=(
            failure("shop:8080", "503", 1204),
            failure("shop:8080", "AttemptTimeoutError", 270, retried=265),
            failure(
                *("shop:8080", "ClientConnectorError", 6),
                sent=0,
                not_sent=6,
                refused_by_budget=2,
            ),
        ),
        timeline=answers.CallsByTime(
            step=60,
            said="by the minute",
            moments=tuple(map(moment, range(60))),
        ),
        examples=answers.Examples(
            slowest=(line(), failed()),
            most_attempts=(failed(),),
        ),
        hints=(HINT,),
    )
    return dataclasses.replace(made, **changes)
