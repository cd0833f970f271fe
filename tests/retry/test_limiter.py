"""The ready-made limiters: what they count, and what they refuse."""

import logging
import math

import aiohttp
import pytest
from calls import ended

from aioretry_smithy import (
    CircuitBreaker,
    FailFastError,
    RetryLimiter,
    UnprocessedRequestError,
)
from aioretry_smithy._failures.failure import judge
from aioretry_smithy._retry.limiter import acquired, notify, report

CONTEXT = object()  # it is not looked at
MAKE = {
    "concurrency": lambda: RetryLimiter.concurrency(2),
    "token_based": lambda: RetryLimiter.token_based(2, 0),
}
each_kind = pytest.mark.parametrize("kind", MAKE)


def acquire(limiter):
    return limiter.acquire(CONTEXT, None)


def fail(limiter, times):
    for _ in range(times):
        limiter.on_failure(CONTEXT, None)


def succeed(limiter, times):
    for _ in range(times):
        limiter.on_success(CONTEXT)


class TestConcurrency:
    """So many retries at once."""

    @pytest.mark.parametrize("most", [1, 3])
    def test_places_are_limited(self, most):
        """The one that finds no place is refused, after any outcomes before."""
        limiter = RetryLimiter.concurrency(most)
        answers = [acquire(limiter) for _ in range(most + 2)]

        assert [True] * most + [False] * 2 == answers

    @pytest.mark.parametrize("hook", ["release", "on_retry_end"])
    def test_a_place_that_comes_back_is_given_once_more(self, hook):
        """A retry that is over, or is not made, makes room for one other."""
        limiter = RetryLimiter.concurrency(2)
        acquire(limiter), acquire(limiter)
        getattr(limiter, hook)(CONTEXT)

        assert [True, False] == [acquire(limiter), acquire(limiter)]

    @pytest.mark.parametrize("most", [0, -1, 1.0, True, None, "2", math.inf])
    def test_the_number_is_checked(self, most):
        """At least one retry, or there would be none."""
        with pytest.raises(ValueError, match=r"^max_retries: .* \(expected: an int"):
            RetryLimiter.concurrency(most)


class TestTokenBased:
    """Retries while enough attempts succeed."""

    @pytest.mark.parametrize(
        ("failures", "allowed"), [(0, True), (4, True), (5, False)]
    )
    def test_retries_stop_at_the_threshold(self, failures, allowed):
        """As many tokens as the threshold are too few."""
        limiter = RetryLimiter.token_based(10, 5)
        fail(limiter, failures)

        assert allowed is acquire(limiter)

    @pytest.mark.parametrize(("threshold", "failures"), [(0, 1), (0.5, 0), (0.5, 1)])
    def test_threshold_may_be_below_one(self, threshold, failures):
        """One of zero takes the last token; between them a part of one is left."""
        limiter = RetryLimiter.token_based(1.75, threshold)
        fail(limiter, failures)

        assert acquire(limiter)
        fail(limiter, 2 - failures)
        assert not acquire(limiter)

    @pytest.mark.parametrize(("ratio", "successes"), [(1.0, 1), (0.1, 10), (1 / 3, 3)])
    def test_successes_make_up_for_a_failure_exactly(self, ratio, successes):
        """So many lead back to the threshold itself, without rounding errors."""
        limiter = RetryLimiter.token_based(10, 5, token_ratio=ratio)
        fail(limiter, 6)
        succeed(limiter, successes)

        assert not acquire(limiter)
        succeed(limiter, 1)
        assert acquire(limiter)

    def test_tokens_are_never_more_than_at_first(self):
        """However many calls have succeeded, two failures reach the threshold."""
        limiter = RetryLimiter.token_based(3, 1)
        succeed(limiter, 100)
        fail(limiter, 1)

        assert acquire(limiter)
        fail(limiter, 1)
        assert not acquire(limiter)

    def test_there_are_no_debts(self):
        """After a long outage two successes are enough, as after a short one."""
        limiter = RetryLimiter.token_based(3, 1)
        fail(limiter, 100)
        succeed(limiter, 1)

        assert not acquire(limiter)
        succeed(limiter, 1)
        assert acquire(limiter)

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("max_tokens", (0, 0)),
            ("max_tokens", (-1, 0)),
            ("max_tokens", (math.inf, 1)),
            ("max_tokens", (math.nan, 0)),
            ("max_tokens", ("10", 5)),
            ("max_tokens", (True, 0)),
            ("threshold", (10, 10)),
            ("threshold", (10, 11)),
            ("threshold", (10, -0.1)),
            ("threshold", (10, math.nan)),
            ("threshold", (10, None)),
            ("token_ratio", (10, 5, 0)),
            ("token_ratio", (10, 5, -1)),
            ("token_ratio", (10, 5, math.inf)),
            ("token_ratio", (10, 5, False)),
        ],
    )
    def test_numbers_are_checked(self, name, arguments):
        """The message names the one that is wrong."""
        most, threshold, *ratio = arguments
        settings = {"token_ratio": ratio[0]} if ratio else {}
        with pytest.raises(ValueError, match=rf"^{name}: .* \(expected: "):
            RetryLimiter.token_based(most, threshold, **settings)


