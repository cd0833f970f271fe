"""What stories tell: values without what differs, logs, witnesses, and records."""

import asyncio
import contextlib
import hashlib
import json
import logging
import lzma
import operator
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path

import aiohttp
from yarl import URL

from aioretry_smithy import (
    CircuitBreakerListener,
    RetryBudgetListener,
    RetryLimiter,
    RpcRequest,
)
from aioretry_smithy.testing import VirtualTimeLoop

LIMITS = (0.2, 0.4, 5.0, 10.0, 20.0, 30.0, 300.0)
"""The only limits of time in these tests: what is left of one counts as that one."""

TIMES = {"request_started_at", "request_duration", "duration", "total_duration"}
BLANK = {*TIMES, "server.port", "Sec-WebSocket-Key", "Sec-WebSocket-Accept"}
TIMES_IN_TEXT = (
    (re.compile(r" *(?:,? (?:in|after) +)?\b\d{1,6}\.\d{3} ?s\b"), ""),
    # A line that was cut ends in the middle of a number.
    # What came after no time at all counts in milliseconds on some loops.
    (re.compile(r"(Limit[.\w]*\([^)]*\), )[\d.e-]+"), r"\1seconds"),
    (re.compile(r"next (trial )?in [\d.]+…?"), r"next \1"),
)
ID = r"[a-z2-7]{8}-\d+(?:\.\d+)?"
_NEXT = "cause superseded injected endpoint sent headers preview".replace(" ", "|")
NOT_RECORDED = (
    # What the request line says already.
    re.compile(
        r"(?m)^(Response: \{.*?)"
        r"(?:(?:scheme=[^,]*, )?(?:host=[^,]*, )?method=[^,]*, path=|name=).*?"
        rf"(?:, (?=(?:{_NEXT})=)|(?=\}}))"
    ),
    # Of an empty URL only the method is named.
    re.compile(r"(?m)^(Response: \{.*?)method=[^,{}]*, (?=cause=)"),
    re.compile(r"(?m)^(Response: \{[^}]*), (?=\})"),
)
CHANGES_EACH_TIME = (
    *((pattern, r"\1") for pattern in NOT_RECORDED),
    (re.compile(r"(update_interval=[\d.]+\), )[\d.]+"), r"\1seconds"),
    (re.compile(rf"(?<=\{{)id={ID}(?:, )?|, id={ID}|\"id\": \"{ID}\", "), ""),
    (re.compile(r"startTime=[^,}]+"), "startTime"),
    (re.compile(r"\b0x[0-9a-f]+"), "0x"),
    (re.compile(r"127\.0\.0\.1:\d+|'127\.0\.0\.1', \d+"), "SERVER"),
    (re.compile(r"port=\d+"), "port"),
    # The certificate of a server is made anew.
    (re.compile(r"(b'x{32}', )b(['\"]).*?\2, SERVER"), r"\1b'', SERVER"),
    (re.compile(r"_ssl\.c:\d+"), "_ssl.c"),
    (re.compile(r"Python/3\.\d+ aiohttp/[\w.]+"), "USER-AGENT"),
    (re.compile(r"\bgzip, deflate(, br)?(, zstd)?"), "ENCODINGS"),
    (re.compile(r"Sec-WebSocket-(?:Key|Accept)=[^],]+"), "Sec-WebSocket"),
    (re.compile(r"\b[0-9a-f]{32}\b(-[0-9a-f]{16}(-[0-9a-f]{2})?)?"), "at random"),
    (re.compile(r"\b\d{1,6}\.\d{4,}(e-\d+)?|\b\d+e-\d+"), "seconds"),
)


