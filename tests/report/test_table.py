"""Counts by key, of which there may be too many."""

from __future__ import annotations

from aioretry_smithy._report.fields import CountTable


class Number:
    def __init__(self):
        self.weight = 0.0

    def merge(self, other):
        self.weight += other.weight


def table_of(counts, most):
    table = CountTable(Number, most)
    for key in counts:
        table.at(key).weight += 1
    return table


def shown(pairs):
    return [(key, number.weight) for key, number in pairs]


def test_largest_come_first():
    """All others are put together, and none is lost."""
    table = table_of("aaabbc", most=9)

    assert [("a", 3), ("b", 2)] == shown(table.largest(2))
    assert (1, 1.0) == (table.merged, table.others.weight)


def test_few_keys_have_no_others():
    """There is nothing to put together."""
    table = table_of("ab", most=9)

    assert [("a", 1), ("b", 1)] == shown(table.largest(2))
    assert 0 == table.merged


def test_keys_without_end_take_no_memory():
    """The rarest go to the others while it counts; what is frequent stays."""
    table = table_of(["a", "a"] + [str(number % 97) for number in range(500)], most=10)
    table.at("a").weight += 5

    pairs = table.largest(3)
    assert ("a", 7.0) == shown(pairs)[0]
    assert 507.0 == table.others.weight + sum(weight for _, weight in shown(pairs))


def test_equal_counts_come_in_the_order_of_their_keys():
    """It is not told which was counted first, nor how floats were rounded."""
    table = CountTable[str, Number](Number)
    table.at("b").weight += 0.3
    table.at("a").weight += 0.1 + 0.2

    assert ["a", "b"] == [key for key, _ in table.largest(2)]
    table.at("a").weight = 0.3 - 1e-15
    assert ["a", "b"] == [key for key, _ in table.largest(2)]
