"""The bounded map that keys lead into."""

import pytest

from aioretry_smithy._values import BoundedMap


def test_map_makes_a_value_once_per_key():
    """The factory is called with the key, once."""
    made = []
    values = BoundedMap(lambda key: made.append(key) or [key])

    first, other, again = values.get("a"), values.get("b"), values.get("a")

    assert ["a", "b"] == made
    assert first is again
    assert ["b"] == other


def test_map_drops_the_least_recently_used():
    """A value that was asked for again outlives an older one."""
    made = []
    values = BoundedMap(lambda key: made.append(key) or key, max_size=2)

    for key in ("a", "b", "a", "c", "a", "b"):
        values.get(key)

    assert ["a", "b", "c", "b"] == made
    assert 2 == len(values)


def test_copy_of_a_map_is_independent():
    """It shows what is kept, in the order in which it was last asked for."""
    values = BoundedMap(str.upper)
    for key in ("a", "b", "a"):
        values.get(key)
    copy = values.copy()
    values.get("c")

    assert [("b", "B"), ("a", "A")] == list(copy.items())


def test_map_keeps_1024_values_by_default():
    """However many hosts there are, the map stays small."""
    values = BoundedMap(str)

    for number in range(3000):
        values.get(str(number))

    assert 1024 == len(values)


def test_map_keeps_nothing_when_the_factory_raises():
    """A factory that fails is asked again, and its error stands alone."""
    values = BoundedMap(int)

    with pytest.raises(ValueError) as caught:
        values.get("seven")

    assert None is caught.value.__context__
    assert 0 == len(values)
    assert 7 == values.get("7")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "factory: None (expected: a callable that takes the key)"),
        ((str, 0), "max_size: 0 (expected: an int > 0)"),
        ((str, True), "max_size: True (expected: an int > 0)"),
        ((str, 1.5), "max_size: 1.5 (expected: an int > 0)"),
        ((str, "9"), "max_size: '9' (expected: an int > 0)"),
    ],
)
def test_map_rejects_bad_arguments(arguments, message):
    """A bad argument is named where the map is made."""
    with pytest.raises(ValueError) as caught:
        BoundedMap(*arguments)

    assert message == str(caught.value)
