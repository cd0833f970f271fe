"""Cases of several dimensions, without all of their product."""

from itertools import combinations, cycle, islice, product

import pytest


def each_pair(*, ids=None, **axes):
    """Parametrize so that each two values of different axes meet in some case.

    It is for axes of which no three play together: what breaks where two values meet
    is found, by as few cases as the two longest axes have pairs.

    >>> each_pair(method=["GET", "PUT"], end=["close", "reset"], size=[1, 2]).args[1]
    [('GET', 'close', 1), ('GET', 'reset', 2), ('PUT', 'close', 2), ('PUT', 'reset', 1)]
    """
    values = [list(axis) for axis in axes.values()]
    rows = [tuple(map(_value, values, row)) for row in _rows([len(v) for v in values])]
    return pytest.mark.parametrize(tuple(axes), rows, ids=ids)


def each_value(**axes):
    """Parametrize so that each value is in some case; the longest axis says how many.

    It is for axes that have nothing to do with each other.

    >>> each_value(name=["a", "b", "c"], shape=[1, 2]).args[1]
    [('a', 1), ('b', 2), ('c', 1)]
    """
    values = [list(axis) for axis in axes.values()]
    most = max(map(len, values))
    rows = zip(*(islice(cycle(axis), most) for axis in values), strict=True)
    return pytest.mark.parametrize(tuple(axes), [*rows])


def _value(axis, index):
    return axis[index]


def _rows(lengths):
    """Yield rows of indices, each the one that has most pairs which none had before."""
    axes = range(len(lengths))
    missing = {
        (a, x, b, y)
        for a, b in combinations(axes, 2)
        for x, y in product(range(lengths[a]), range(lengths[b]))
    }
    every = [*product(*map(range, lengths))]
    while missing:
        best = max(every, key=lambda row: len(missing & _pairs(row)))
        missing -= _pairs(best)
        yield best


def _pairs(row):
    return {(a, row[a], b, row[b]) for a, b in combinations(range(len(row)), 2)}