def settled(value):
    """Return a value without times, ports and addresses in memory.

    Times stay where they are virtual.
    """
    if isinstance(value, bytes):
        return settled(value.decode("latin-1")).encode("latin-1")
    if isinstance(value, str | URL):
        return _settled_text(str(value), is_time_virtual())
    if isinstance(value, Mapping):
        return {
            settled(key): _blank(item) if key in BLANK else settled(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set):
        return [settled(item) for item in value]
    return value


@lru_cache(maxsize=4096)
def _settled_text(text, keeps_times):
    # Nearly all texts of a call are names and words, the same in every story.
    changing = CHANGES_EACH_TIME if keeps_times else TIMES_IN_TEXT + CHANGES_EACH_TIME
    for pattern, replacement in changing:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def _blank(value):
    if value is None or (isinstance(value, float) and is_time_virtual()):
        return rounded(value)
    return "some"


def is_time_virtual():
    """Say whether the times of a story are the same each time it is told."""
    try:
        return isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    except RuntimeError:
        return False


def rounded(seconds):
    """Return seconds, or None, without the last digits of a sum."""
    return None if seconds is None else round(seconds, 6)


def differences(one, other, where=""):
    """Return where two stories differ; a diff of all they tell would take minutes."""
    if one == other:
        return []
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(key, one.get(key), other.get(key)) for key in {**one, **other}]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        pairs = [(number, *pair) for number, pair in enumerate(zip_longest(one, other))]
    else:
        return [f"{where}: {one!r:.200} / {other!r:.200}"]
    found = (differences(mine, yours, f"{where}/{key}") for key, mine, yours in pairs)
    return [line for lines in found for line in lines]


def limit(seconds):
    """Return the limit that these seconds are left of."""
    if seconds is None or is_time_virtual():
        return rounded(seconds)
    return min((each for each in LIMITS if seconds < 1.01 * each), default=seconds)


def told_log(log):
    """Tell what a log shows, in each of its views."""
    children = [*log.children]
    logs = [log, *children]
    return {
        "render": _view(log.render),
        "repr": _view(lambda: [repr(each) for each in logs]),
        "to_dict": _view(lambda: _settled_values(log.to_dict())),
        "attempts": [each.attempt for each in logs],
        "is one tree": log.parent is None
        and log.root is log
        and all(child.parent is log and child.root is log for child in children),
        "same children": all(map(operator.is_, children, log.children)),
        "requests": [_told_request(each.request) for each in logs],
        # A copy, as soon as the exception itself is gone.
        "causes": [
            (type(each.response_cause), settled(str(each.response_cause)))
            for each in logs
        ],
        "stop_reason": [each.stop_reason for each in logs],
        "times in order": _are_in_order(logs),
    }


def _view(view):
    try:
        return settled(view())
    except Exception as error:
        # There are requests that no view was made for, such as a method of bytes.
        return repr(error)


def _told_request(request):
    if isinstance(request, RpcRequest):
        return request.name
    return request.method, sorted(request.arguments)


KEYS_NOT_RECORDED = {"id", "is_success", "response_cause_type"}
"""Keys of a log that are not in stories."""


def _settled_values(values):
    values["response_timeout"] = limit(values["response_timeout"])
    for name in KEYS_NOT_RECORDED:
        del values[name]
    for each in (*values["children"], *values.get("calls", ())):
        _settled_values(each)
    return values


def _are_in_order(logs):
    root, *children = logs
    if any(each.is_hedge for each in children):
        return None  # one that lost may take a while to end
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


def told_error(error):
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


def told_context(ctx):
    """Tell what one of the user's own parts can see of a call."""
    request, is_function = ctx.request, isinstance(ctx.request, RpcRequest)
    return {
        "attempt": ctx.attempt,
        "of": ctx.root.log.total_attempts,
        "is root": ctx.parent is None,
        "root": ctx.root is (ctx.parent or ctx),
        "log": (ctx.log.attempt, ctx.log.root is ctx.root.log),
        "status": (ctx.log.response_status, ctx.root.log.response_status),
        "response": settled(dict(ctx.log.response_headers or {})),
        "headers": [] if is_function else sorted(request.headers.items()),
        "request": settled(
            request.name if is_function else f"{request.method} {request.full_url()}"
        ),
        "attributes": dict(ctx.attributes),
        "remaining": limit(ctx.remaining()),
        "reason": ctx.root.log.stop_reason,
    }


LOGGER = logging.getLogger("aioretry_smithy")


