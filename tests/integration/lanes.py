"""Both lanes of a call, and a description of a call without its times."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import hypothesis
import pytest
from yarl import URL

from aioretry_smithy import (
    CircuitBreakerListener,
    RequestLog,
    RetryBudgetListener,
    RetryLimiter,
)
from aioretry_smithy._session import seam

LOGGER = logging.getLogger("aioretry_smithy")
LIMITS = (0.2, 0.4, 5.0, 10.0, 20.0, 30.0, 300.0)
"""The only limits of time in these tests: what is left of one counts as that one."""

TIMES = {"request_started_at", "request_duration", "duration", "total_duration"}
BLANK = {*TIMES, "server.port", "Sec-WebSocket-Key", "Sec-WebSocket-Accept"}
CHANGES_EACH_TIME = (
    (re.compile(r" *(?:,? (?:in|after) +)?\b\d{1,6}\.\d{3} ?s\b"), ""),
    # A line that was cut ends in the middle of a number.
    (re.compile(r"next trial in [\d.]+…?"), "next trial"),
    (re.compile(r"(update_interval=[\d.]+\), )[\d.]+"), r"\1seconds"),
    (re.compile(r"startTime=[^,}]+"), "startTime"),
    (re.compile(r"\b0x[0-9a-f]+"), "0x"),
    (re.compile(r"127\.0\.0\.1:\d+|'127\.0\.0\.1', \d+"), "SERVER"),
    (re.compile(r"port=\d+"), "port"),
    (re.compile(r"Sec-WebSocket-(?:Key|Accept)=[^],]+"), "Sec-WebSocket"),
    (re.compile(r"\b[0-9a-f]{32}\b(-[0-9a-f]{16})?"), "at random"),
    (re.compile(r"\b\d{1,6}\.\d{4,}"), "seconds"),
)


@contextlib.contextmanager
def ordinary_lane_only() -> Iterator[None]:
    """Let no session that is made in the block have a short lane."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seam, "short_lane_of", lambda *_: None, raising=False)
        yield


LANES = {"as built": contextlib.nullcontext, "ordinary": ordinary_lane_only}
"""By name: the block in which a session is made."""


