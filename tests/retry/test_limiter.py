"""The ready-made limiters: what they count, and what they refuse."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

from aioretry_smithy import RetryLimiter

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

    def test_outcomes_do_not_matter(self):
        """Only the places count; an outcome takes none and frees none."""
        limiter = RetryLimiter.concurrency(1)
        succeed(limiter, 3)
        fail(limiter, 3)

        assert [True, False] == [acquire(limiter), acquire(limiter)]
        succeed(limiter, 1)
        fail(limiter, 1)
        assert not acquire(limiter)

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

    def test_asking_costs_nothing(self):
        """The failure before has paid already."""
        limiter = RetryLimiter.token_based(2, 0)
        answers = [acquire(limiter) for _ in range(5)]

        assert [True] * 5 == answers

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


class TestBoth:
    """Both limiters behave alike here."""

    @each_kind
    def test_a_copy_is_the_limiter_itself(self, kind):
        """Two in the place of one would allow twice as much."""
        limiter = MAKE[kind]()

        assert limiter is copy.copy(limiter)
        assert limiter is copy.deepcopy(limiter)
        with pytest.raises(TypeError, match="shared state"):
            pickle.dumps(limiter)

    @pytest.mark.parametrize(
        ("limiter", "shown"),
        [
            (RetryLimiter.concurrency(7), "RetryLimiter.concurrency(7)"),
            (
                RetryLimiter.token_based(10, 2.5),
                "RetryLimiter.token_based(10, 2.5, token_ratio=1.0)",
            ),
        ],
        ids=["concurrency", "token_based"],
    )
    def test_it_shows_its_settings(self, limiter, shown):
        """For ``SessionBuilder.describe()``, which prints them."""
        assert shown == repr(limiter)
