"""Hints, each where it is true and where it is not, about calls that were made."""

import asyncio
import errno
import itertools
from types import SimpleNamespace

import aiohttp
import pytest
from chains import NOW, retrying
from made_lines import answers_of, call, failed, function, keeping, sent

from aioretry_smithy import (
    Backoff,
    HedgingClient,
    RetryBudget,
    RetryRule,
    RetryStrategy,
)

SHOP = "shop.example.com"
FAILSAFE = RetryStrategy.failsafe(Backoff.fixed(0.1))
THROTTLED = 429, {"Retry-After": "2"}, b""


@pytest.fixture
def kept(tmp_path):
    """The calls of a test, of which a report is made."""
    with keeping(tmp_path) as calls:
        yield calls


def on(statuses, backoff=NOW):
    """Retry after some statuses, and after nothing else."""
    return RetryRule(statuses=statuses, backoff=backoff)


def after(seconds, answer=200):
    """Answer so late."""

    async def answered(ctx, request):
        await asyncio.sleep(seconds)
        return answer

    return answered


def refused():
    """Make what aiohttp raises where nobody listens."""
    key = SimpleNamespace(host=SHOP, port=80, ssl=True, is_ssl=False)
    return aiohttp.ClientConnectorError(key, OSError(errno.ECONNREFUSED, "refused"))


def expired():
    """Make what aiohttp raises where a certificate is no longer valid."""
    key = SimpleNamespace(host=SHOP, port=443, ssl=True, is_ssl=True)
    return aiohttp.ClientConnectorCertificateError(key, ValueError("expired"))


async def test_calls_that_are_well_get_none(kept):
    """Nor do a few that are not."""
    answers = [*[200] * 100, 503, 200, THROTTLED, 200, *[503] * 3, *[200] * 100]
    await kept.make(answers, retrying(FAILSAFE, max_total_attempts=3), calls=203)

    assert {} == kept.hints()


async def test_throttling(kept):
    """It names what one host answered, and what was waited for its sake alone."""
    await kept.make([THROTTLED, *[200] * 9] * 10, retrying(FAILSAFE), calls=90)
    await kept.make(
        [*[429] * 5, *[200] * 5], retrying(FAILSAFE, max_total_attempts=1), calls=10,
        url="http://other.example.com/",
    )  # fmt: skip
    hints = kept.hints()
    shop, other = hints[f"throttled {SHOP}"], hints["throttled other.example.com"]

    assert (10, 0.1) == (shop["figures"]["throttled"], shop["figures"]["share"])
    assert 20.0 <= shop["figures"]["waited"] < 22.0
    assert "s were waited for that" in shop["said"]
    assert "RateLimit.from_headers()" in shop["setting"]
    assert {"throttled": 5, "share": 0.5, "waited": 0} == other["figures"]
    assert "waited" not in other["said"]
    assert "RateLimit(...)" in other["setting"]


async def test_throttling_that_is_none(kept):
    """A server is down, or forbids; or callers gave up what was throttled."""
    down = 503, {"Retry-After": "2"}, b""
    await kept.make([*[down, 200] * 10, *[403] * 10], retrying(FAILSAFE), calls=20)
    await kept.make([THROTTLED] * 10, retrying(FAILSAFE), calls=10, patience=1.0)

    assert not any(name.startswith("throttled") for name in kept.hints())


async def test_throttling_by_403(kept):
    """As GitHub has it."""
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}
    await kept.make([(403, headers, b"")] * 5, calls=5)

    hint = kept.hints()[f"throttled {SHOP}"]
    assert "RateLimit.from_headers()" in hint["setting"]


async def test_timeouts_of_attempts_that_are_too_short(kept):
    """Many answers came just in time, for the very limit."""
    times = [0.9, 1.1] * 5
    await kept.make(
        map(after, times), retrying(RetryStrategy.never(), attempt_timeout=1.0),
        calls=10,
    )  # fmt: skip
    await kept.make(
        map(after, [40.0] * 5), retrying(RetryStrategy.never(), attempt_timeout=30.0),
        calls=5,
    )  # fmt: skip
    hints = [
        hint
        for hint in kept.answers()["hints"]
        if hint["hint"] == "attempt_timeout_too_short"
    ]

    assert [{"timeouts": 5, "near": 5, "attempt_timeout": 1.0}] == [
        hint["figures"] for hint in hints
    ]
    assert SHOP == hints[0]["where"]
    assert "their timeout of 1.00 s" in hints[0]["said"]


async def test_timeouts_of_attempts_that_are_long_enough(kept):
    """The server says nothing at all, or another host answers late."""
    chain = retrying(RetryStrategy.never(), attempt_timeout=1.0)
    await kept.make(map(after, [0.1, 60.0] * 10), chain, calls=20)
    await kept.make(map(after, [0.9] * 10), chain, calls=10, url="http://slow.example/")

    assert {} == kept.hints()


