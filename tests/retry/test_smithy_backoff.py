"""Backoffs of Smithy's strategies, and strategies of backoffs."""

import pytest
from chains import bad_argument

from aioretry_smithy import Backoff
from aioretry_smithy._retry.smithy_strategies import to_backoff
from aioretry_smithy.smithy import from_backoff
from aioretry_smithy.smithy.interfaces import BackoffExhaustedError, ask_for_delay


class Linear:
    """A backoff strategy as users write them."""

    def compute_next_backoff_delay(self, retry_attempt):
        return 0.5 * retry_attempt


def test_backoff_waits_as_the_strategy_says():
    """The number of the attempt that failed is the number of the retry."""
    backoff = to_backoff(Linear())
    delays = [backoff.next_delay(n) for n in (1, 2, 3)]

    assert [0.5, 1.0, 1.5] == delays
    assert isinstance(backoff, Backoff)


@pytest.mark.parametrize("count", [0, -1, True, 1.0])
def test_backoff_of_a_strategy_counts_from_1(count):
    """Attempt 0, which a strategy knows, is no failed attempt."""
    with bad_argument("num_attempts_so_far", count, "an int >= 1"):
        to_backoff(Linear()).next_delay(count)


def test_strategy_waits_as_the_backoff_says():
    """The number of the retry is the number of the attempt that failed."""
    strategy = from_backoff(Backoff.exponential(1, 3))
    delays = [strategy.compute_next_backoff_delay(n) for n in (0, 1, 2, 3)]

    assert [0.0, 1.0, 2.0, 3.0] == delays


def test_strategy_of_an_exhausted_backoff_refuses():
    """A backoff that stops ends the call, and says after which attempt."""
    strategy = from_backoff(Backoff.fixed(1).with_max_attempts(2))

    assert 1.0 == strategy.compute_next_backoff_delay(1)
    with pytest.raises(
        BackoffExhaustedError, match=r"^no delay left after 2 attempts$"
    ):
        strategy.compute_next_backoff_delay(2)


def test_there_and_back_again_nothing_changes():
    """A backoff that stops still does when it has been a strategy meanwhile."""
    backoff = to_backoff(from_backoff(Backoff.fixed(1).with_max_attempts(2)))

    assert [1.0, None] == [backoff.next_delay(n) for n in (1, 2)]


def test_bridges_are_equal_where_their_ends_are():
    """Settings made twice are the same settings, and say what they are made of."""
    strategy = from_backoff(Backoff.fixed(1))

    assert from_backoff(Backoff.fixed(1)) == strategy
    assert "from_backoff(Backoff.fixed(1.0))" == repr(strategy)
    assert to_backoff(strategy) == to_backoff(strategy)
    assert "to_backoff(from_backoff(Backoff.fixed(1.0)))" == repr(to_backoff(strategy))


@pytest.mark.parametrize("other", [None, 1.0, Backoff.fixed(1), "Linear", Linear])
def test_bridge_to_backoff_needs_a_strategy(other):
    """Neither a Backoff nor a class is one; the error says how a Backoff becomes it."""
    with bad_argument(
        "backoff_strategy",
        other,
        "an object with compute_next_backoff_delay(); see from_backoff()",
    ):
        to_backoff(other)


@pytest.mark.parametrize("other", [None, 1.0, "fixed=1s"])
def test_bridge_from_backoff_needs_a_backoff(other):
    """The text that one is made from is no Backoff."""
    with bad_argument("backoff", other, "a Backoff"):
        from_backoff(other)


def test_exhausted_backoff_ends_a_call_for_a_reason():
    """The refusal comes from the error of the attempt, as any other one."""
    error = ConnectionResetError()
    strategy = from_backoff(Backoff.fixed(1).with_max_attempts(1))
    with pytest.raises(BackoffExhaustedError) as caught:
        ask_for_delay(strategy, 1, error)

    assert error is caught.value.__cause__
