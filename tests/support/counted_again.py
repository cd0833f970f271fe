"""Calls made up at random, and the numbers of a report counted once more."""

import asyncio
import logging
import math
import sys
from collections import Counter, defaultdict
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from random import Random

import aiohttp
from chains import set_time_of_day

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    HedgingClient,
    LogFormatter,
    LoggingClient,
    LoggingRpcClient,
    RetryBudget,
    RetryingClient,
    RetryingRpcClient,
    RetryRuleWithContent,
    RetryStrategy,
    SessionBuilder,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop

NESTED = LogFormatter.json(nested=True, omit_empty=True)
START = 1_795_000_000.0
"""When the loop's time begins, in seconds since 1970."""

RATE = 20.0
"""Calls that begin in a second."""

SHOP = "https://shop.example.com"
USERS = "https://users.example.com:8443"
STOCK = "https://stock.example.com"


class Servers:
    """Answers what it is asked for, and has its moods."""

    def __init__(self, seed):
        self.chance = Random(seed)

    async def answer(self, ctx, request):
        """Take some time and give an answer, or none."""
        mood, dice = request.url.host.partition(".")[0], self.chance.random()
        await asyncio.sleep(0.01 * (1 + 4 * self.chance.random()))
        return await getattr(self, f"_{mood}")(dice)

    async def _shop(self, dice):
        """Throttle, and have an error inside an answer now and then."""
        if dice < 0.03:
            return 429, {"error": "slow down"}, {"Retry-After": "2"}
        if dice < 0.05:
            return 200, {"error": "busy"}
        return 200, {"orders": [7]}

    async def _users(self, dice):
        """Stall, break connections, and be out of order for a while."""
        now = asyncio.get_running_loop().time()
        if 120 <= now % 400 < 150 and dice < 0.7:
            return 503
        if dice < 0.02:
            await asyncio.sleep(30)
        if dice < 0.04:
            return aiohttp.ServerDisconnectedError()
        if dice < 0.05:
            return 404
        return 200, {"name": "Ada"}

    async def _stock(self, dice):
        """Be slow at times, which a hedge helps against."""
        if dice < 0.1:
            await asyncio.sleep(0.8)
        return 500 if dice > 0.99 else (200, {"stock": 3})


