"""The tables that pages show: several runs, a median, a verdict."""

import pytest

pytest.importorskip("rich", reason="prints the tables of the benchmarks")

import imports
import tables
from bounds import SHOWN
from figures import Figure, in_runs
from function_variants import BARE_FUNCTION

LIMITS = [bound.limit for several in SHOWN.values() for bound in several]


def column(table, number):
    return [*table.columns[number].cells]


@pytest.mark.slow
def test_each_run_is_a_process_that_measures_all():
    """Beside itself a variant costs as much as it costs."""
    figure = Figure("function", BARE_FUNCTION, BARE_FUNCTION)

    assert [(1.0, 1.0)] * 3 == in_runs([figure] * 3, rounds=1, runs=2)


@pytest.mark.parametrize(("times", "verdict"), [(1.0, "ok"), (1.1, "missed")])
def test_a_bound_is_kept_by_the_median_of_the_runs(monkeypatch, times, verdict):
    """One bad run of three does not count, nor does a good one."""

    def found(figures, rounds, runs):
        assert (40, 3) == (rounds, runs)
        return [(0.5 * limit, 9.0 * limit, times * limit) for limit in LIMITS]

    monkeypatch.setattr(tables, "in_runs", found)

    assert {verdict} == {*column(tables.bounds(40, 3), -1)}


def test_costs_are_those_of_each_chain_in_each_situation(monkeypatch):
    """Four rows of three figures, as they stand in the README."""

    def found(figures, rounds, runs):
        return [(9.0, number, 0.0) for number in range(1, len(figures) + 1)]

    monkeypatch.setattr(tables, "in_runs", found)
    table = tables.costs(40, 3)

    assert ["1.0", "4.0", "7.0", "9.0"] == column(table, 1)
    assert ["2.0", "5.0", "8.0", "9.0"] == column(table, 2)
    assert ["3.0", "6.0", "9.0", "9.0"] == column(table, 3)


@pytest.mark.slow
def test_an_import_is_measured_beside_that_of_aiohttp():
    """In the same process, which has loaded nothing of either before."""
    aiohttp, again = imports.seconds(imports.AIOHTTP)

    assert 0 < 10 * again < aiohttp


def test_imports_are_measured_at_their_best(monkeypatch):
    """The least of all processes for each, and the median of the runs."""
    samples = iter([(4.0, 1.0), (2.0, 9.0)] * 3)
    monkeypatch.setattr(imports, "seconds", lambda _statement: next(samples))
    monkeypatch.setattr(imports, "STATEMENTS", {"one": "import one"})
    monkeypatch.setattr(tables, "STATEMENTS", {"one": "import one"})
    table = tables.imports(2, 3)

    assert ["one"] == column(table, 0)
    assert ["0.50"] == column(table, 1)
    assert ["0.50, 0.50, 0.50"] == column(table, 2)
