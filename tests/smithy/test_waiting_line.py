"""Who waits before whom."""

import pytest

from aioretry_smithy.smithy.waiting_line import Place, WaitingLine


@pytest.fixture
def line():
    """A line in which nobody waits."""
    return WaitingLine()


def join(line, amount=1.0, *, due=1.0):
    """Return the place of a new waiter, who means to look again at *due*."""
    place = Place(amount)
    line.tokens_ahead(place, 0.0)
    place.due = due
    return place


def test_each_waits_for_those_who_came_before(line):
    """Not for as many others, but for as much as they want."""
    places = [join(line, amount) for amount in (1.0, 5.0, 0.5, 1.0)]
    actual = [line.tokens_ahead(place, 0.0) for place in places]

    assert [0.0, 1.0, 6.0, 6.5] == actual


def test_when_the_first_leaves_the_others_move_up(line):
    """The next one is the first."""
    first, second, third = (join(line) for _ in range(3))
    first.leave()

    assert 1.0 == line.tokens_ahead(third, 0.0)
    assert 0.0 == line.tokens_ahead(second, 0.0)


def test_a_place_that_is_left_counts_until_its_turn(line):
    """An estimate that is too long by what is not wanted any more, and no longer."""
    first, second, third = (join(line) for _ in range(3))
    second.leave()
    assert 2.0 == line.tokens_ahead(third, 0.0)
    first.leave()

    assert 0.0 == line.tokens_ahead(third, 0.0)
    assert 1 == len(line)


@pytest.mark.parametrize("now", [3.5, -3.5])
def test_whoever_does_not_look_as_promised_loses_the_place(line, now):
    """The loop is stuck or gone, or the clock has jumped; others are served."""
    gone, other = join(line), join(line)
    other.due = now

    assert 0.0 == line.tokens_ahead(other, now)
    gone.due = now
    assert 1.0 == line.tokens_ahead(gone, now)


def test_a_line_that_was_stuck_forms_again(line):
    """When a loop was held up, its waiters queue as they wake, not all at once."""
    places = [join(line) for _ in range(10)]
    actual = []
    for place in places:
        actual.append(line.tokens_ahead(place, 100.0))
        place.due = 101.0

    assert [*range(10)] == actual


def test_being_a_little_late_costs_nothing(line):
    """A busy loop wakes its tasks late."""
    first, second = join(line), join(line)

    assert 1.0 == line.tokens_ahead(second, 2.0)
    assert 0.0 == line.tokens_ahead(first, 2.0)


def test_those_who_left_are_forgotten_while_the_first_waits(line):
    """One who waits for very much does not make the line grow for ever."""
    first, last = join(line, 1e6), join(line)
    for _ in range(10_000):
        join(line).leave()
        assert len(line) <= 2 * 2 + 64

    assert 0.0 == line.tokens_ahead(first, 0.0)
    assert 1e6 == line.tokens_ahead(last, 0.0)


def test_amounts_beyond_all_numbers_do_not_stay_in_line(line):
    """When they have left, positions are exact again."""
    places = [join(line, 1.7e308) for _ in range(3)]
    for place in places:
        place.leave()
    join(line)

    assert 1.0 == line.tokens_ahead(join(line), 0.0)