REFUSED = FailFastError(CircuitBreaker("orders"))
PERMANENT = aiohttp.InvalidURL("http://")
DISCONNECTED = aiohttp.ServerDisconnectedError()
UNSAFE = aiohttp.ServerDisconnectedError()
UNSAFE.is_retry_safe = False
QUEUED = aiohttp.ConnectionTimeoutError()
judge(QUEUED).queue = "limit"


class Plain(RetryLimiter):
    """Notes what it hears, and answers with what it was given."""

    def __init__(self, answer=True):
        self.answer = answer
        self.heard = []

    def acquire(self, ctx, cause):
        self.heard.append(("acquire", ctx, cause))
        return self.answer

    def release(self, ctx):
        self.heard.append(("release", ctx))

    def on_retry_end(self, ctx):
        self.heard.append(("end", ctx))

    def on_success(self, ctx):
        self.heard.append(("success", ctx))

    def on_failure(self, ctx, cause):
        self.heard.append(("failure", ctx, cause))


class Async(Plain):
    """Does the same, but each method has to be awaited."""

    async def acquire(self, ctx, cause):
        return super().acquire(ctx, cause)

    async def release(self, ctx):
        super().release(ctx)

    async def on_retry_end(self, ctx):
        super().on_retry_end(ctx)

    async def on_success(self, ctx):
        super().on_success(ctx)

    async def on_failure(self, ctx, cause):
        super().on_failure(ctx, cause)


class Broken(RetryLimiter):
    """Raises whatever it is asked or told."""

    def __init__(self, error):
        self.error = error

    def acquire(self, *heard):
        raise self.error

    release = on_retry_end = lambda self, *heard: self.acquire(*heard)
    on_success = on_failure = release

    def __repr__(self):
        return "Broken()"


class BrokenLater(Broken):
    """Raises when it is awaited."""

    async def acquire(self, *heard):
        raise self.error


both_kinds = pytest.mark.parametrize("kind", [Plain, Async])
OUT_OF_ORDER = RuntimeError("out of order")


def told(caplog):
    """Return the message and the error of the one warning that was logged."""
    (record,) = caplog.records
    assert ("aioretry_smithy", logging.WARNING) == (record.name, record.levelno)
    return record.message, record.exc_info and record.exc_info[1]


both_broken = pytest.mark.parametrize("kind", [Broken, BrokenLater])


class TestAcquire:
    """Leave to retry."""

    @both_kinds
    @pytest.mark.parametrize("answer", [True, False])
    async def test_answer_counts(self, kind, answer, caplog):
        """The limiter is asked once, about the attempt and its failure."""
        limiter, ctx = kind(answer), ended(cause=DISCONNECTED)

        assert answer is await acquired(limiter, ctx, DISCONNECTED)
        assert [("acquire", ctx, DISCONNECTED)] == limiter.heard
        assert [] == caplog.records

    @both_broken
    async def test_one_that_raises_refuses(self, kind, caplog):
        """A broken limiter must not turn into a storm of retries, nor into an error."""
        assert False is await acquired(kind(OUT_OF_ORDER), ended(503), None)
        expected = "Broken() raised, so there is no retry"
        assert (expected, OUT_OF_ORDER) == told(caplog)

    @both_kinds
    @pytest.mark.parametrize("answer", [None, 1, 0, "yes"])
    async def test_what_is_no_answer_refuses(self, kind, answer, caplog):
        """A forgotten return is found in the log, and so is a truthy number."""
        limiter = kind(answer)

        assert False is await acquired(limiter, ended(503), None)
        expected = f"{limiter!r} returned {answer!r}, so there is no retry"
        assert (expected, None) == told(caplog)

    @both_broken
    async def test_interruptions_go_through(self, kind):
        """An error that is no Exception is not swallowed."""
        with pytest.raises(KeyboardInterrupt):
            await acquired(kind(KeyboardInterrupt()), ended(503), None)