def settled(value: Any) -> Any:
    """Return a value without times, ports and addresses in memory."""
    if isinstance(value, bytes):
        return settled(value.decode("latin-1")).encode("latin-1")
    if isinstance(value, str | URL):
        return _settled_text(str(value))
    if isinstance(value, Mapping):
        return {
            settled(key): _blank(item) if key in BLANK else settled(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set):
        return [settled(item) for item in value]
    return value


@lru_cache(maxsize=4096)
def _settled_text(text: str) -> str:
    # Nearly all texts of a call are names and words, the same in every story.
    for pattern, replacement in CHANGES_EACH_TIME:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _blank(value: object) -> str | None:
    return None if value is None else "some"


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Return where two stories differ; a diff of all they tell would take minutes."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(key, one.get(key), other.get(key)) for key in {**one, **other}]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = [(number, *pair) for number, pair in enumerate(zip_longest(one, other))]
    else:
        return [] if one == other else [f"{where}: {one!r:.200} / {other!r:.200}"]
    found = (differences(mine, yours, f"{where}/{key}") for key, mine, yours in pairs)
    return [line for lines in found for line in lines]


def limit(seconds: float | None) -> float | None:
    """Return the limit that these seconds are left of."""
    if seconds is None:
        return None
    return min((each for each in LIMITS if seconds < 1.01 * each), default=seconds)


def told_log(log: RequestLog) -> dict[str, Any]:
    """Tell what a log shows, in each of its views."""
    logs = [log, *log.children]
    return {
        "render": _view(log.render),
        "repr": _view(lambda: [repr(each) for each in logs]),
        "to_dict": _view(lambda: _with_limits(log.to_dict())),
        "attempts": [each.attempt for each in logs],
        "is one tree": log.parent is None
        and log.root is log
        and all(child.parent is log and child.root is log for child in log.children),
        "same children": [*map(id, log.children)] == [*map(id, log.children)],
        "requests": [
            (each.request.method, sorted(each.request.arguments)) for each in logs
        ],
        # A copy, as soon as the exception itself is gone.
        "causes": [
            (type(each.response_cause), settled(str(each.response_cause)))
            for each in logs
        ],
        "stop_reason": [each.stop_reason for each in logs],
        "times in order": _are_in_order(logs),
    }


def _view(view: Callable[[], Any]) -> Any:
    try:
        return settled(view())
    except Exception as error:
        # There are requests that no view was made for, such as a method of bytes.
        return repr(error)


def _with_limits(values: dict[str, Any]) -> dict[str, Any]:
    for each in (values, *values["children"]):
        each["response_timeout"] = limit(each["response_timeout"])
    return values


def _are_in_order(logs: list[RequestLog]) -> bool:
    root, *children = logs
    starts = [each.started for each in logs]
    lasted = [
        each.started + each.total_duration
        for each in children
        if each.total_duration is not None
    ]
    whole = root.total_duration
    return starts == sorted(starts) and (
        whole is None or all(end <= root.started + whole + 1e-6 for end in lasted)
    )


def told_error(error: BaseException | None) -> Any:
    """Tell what an exception says, with its notes and what it came from."""
    told = []
    while error is not None:
        told.append(
            {
                "class": type(error).__name__,
                "text": settled(str(error)),
                "args": settled(repr(error.args)),
                "notes": settled(getattr(error, "__notes__", [])),
                "suppressed": error.__suppress_context__,
                "cause": error.__cause__ is not None,
            }
        )
        error = error.__cause__ or error.__context__
    return told


def told_context(ctx: Any) -> dict[str, Any]:
    """Tell what one of the user's own parts can see of a call."""
    return {
        "attempt": ctx.attempt,
        "of": ctx.root.log.total_attempts,
        "is root": ctx.parent is None,
        "root": ctx.root is (ctx.parent or ctx),
        "log": (ctx.log.attempt, ctx.log.root is ctx.root.log),
        "status": (ctx.log.response_status, ctx.root.log.response_status),
        "response": settled(dict(ctx.log.response_headers or {})),
        "headers": sorted(ctx.request.headers.items()),
        "request": settled(f"{ctx.request.method} {ctx.request.full_url()}"),
        "attributes": dict(ctx.attributes),
        "remaining": limit(ctx.remaining()),
        "reason": ctx.root.log.stop_reason,
    }


class Witness(logging.Handler):
    """Notes what the parts of a chain were told, all of them in one order."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.seen: list[Any] = []
        self.logs: list[RequestLog] = []
        self.states: list[Any] = []
        """Functions that tell the state of a part of the chain."""

    def note(self, *things: Any) -> None:
        """Note what happened now."""
        self.seen.append(settled(things))

    def look(self, moment: str) -> None:
        """Look at all logs, as one may at any moment."""
        self.seen.append((moment, [told_log(log) for log in self.logs]))

    def emit(self, record: logging.LogRecord) -> None:
        log = getattr(record, "request_log", None)
        self.note(
            "record",
            record.name,
            record.levelname,
            record.getMessage(),
            log if log is None else (log.attempt, log.root in self.logs),
        )

    @contextlib.contextmanager
    def listening(self, level: int) -> Iterator[None]:
        """Hear what is logged in the block, from a level on."""
        before = LOGGER.level, LOGGER.propagate
        LOGGER.addHandler(self)
        LOGGER.propagate = False
        LOGGER.setLevel(level)
        try:
            yield
        finally:
            LOGGER.removeHandler(self)
            LOGGER.propagate = before[1]
            LOGGER.setLevel(before[0])


class BreakerWitness(CircuitBreakerListener):
    """Notes what circuit breakers tell."""

    def __init__(self, witness: Witness) -> None:
        self._note = witness.note

    def on_state_changed(self, circuit_breaker: Any, state: Any) -> None:
        self._note("breaker", circuit_breaker.name, str(state))

    def on_event_count_updated(self, circuit_breaker: Any, event_count: Any) -> None:
        self._note("breaker", circuit_breaker.name, repr(event_count))

    def on_request_rejected(self, circuit_breaker: Any) -> None:
        self._note("breaker", circuit_breaker.name, "rejected")


class BudgetWitness(RetryBudgetListener):
    """Notes what retry budgets tell."""

    def __init__(self, witness: Witness) -> None:
        self._note = witness.note

    def on_retry_refused(self, budget: Any, ctx: Any) -> None:
        self._note("budget", budget.name, "refused", told_context(ctx))

    def on_tokens_changed(self, budget: Any) -> None:
        self._note("budget", budget.name, budget.tokens, budget.failures_in_a_row)


class LimiterWitness(RetryLimiter):
    """Notes what a limiter is asked and told."""

    def __init__(self, witness: Witness) -> None:
        self._note = witness.note

    def acquire(self, ctx: Any, cause: Any) -> bool:
        self._note("acquire", told_context(ctx), told_error(cause))
        return True

    def release(self, ctx: Any) -> None:
        self._note("release", told_context(ctx))

    def on_retry_end(self, ctx: Any) -> None:
        self._note("retry ended", told_context(ctx))

    def on_success(self, ctx: Any) -> None:
        self._note("success", told_context(ctx))

    def on_failure(self, ctx: Any, cause: Any) -> None:
        self._note("failure", told_context(ctx), told_error(cause))


class AsyncLimiterWitness(LimiterWitness):
    """Does so in coroutines."""

    async def acquire(self, ctx: Any, cause: Any) -> bool:  # type: ignore[override]
        return super().acquire(ctx, cause)

    async def on_success(self, ctx: Any) -> None:  # type: ignore[override]
        super().on_success(ctx)


def drawn(names):
    """Return all names for a thorough run; of them every sixth, for one to wait for."""
    names = list(names)
    is_thorough = hypothesis.settings.get_current_profile_name() == "thorough"
    return names if is_thorough else names[::6]