class Lines(logging.Handler):
    """Collects the lines."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def session(servers, logger):
    """Build a session with all that makes more than one request of a call."""
    backoff = Backoff.exponential(0.1, 2.0)
    busy = RetryRuleWithContent(on_content=_is_busy, backoff=backoff)
    return (
        SessionBuilder()
        .decorator(ScriptedTransport(iter(lambda: servers.answer, None)))
        .decorator(CircuitBreakerClient.new_per_host_decorator())
        .decorator(HedgingClient.new_decorator(0.5))
        .decorator(
            RetryingClient.new_decorator(
                busy | RetryStrategy.failsafe(backoff),
                max_total_attempts=3,
                attempt_timeout=2.0,
                limiter=RetryBudget(),
            )
        )
        .decorator(
            LoggingClient.new_decorator(logger, formatter=NESTED, log_after="body")
        )
        .response_timeout(10.0)
        .build()
    )


def _is_busy(content):
    return content is not None and b"busy" in content


def page(client, logger):
    """Make a function that makes two calls at once, and one after them."""

    async def load_page(number):
        async with asyncio.TaskGroup() as group:
            group.create_task(read(client, f"{USERS}/users/{number}", strict=True))
            group.create_task(read(client, f"{STOCK}/stock/{number}"))
        await read(client, f"{SHOP}/orders?user={number}")

    retry = RetryingRpcClient.new_decorator(
        RetryStrategy.failsafe(Backoff.fixed(0.3)), max_total_attempts=2
    )
    log = LoggingRpcClient.new_decorator(logger, formatter=NESTED)
    return rpc(retry, log, idempotent=True)(load_page)


async def read(client, url, *, strict=False):
    """Make a call and read the body."""
    async with client.get(url, raise_for_status=strict) as response:
        await response.read()


async def make_calls(number, seed, logger):
    """Make calls one after another, which may be under way at the same time."""
    set_time_of_day(START)
    servers, chance = Servers(seed), Random(seed + 1)
    async with session(servers, logger) as client:
        load_page = page(client, logger)
        tasks = []
        for count in range(number):
            await asyncio.sleep(chance.expovariate(RATE))
            kind = chance.random()
            if kind < 0.1:
                made = load_page(count)
            elif kind < 0.5:
                made = read(client, f"{SHOP}/orders/{count}")
            elif kind < 0.8:
                made = read(client, f"{USERS}/users/{count}")
            else:
                made = read(client, f"{STOCK}/stock/{count}")
            tasks.append(asyncio.ensure_future(made))
        await asyncio.gather(*tasks, return_exceptions=True)


def made_lines(number, seed=0):
    """Return the lines of so many calls, with those that functions made."""
    logger, handler = logging.getLogger("made"), Lines()
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(handler)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(make_calls(number, seed, logger))
    logger.removeHandler(handler)
    return handler.lines


if __name__ == "__main__":
    lines = made_lines(int(sys.argv[1]))
    Path(sys.argv[2]).write_text("\n".join(lines) + "\n", encoding="utf-8")


RANKS = {"wait": 2, "body": 3, "connection": 4, "superseded": 5, "failed": 6, "work": 7}
REFUSALS = {"FailFastError", "ConcurrencyLimitError", "RateLimitError"}


def inside(call):
    """Return the calls that were made inside a call."""
    return [each for attempt in attempts(call) for each in attempt.get("calls", ())]


def attempts(call):
    return call.get("children") or [call]


def everything(call):
    """Return a call and all inside."""
    return [call, *(deep for each in inside(call) for deep in everything(each))]


def outermost(calls):
    nested = {each["id"] for call in calls for each in everything(call)[1:]}
    return [call for call in calls if call["id"] not in nested]


def began(values):
    return datetime.fromisoformat(values["request_started_at"]).timestamp()


def rounds(call):
    """Return the attempts, each with its hedges and resends."""
    found = []
    stale = False
    for attempt in attempts(call):
        if attempt.get("is_hedge") or stale:
            found[-1].append(attempt)
        else:
            found.append([attempt])
        if not attempt.get("is_hedge"):
            stale = attempt.get("delay_source") in {"stale_connection", "token"}
    return found


def succeeded_at_once(call):
    first, *others = rounds(call)
    return (
        call["is_success"]
        and not others
        and any(attempt["is_success"] for attempt in first)
        and all(succeeded_at_once(each) for each in inside(call) if each["is_success"])
    )


def rescued(call):
    succeeded = any(attempt["is_success"] for attempt in attempts(call))
    return call["is_success"] and succeeded and not succeeded_at_once(call)


def requests(call):
    """Return how many requests a call made; a function makes those of its calls."""
    return sum(
        sum(map(requests, attempt["calls"])) if attempt.get("calls") else 1
        for attempt in attempts(call)
    )


def necessary(call):
    """Return how many there would have been, had each call made one."""
    return sum(map(necessary, attempts(call)[0].get("calls", ()))) or 1


def summary(calls):
    every = [deep for call in calls for deep in everything(call)]
    sent = [each for call in every for each in attempts(call)]
    return {
        "calls": len(calls),
        "successes": sum(call["is_success"] for call in calls),
        "successes_without_retries": sum(map(succeeded_at_once, calls)),
        "successes_by_retries": sum(map(rescued, calls)),
        "attempts": sum(len(attempts(call)) for call in calls),
        "extra_requests": sum(requests(call) - necessary(call) for call in calls),
        "retries": sum(len(rounds(call)) - 1 for call in every),
        "hedges": sum(bool(each.get("is_hedge")) for each in sent),
        "resends": 0,
    }


def quantile(calls, part):
    """Return the exact one, by rank."""
    times = sorted(call["duration"] for call in calls)
    return times[max(0, math.ceil(part * len(times)) - 1)]


Span = tuple[float, float, tuple[int, int], str]


def spans(call, level=0):
    """Return what happened in a call, with the level and the rank of each."""
    found = []
    tried, start = attempts(call), began(call)
    if tried == [call]:
        return work(call, start, math.inf, level)
    over = start + call["duration"]
    for position, attempt in enumerate(tried):
        later = [each for each in tried[position + 1 :] if not each.get("is_hedge")]
        until = began(later[0]) if later else over
        last = position == len(tried) - 1
        found += work(attempt, began(attempt), math.inf if last else until, level)
        if attempt.get("delay"):
            wait = until - attempt["delay"]
            source = f"wait {attempt['delay_source']}"
            found.append((wait, until, (level, RANKS["wait"]), source))
    return found


def work(attempt, start, latest, level):
    kind = "answer" if attempt["is_success"] else "failed_attempt"
    rank = RANKS["work" if attempt["is_success"] else "failed"]
    if attempt.get("superseded"):
        kind, rank = "superseded", RANKS["superseded"]
    end = min(latest, start + attempt["duration"])
    found = [(start, end, (level, rank), kind)]
    body = min(latest, start + attempt.get("total_duration", 0.0))
    found.append((end, body, (level, RANKS["body"]), "body"))
    for call in attempt.get("calls", ()):
        found += spans(call, level + 1)
    return found


def parts(call):
    """Look at each moment of a call between two changes."""
    start = began(call)
    end = start + max(call["duration"], call.get("total_duration", 0.0))
    known = spans(call)
    changes = {start, end, *(each for span in known for each in span[:2])}
    moments = sorted(each for each in changes if start <= each <= end)
    found = Counter()
    for before, after in pairwise(moments):
        middle = (before + after) / 2
        now = [span for span in known if span[0] <= middle < span[1]]
        name = max(now, key=lambda span: span[2])[3] if now else "other"
        found[name] += after - before
    return found


def total(counts):
    found = Counter()
    for each in counts:
        found.update(each)
    return found


def path(url):
    """Fold the one number that paths of these calls have."""
    path = url.partition("://")[2].partition("/")[2].partition("?")[0]
    return "/" + "/".join("*" if part.isdigit() else part for part in path.split("/"))


def by_path(calls):
    """Group the HTTP calls; a function stands for those inside."""
    groups = defaultdict(list)
    for call in calls:
        if "request_url" in call:
            groups[path(call["request_url"])].append(call)
        else:
            within = by_path(inside(call))
            for key, members in within.items():
                groups[key] += members
            if not within:
                groups[call["name"]].append(call)
    return groups


def outcome(values):
    status, cause = values.get("response_status"), values.get("response_cause_type")
    if status is None:
        return str(cause)
    return f"{status}" if status >= 400 else f"{status}, {cause or 'retried'}"


def endings(calls):
    return Counter(
        (call.get("stop_reason"), outcome(call))
        for call in calls
        if not call["is_success"]
    )


def failures(calls):
    found = defaultdict(Counter)
    for call in (deep for each in calls for deep in everything(each)):
        tried = attempts(call)
        for position, attempt in enumerate(tried):
            if attempt["is_success"]:
                continue
            url = attempt.get("request_url", call.get("request_url"))
            where = url.split("/")[2] if url else call["name"]
            goes_on = not all(each.get("is_hedge") for each in tried[position + 1 :])
            counts = found[where, outcome(attempt)]
            counts["attempts"] += 1
            counts["sent"] += attempt["sent"]
            counts["retried"] += goes_on
            counts["refused"] += outcome(attempt) in REFUSALS
            stopped = call.get("stop_reason") == "limiter"
            counts["refused_by_budget"] += stopped and not goes_on
    return found


def by_step(calls, step):
    steps = defaultdict(list)
    for call in calls:
        steps[began(call) // step * step].append(call)
    return steps
