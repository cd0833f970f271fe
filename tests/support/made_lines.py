"""Lines of calls by hand, with as little in them as a test is about."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from aioretry_smithy._report.reading import Reading
from aioretry_smithy._report.selection import Selection

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
URL = "https://shop.example.com/orders/17"

_numbers = itertools.count(1)


def moment(seconds: float) -> str:
    """Return a moment so many seconds after noon."""
    return (NOON + timedelta(seconds=seconds)).isoformat()


def sent(
    at: float = 0.0, took: float | None = 0.1, status: int | None = 200, **values: Any
) -> dict[str, Any]:
    """Return what a call and an attempt have in common."""
    return {
        "name": "GET",
        "request_method": "GET",
        "request_url": URL,
        "request_started_at": moment(at),
        "sent": True,
        "is_success": status is not None and status < 400,
        "response_status": status,
        "duration": took,
        "total_duration": took,
        "is_complete": True,
        **values,
    }


def attempts(*children: dict[str, Any]) -> list[dict[str, Any]]:
    """Number the attempts of a call."""
    return [{"attempt": n, **child} for n, child in enumerate(children, 1)]


def call(
    *children: dict[str, Any],
    at: float = 0.0,
    took: float | None = 0.1,
    status: int | None = 200,
    **values: Any,
) -> dict[str, Any]:
    """Return a call with these attempts."""
    return {
        "type": "call",
        "v": 1,
        "id": f"k3j9x0qa-{next(_numbers)}",
        **sent(at, took, status),
        "children": attempts(*children),
        **values,
    }


def failed(cause: str, **values: Any) -> dict[str, Any]:
    """Return what an exception leaves in a line."""
    return {
        "response_status": None,
        "is_success": False,
        "response_cause": f"{cause}: why",
        "response_cause_type": cause,
        **values,
    }


def function(
    *calls: dict[str, Any], at: float = 0.0, took: float = 0.1, **values: Any
) -> dict[str, Any]:
    """Return a call of a function that made these calls."""
    return {
        "type": "call",
        "v": 1,
        "id": f"k3j9x0qa-{next(_numbers)}",
        "name": "load_page",
        "request_started_at": moment(at),
        "sent": True,
        "is_success": True,
        "duration": took,
        "total_duration": took,
        "is_complete": True,
        "calls": list(calls),
        **values,
    }


def answers_of(
    *calls: dict[str, Any] | str | bytes, by: Any = "path", top: int = 10, **chosen: Any
) -> dict[str, Any]:
    """Return the answers about lines, as a program gets them."""
    reading = Reading(by, top, Selection(**chosen))
    lines = [
        each
        if isinstance(each, bytes)
        else (each if isinstance(each, str) else json.dumps(each)).encode()
        for each in calls
    ]
    reading.note_lines_inside(lines)
    reading.add_lines(lines)
    found: dict[str, Any] = json.loads(json.dumps(reading.answers().to_dict()))
    return found