async def reported(limiter, ctx, cause, *, wanted):
    """Report how an attempt ended, and wait where the limiter does."""
    rest = report(limiter, ctx, cause, wanted=wanted)
    if rest is not None:
        await rest


class TestLeave:
    """Leave that is given back, and leave that is used up."""

    @both_kinds
    @pytest.mark.parametrize(
        ("hook", "word"), [("release", "release"), ("on_retry_end", "end")]
    )
    async def test_it_is_told(self, kind, hook, word):
        """The limiter hears which attempt it had given leave for."""
        limiter, ctx = kind(), ended(503)

        await notify(limiter, getattr(limiter, hook), ctx)

        assert [(word, ctx)] == limiter.heard

    @both_broken
    @pytest.mark.parametrize("hook", ["release", "on_retry_end"])
    async def test_an_error_is_ignored(self, kind, hook, caplog):
        """The call goes on, and the log knows."""
        limiter = kind(OUT_OF_ORDER)
        await notify(limiter, getattr(limiter, hook), ended(503))

        assert ("Broken() raised, which is ignored", OUT_OF_ORDER) == told(caplog)


class TestReport:
    """How an attempt ended."""

    @both_kinds
    @pytest.mark.parametrize(
        ("expected", "status", "cause", "wanted"),
        [
            ("success", 200, None, False),
            ("success", 404, None, False),
            ("success", 499, None, False),
            ("failure", 500, None, False),
            ("failure", 599, None, False),
            (None, 600, None, False),
            (None, 999, None, False),
            ("failure", 999, None, True),
            ("failure", 503, None, True),
            ("failure", 200, None, True),
            ("failure", 404, None, True),
            ("failure", None, DISCONNECTED, False),
            ("failure", None, DISCONNECTED, True),
            ("failure", None, TimeoutError(), False),
            ("failure", None, UnprocessedRequestError(), False),
            ("failure", None, UNSAFE, False),
            (None, None, PERMANENT, False),
            ("failure", None, PERMANENT, True),
            (None, None, REFUSED, False),
            (None, None, REFUSED, True),
            (None, None, ExceptionGroup("one", [REFUSED]), True),
            (None, None, QUEUED, True),
            (None, None, ExceptionGroup("one", [QUEUED]), True),
            (None, None, None, False),
            ("failure", None, None, True),
        ],
    )
    async def test_outcome_is_told(self, kind, expected, status, cause, wanted):
        """Status, failure and the strategy's wish together say what it was."""
        limiter, ctx = kind(), ended(status, cause=cause)

        await reported(limiter, ctx, cause, wanted=wanted)

        told = {
            "success": [("success", ctx)],
            "failure": [("failure", ctx, cause)],
            None: [],
        }
        assert told[expected] == limiter.heard

    async def test_a_body_that_failed_is_a_failure(self):
        """A status that came before its body broke off does not make it a success."""
        limiter, ctx = Plain(), ended(200)
        cause = aiohttp.ClientPayloadError()

        await reported(limiter, ctx, cause, wanted=False)

        assert [("failure", ctx, cause)] == limiter.heard

    @both_broken
    @pytest.mark.parametrize("status", [200, 503])
    async def test_an_error_is_ignored(self, kind, status, caplog):
        """The call goes on, and the log knows."""
        await reported(kind(OUT_OF_ORDER), ended(status), None, wanted=False)

        assert ("Broken() raised, which is ignored", OUT_OF_ORDER) == told(caplog)


class TestSubclass:
    """A limiter of the user's."""

    async def test_acquire_is_enough(self, caplog):
        """The other methods do nothing until they are overridden."""

        class Never(RetryLimiter):
            def acquire(self, ctx, cause):
                return False

        limiter = Never()
        await reported(limiter, ended(200), None, wanted=False)
        await reported(limiter, ended(503), None, wanted=True)
        await notify(limiter, limiter.release, ended(503))
        await notify(limiter, limiter.on_retry_end, ended(503))

        assert not await acquired(limiter, ended(503), None)
        assert [] == caplog.records