class Witness(logging.Handler):
    """Notes what the parts of a chain were told, all of them in one order."""

    def __init__(self):
        super().__init__(logging.NOTSET)
        self.seen = []
        self.logs = []
        self.states = []
        """Functions that tell the state of a part of the chain."""

    def note(self, *things):
        """Note what happened now."""
        self.seen.append(settled(things))

    def look(self, moment):
        """Look at all logs, as one may at any moment."""
        self.seen.append((moment, [told_log(log) for log in self.logs]))

    def emit(self, record):
        log = getattr(record, "request_log", None)
        self.note(
            "record",
            record.name,
            record.levelname,
            record.getMessage(),
            log if log is None else (log.attempt, log.root in self.logs),
        )

    @contextlib.contextmanager
    def listening(self, level):
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

    def __init__(self, witness):
        self._note = witness.note

    def on_state_changed(self, circuit_breaker, state):
        self._note("breaker", circuit_breaker.name, str(state))

    def on_event_count_updated(self, circuit_breaker, event_count):
        self._note("breaker", circuit_breaker.name, repr(event_count))

    def on_request_rejected(self, circuit_breaker):
        self._note("breaker", circuit_breaker.name, "rejected")


class BudgetWitness(RetryBudgetListener):
    """Notes what retry budgets tell."""

    def __init__(self, witness):
        self._note = witness.note

    def on_retry_refused(self, budget, ctx):
        self._note("budget", budget.name, "refused", told_context(ctx))

    def on_tokens_changed(self, budget):
        self._note("budget", budget.name, budget.tokens, budget.failures_in_a_row)


class LimiterWitness(RetryLimiter):
    """Notes what a limiter is asked and told."""

    def __init__(self, witness):
        self._note = witness.note

    def acquire(self, ctx, cause):
        self._note("acquire", told_context(ctx), told_error(cause))
        return True

    def release(self, ctx):
        self._note("release", told_context(ctx))

    def on_retry_end(self, ctx):
        self._note("retry ended", told_context(ctx))

    def on_success(self, ctx):
        self._note("success", told_context(ctx))

    def on_failure(self, ctx, cause):
        self._note("failure", told_context(ctx), told_error(cause))


class AsyncLimiterWitness(LimiterWitness):
    """Does so in coroutines."""

    async def acquire(self, ctx, cause):
        return super().acquire(ctx, cause)

    async def on_success(self, ctx):
        super().on_success(ctx)


FOLDER = Path(__file__).parents[2] / "matrices" / "stories"
LONG = 2000
"""Characters of a text, or bytes, above which its hash stands for it."""

NEWEST = "newest"
OLDER = next(
    (each for each in ("3.12", "3.13") if aiohttp.__version__.startswith(f"{each}.")),
    None,
)
"""The version of aiohttp, where some of its stories are others than the newest's."""


def plain(value):
    """Return a story as values that JSON has."""
    # What there is most of comes first: a story has hundreds of values.
    if isinstance(value, str):
        return _short(str(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=repr)
    return _short(_text(value))


def _text(value):
    if isinstance(value, bytes):
        return f"bytes: {value.decode('latin-1')}"
    if isinstance(value, type):
        return f"class {value.__name__}"
    return repr(value)


def _short(text):
    if len(text) <= LONG:
        return text
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:100]}... {len(text)} in all, {found[:16]}"


def read(group):
    """Return the stories of a set by name, each packed."""
    file = FOLDER / f"{group}.jsonl.xz"
    if not file.exists():
        return {}
    lines = lzma.decompress(file.read_bytes()).decode().splitlines()
    return dict(line.split("\t", 1) for line in lines)


def write(group, stories):
    """Store packed stories by name; the same stories give the same bytes."""
    lines = [f"{name}\t{stories[name]}\n" for name in sorted(stories)]
    FOLDER.mkdir(exist_ok=True)
    packed = lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    (FOLDER / f"{group}.jsonl.xz").write_bytes(packed)


def expected(packed):
    """Return the story that is to be told with this version of aiohttp, or None."""
    variants = json.loads(packed or "{}")
    return variants.get(OLDER, variants.get(NEWEST))


def changed(packed, story):
    """Return a packed story as it is told now, with this version of aiohttp.

    An older version has a variant of its own where it differs from the newest.
    """
    variants = json.loads(packed or "{}")
    variants[OLDER or NEWEST] = story
    if OLDER and variants.get(NEWEST) == story:
        del variants[OLDER]
    return json.dumps(variants, sort_keys=True, separators=(",", ":"))
