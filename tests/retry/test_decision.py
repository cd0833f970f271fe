"""Answers of strategies, and the one of several that counts."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle

import pytest
from chains import bad_argument, raises_exactly

from aioretry_smithy import Backoff, RetryDecision
from aioretry_smithy._retry.strategy import first_answer

BACKOFF = Backoff.fixed(0.5)
OTHER = Backoff.fixed(1.0)
RETRY, NO_RETRY, NEXT = (
    RetryDecision.retry(BACKOFF),
    RetryDecision.no_retry(),
    RetryDecision.next(),
)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (BACKOFF, RETRY),
        (None, NEXT),
        (RETRY, RETRY),
        (NO_RETRY, NO_RETRY),
        (NEXT, NEXT),
    ],
)
def test_answers_stand_for_decisions(answer, expected):
    """A backoff and None are the short forms of two of the decisions."""
    assert expected == RetryDecision.of(answer)


@pytest.mark.parametrize("answer", [0.5, True, False, 0, "retry", RetryDecision, ()])
def test_other_answers_are_refused(answer):
    """A truth value or a number of seconds is told from a decision."""
    with bad_argument("should_retry", answer, "a Backoff, a RetryDecision or None"):
        RetryDecision.of(answer)


def test_decision_keeps_its_backoff():
    """The very object, since the retrying client counts by identity."""
    assert BACKOFF is RETRY.backoff
    assert BACKOFF is RetryDecision.of(BACKOFF).backoff
    assert NO_RETRY.backoff is None
    assert NEXT.backoff is None


def test_only_next_leaves_it_to_the_next_one():
    """The first decision ends the chain."""
    assert [False, False, True] == [each.is_next for each in (RETRY, NO_RETRY, NEXT)]


def test_decisions_without_a_backoff_are_one_object_each():
    """They are made once, not for each answer."""
    assert RetryDecision.no_retry() is NO_RETRY
    assert RetryDecision.next() is NEXT
    assert RetryDecision.of(None) is NEXT


def test_decisions_are_values():
    """Equal where they say the same, also after a copy or a pickle."""
    assert RETRY == RetryDecision.retry(Backoff.fixed(0.5))
    assert 3 == len({RETRY, NO_RETRY, NEXT})
    for decision in (RETRY, NO_RETRY, NEXT):
        assert decision == copy.deepcopy(decision)
        assert decision == pickle.loads(pickle.dumps(decision))


@pytest.mark.parametrize("decision", [RETRY, NO_RETRY, NEXT])
def test_repr_is_the_call_that_makes_it(decision):
    """It is read in messages and at the prompt."""
    names = {"RetryDecision": RetryDecision, "Backoff": Backoff}

    assert decision == eval(repr(decision), names)


@pytest.mark.parametrize("backoff", [None, 0.5, NEXT])
def test_retry_needs_a_backoff(backoff):
    """A decision to retry without one would be another decision."""
    with pytest.raises(ValueError, match=r"^backoff: .* \(expected: a Backoff\)$"):
        RetryDecision.retry(backoff)


async def later(answer):
    await asyncio.sleep(1.0)
    return answer


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([], None),
        ([None, NEXT], None),
        ([BACKOFF, OTHER], BACKOFF),
        ([None, BACKOFF], BACKOFF),
        ([NEXT, NO_RETRY, BACKOFF], NO_RETRY),
        ([NEXT, RETRY, NO_RETRY], RETRY),
    ],
)
async def test_first_answer_that_is_not_next_wins(answers, expected):
    """Plain answers give a plain one, awaitable ones the same one awaited."""
    assert expected is first_answer(iter(answers))
    for plain in range(len(answers)):
        mixed = [
            answer if index < plain else later(answer)
            for index, answer in enumerate(answers)
        ]
        given = first_answer(iter(mixed))
        given = await given if inspect.isawaitable(given) else given
        for coroutine in filter(inspect.iscoroutine, mixed):
            coroutine.close()  # what was not asked for

        assert expected is given


async def test_answers_behind_an_awaitable_one_may_be_plain():
    """Each is taken as it comes."""
    answers = [None, later(None), NEXT, later(NEXT), NO_RETRY, BACKOFF]

    assert NO_RETRY is await first_answer(iter(answers))


async def test_no_more_answers_are_taken_than_needed():
    """Asking the next strategy may cost a body, or a request to a service."""
    plain = iter([None, BACKOFF, OTHER])
    first_answer(plain)
    awaited = iter([later(None), BACKOFF, OTHER])
    await first_answer(awaited)

    assert [OTHER] == [*plain] == [*awaited]


async def test_bad_answers_are_refused_on_either_way():
    """Also where they come later."""
    with pytest.raises(ValueError, match=r"^should_retry: 0.5 "):
        first_answer(iter([None, 0.5]))
    with pytest.raises(ValueError, match=r"^should_retry: True "):
        await first_answer(iter([later(None), True]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5,), "backoff: 0.5 (expected: a Backoff, or None)"),
        (
            (Backoff.fixed(1), True),
            "is_next: True (expected: True or False, and False beside a backoff)",
        ),
        (
            (None, 1),
            "is_next: 1 (expected: True or False, and False beside a backoff)",
        ),
    ],
)
def test_decision_that_is_none_is_told_at_once(arguments, message):
    """Also where it is not made by the three methods."""
    with raises_exactly(message):
        RetryDecision(*arguments)


def test_decision_may_be_spelled_out():
    """The results of the three methods can be made by hand."""
    assert RetryDecision.next() == RetryDecision(None, True)
    assert RetryDecision.no_retry() == RetryDecision()
