"""Rules of limits that adapt agree with plain models of them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioretry_smithy import ConcurrencyLimit

histories = st.integers(0, 2**32).map(random.Random)


def bounds(chance):
    minimum = chance.randint(1, 10)
    maximum = chance.randint(minimum, 300)
    initial = chance.uniform(minimum, maximum)
    return {"initial": initial, "minimum": minimum, "maximum": maximum}


def samples(chance, limit):
    """Yield ends, round trips, requests in flight and whether each was dropped."""
    now = chance.choice([0.0, 1e6])
    for _ in range(chance.randint(0, 60)):
        now += chance.choice([0.0, chance.random()])
        in_flight = chance.randint(1, max(1, int(limit())))
        yield now, chance.uniform(0.0, 2.0), in_flight, chance.random() < 0.2


@settings(max_examples=10 * settings.default.max_examples)
@given(histories)
def test_aimd_agrees_with_a_plain_model(chance):
    """One more a round trip, a share less a round trip with drops."""
    limits = bounds(chance)
    slow_after = chance.choice([None, 1.5])
    rule = ConcurrencyLimit.aimd(**limits, backoff_ratio=0.8, slow_after=slow_after)
    (expected, minimum, maximum), cuts = limits.values(), []
    for now, round_trip, in_flight, dropped in samples(chance, lambda: rule._exact):
        rule._learn(now, round_trip, in_flight, dropped)
        if dropped or (slow_after and round_trip > slow_after):
            if all(now - round_trip > cut + 1e-6 for cut in cuts):
                expected *= 0.8
                cuts.append(now)
        elif 2 * in_flight >= expected:
            expected += 1 / expected
        expected = min(max(expected, minimum), maximum)

        assert expected == rule._exact


@settings(max_examples=10 * settings.default.max_examples)
@given(histories)
def test_gradient_agrees_with_a_plain_model(chance):
    """It is Netflix's class in other words; a drop has no round trip."""
    limits = bounds(chance)
    window = chance.choice([1, 5, 20, 600])
    rule = ConcurrencyLimit.gradient(**limits, window=window)
    limit, minimum, maximum = limits.values()
    average, measured, cuts = 0.0, [], []
    for now, round_trip, in_flight, dropped in samples(chance, lambda: rule._exact):
        rule._learn(now, round_trip, in_flight, dropped)
        gradient = 0.5
        if dropped:
            changes = all(now - round_trip > cut + 1e-6 for cut in cuts)
            cuts += [now] * changes
        else:
            changes = in_flight >= limit / 2
            measured.append(round_trip)
            # The plain average of what Netflix's class saw so far, to begin with.
            if len(measured) <= min(10, window):
                many = len(measured)
                average = (average * (many - 1) + round_trip) / many
            else:
                factor = 2 / (window + 1)
                average = average * (1 - factor) + round_trip * factor
            gradient = max(0.5, min(1.0, 1.5 * average / round_trip))
            if average / round_trip > 2:
                average *= 0.95
        if changes:
            new = limit * gradient + 4
            limit = limit * 0.8 + new * 0.2
            limit = max(minimum, min(maximum, limit))

        assert pytest.approx(limit) == rule._exact


def test_answers_that_take_no_time_do_not_break_the_gradient():
    """A mock may answer in the same instant."""
    rule = ConcurrencyLimit.gradient()
    rule._learn(0.0, 0.0, 20, dropped=False)

    assert 20.8 == pytest.approx(rule._exact)


def test_a_call_that_began_in_the_instant_of_a_cut_does_not_cut_again():
    """The sums of floats that tell so may differ a little."""
    rule = ConcurrencyLimit.aimd(backoff_ratio=0.5)
    rule._learn(0.7, 0.7, 20, dropped=True)
    rule._learn(0.7 + 0.1, 0.1, 20, dropped=True)

    assert 10.0 == rule._exact


@pytest.mark.parametrize(
    ("kind", "argument", "value"),
    [
        ("aimd", "initial", 0),
        ("aimd", "initial", 201),
        ("aimd", "initial", None),
        ("aimd", "minimum", 0),
        ("aimd", "minimum", 1.5),
        ("aimd", "maximum", float("inf")),
        ("aimd", "maximum", 0),
        ("aimd", "backoff_ratio", 0),
        ("aimd", "backoff_ratio", 1),
        ("aimd", "backoff_ratio", "0.9"),
        ("aimd", "slow_after", 0),
        ("aimd", "slow_after", "1"),
        ("gradient", "tolerance", 0.9),
        ("gradient", "tolerance", None),
        ("gradient", "smoothing", 0),
        ("gradient", "smoothing", 1.1),
        ("gradient", "smoothing", None),
        ("gradient", "queue", -1),
        ("gradient", "queue", None),
        ("gradient", "window", 0),
        ("gradient", "window", 1.5),
    ],
)
def test_bad_arguments_are_refused(kind, argument, value):
    """The error names the argument."""
    with pytest.raises(ValueError, match=rf"^{argument}: {value!r} \(expected: "):
        getattr(ConcurrencyLimit, kind)(**{argument: value})