async def test_deadlines_that_are_too_short(kept):
    """After an attempt that timed out there is no room for another one."""
    chain = retrying(FAILSAFE, attempt_timeout=3.0)
    await kept.make(itertools.repeat(after(60.0)), chain, calls=5, timeout=5.0)
    hint = kept.hints()[f"deadline_too_short {SHOP}"]

    expected = {"calls": 5, "response_timeout": 5.0, "attempt_timeout": 3.0}
    assert expected == hint["figures"]
    assert "their deadline of 5.00 s" in hint["said"]


async def test_deadlines_with_room(kept):
    """The server was asked as often as there was time for; or callers gave up."""
    answers = itertools.repeat(after(60.0))
    chain = retrying(FAILSAFE, attempt_timeout=3.0)
    await kept.make(answers, chain, calls=5, timeout=10.0)
    await kept.make(answers, chain, calls=5, timeout=5.0, patience=4.0)

    assert f"deadline_too_short {SHOP}" not in kept.hints()


async def test_waits_that_are_longer_than_allowed(kept):
    """The server asked for an hour."""
    later = 503, {"Retry-After": "3600"}, b""
    await kept.make([later] * 5, retrying(FAILSAFE), calls=5)

    assert {"calls": 5} == kept.hints()["retry_after_too_long"]["figures"]


async def test_waits_that_are_allowed(kept):
    """Some of them callers did not have the patience for."""
    later = 503, {"Retry-After": "10"}, b""
    chain = retrying(FAILSAFE, max_total_attempts=2)
    await kept.make([later] * 10, chain, calls=5)
    await kept.make([later] * 5, chain, calls=5, patience=1.0)

    assert {} == kept.hints()


async def test_bodies_that_cannot_be_sent_again(kept):
    """A generator is read once."""

    async def body():
        yield b"order"

    await kept.make([503] * 5, retrying(FAILSAFE), calls=5, method="PUT", data=body)

    assert {"calls": 5} == kept.hints()["body_not_replayable"]["figures"]


async def test_bodies_that_can_be_sent_again(kept):
    """Nothing would be different with bytes."""
    chain = retrying(FAILSAFE, max_total_attempts=2)
    await kept.make([503] * 10, chain, calls=5, method="PUT", data=b"order")

    assert {} == kept.hints()


async def test_requests_that_never_went_out(kept):
    """The host is there for others: a POST that nobody has seen may be sent again."""
    answers = [refused(), 201] * 5
    chain = retrying(on({503}))
    await kept.make(answers, chain, calls=10, method="POST", data=b"order")
    hint = kept.hints()[f"unsent_not_retried {SHOP}"]

    assert {"calls": 5, "successes": 5} == hint["figures"]


@pytest.mark.parametrize(
    ("answers", "method"),
    [
        ([refused() for _ in range(10)], "POST"),
        ([expired() if n % 2 else 201 for n in range(10)], "POST"),
        ([refused() if n % 2 else 200 for n in range(10)], "PUT"),
        ([aiohttp.ServerDisconnectedError() if n % 2 else 201 for n in range(10)],
         "POST"),
    ],
    ids=["nobody there", "certificate", "idempotent", "perhaps seen"],
)  # fmt: skip
async def test_requests_that_no_strategy_would_save(kept, answers, method):
    """It does not pass; or the server may have seen them."""
    await kept.make(answers, calls=10, method=method)

    assert {} == kept.hints()


async def test_hedges_that_rarely_win(kept):
    """All answers take as long, so that the first one always comes first."""
    hedging = HedgingClient.new_decorator(0.1)
    await kept.make(itertools.repeat(after(0.5)), hedging, calls=20)
    await kept.make(
        itertools.cycle([after(9.0), 200]), hedging, calls=20, url="http://b.example/"
    )
    hints = kept.hints()

    assert ["hedges_rarely_win shop.example.com"] == [*hints]
    (hint,) = hints.values()
    assert {"hedges": 20, "won": 0.0} == hint["figures"]


@pytest.mark.slow
async def test_hedges_that_win(kept):
    """Some answers hang; and callers gave up others, which nobody could win."""
    hedging = HedgingClient.new_decorator(0.1)
    await kept.make(itertools.cycle([after(9.0), 200]), hedging, calls=20)
    answers = itertools.repeat(after(9.0))
    await kept.make(answers, hedging, calls=500, patience=1.0)

    assert {} == kept.hints()


async def test_a_storm_of_retries(kept):
    """Each call asks a server three times that is down."""
    chain = retrying(FAILSAFE, max_total_attempts=3)
    await kept.make(itertools.repeat(503), chain, calls=20, at_once=20)
    hint = kept.hints()["retry_storm"]

    assert {"retries": 40, "retry_share": pytest.approx(2 / 3)} == hint["figures"]


