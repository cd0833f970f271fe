"""Amounts of tokens as whole numbers."""

import pytest

from aioretry_smithy._retry.exact_tokens import in_whole_units


@pytest.mark.parametrize(
    ("amounts", "units"),
    [
        ((), (1,)),
        ((2, 5.0), (1, 2, 5)),
        ((0.1, 10.0), (10, 1, 100)),
        ((1 / 3, 0.5), (6, 2, 3)),
        ((0.0, 1e-9), (10**9, 0, 1)),
        ((1e-10,), (1, 0)),
    ],
)
def test_amounts_share_a_unit(amounts, units):
    """One token comes first; parts finer than a thousand millionth are rounded."""
    assert units == in_whole_units(*amounts)