@pytest.mark.parametrize(
    ("answers", "settings", "patience"),
    [
        (itertools.repeat(503), {"limiter": RetryBudget(capacity=15)}, None),
        (itertools.cycle([(429, {"Retry-After": "0.1"}, b""), 200]), {}, None),
        (itertools.repeat(503), {"max_total_attempts": 100}, 1.0),
        ([503, *[200] * 20] * 5, {}, None),
    ],
    ids=["budget", "asked for", "given up", "few"],
)
async def test_retries_that_are_no_storm(kept, answers, settings, patience):
    """A budget has stopped it, servers asked for it, or callers cut it."""
    chain = retrying(FAILSAFE, **settings)
    await kept.make(answers, chain, calls=20, patience=patience)

    assert "retry_storm" not in kept.hints()


async def test_retries_in_vain(kept):
    """What is not there does not come by asking again."""
    chain = retrying(on({404}), max_total_attempts=2)
    await kept.make(itertools.repeat(404), chain, calls=20)
    hint = kept.hints()[f"retries_in_vain {SHOP}"]

    assert {"status": 404, "retried": 20, "rescued": 0.0} == hint["figures"]


@pytest.mark.parametrize(
    ("status", "later", "patience"),
    [(503, 503, None), (404, 200, None), (404, 404, 0.05), (429, 429, None)],
    ids=["outage", "helps", "given up", "throttled"],
)
async def test_retries_that_may_help(kept, status, later, patience):
    """An outage passes, some things come, and callers may have no patience."""
    strategy = on({status, later} - {200}, Backoff.fixed(0.1))
    chain = retrying(strategy, max_total_attempts=2)
    answers = itertools.cycle([status, later])
    await kept.make(answers, chain, calls=20, patience=patience)

    assert f"retries_in_vain {SHOP}" not in kept.hints()


def times(number, line):
    return [line] * number


def hints_of(*lines):
    return answers_of(*lines)["hints"]


def test_sampled_lines_weigh():
    """One of a fifth is as good a reason as five."""
    line = call(status=503, stop_reason="retry_after_too_long", sampling_rate=0.2)
    (hint,) = hints_of(line)

    assert {"calls": 5} == hint["figures"]


def test_places_without_end():
    """The rarest are put together, and get no hint."""
    late = failed("AttemptTimeoutError", response_timeout=1.0)
    again = {"delay": 0.0, "delay_source": "next_endpoint"}
    lines = []
    for n in range(70):
        place = {"request_url": f"http://h{n}/", "endpoint": f"e{n}:80"}
        lines += [
            call(sent(0, 0.1, 429, **place), status=429, **place),
            call(sent(0, 0.1, 404, **again, **place), sent(0.2, 0.1, 404, **place)),
            call(
                sent(0, 1.0, **late, **place),
                **{**late, "response_timeout": 1.5},
                **place,
                took=1.0,
                stop_reason="deadline",
            ),
        ]

    assert [] == hints_of(*lines)


def test_functions_have_no_place():
    """What they call has."""
    again = {"delay": 0.1, "delay_source": "backoff"}
    refused = call(sent(0, 0.1, 429), status=429)
    tried = [{"calls": [refused], **again}, {"is_success": False}]
    line = function(children=tried, is_success=False, stop_reason="deadline")

    assert ["throttled"] == [hint["hint"] for hint in hints_of(*times(5, line))]


def test_what_was_given_up_inside_is_left_out():
    """A function may cancel its calls, and go on; or be cancelled after them."""
    refused = sent(0, 0.1, 429)
    cancelled = call(refused, status=None, **failed("CancelledError"))
    gone = failed("CancelledError", stop_reason="cancelled")

    assert [] == hints_of(*times(5, function(cancelled)))
    made = function(call(refused, status=429), **gone)
    assert ["throttled"] == [hint["hint"] for hint in hints_of(*times(5, made))]


@pytest.mark.parametrize("headers", [None, [], {"Server": "x"}])
def test_lines_need_not_have_headers(headers):
    """Then nobody knows whether the server said when to come back."""
    line = call(sent(0, 0.1, 429, response_headers=headers), status=429)
    (hint,) = hints_of(*times(5, line))

    assert "RateLimit(...)" in hint["setting"]


@pytest.mark.parametrize(("queued", "is_hinted"), [(0.0, True), (0.3, False)])
def test_time_in_the_pool_s_queue_is_not_the_server_s(queued, is_hinted):
    """A longer timeout of attempts does not help those that wait for a connection."""
    limit = {"response_timeout": 1.0}
    late = call(sent(took=1.0, **failed("AttemptTimeoutError"), **limit))
    near = call(sent(took=0.9, connection={"queued": queued}, **limit))
    hints = hints_of(*times(5, late), *times(5, near))

    said = "attempt_timeout_too_short" in [hint["hint"] for hint in hints]
    assert is_hinted == said
