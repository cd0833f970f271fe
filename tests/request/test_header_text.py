"""What is a name, or a value, of a header."""

from __future__ import annotations

import pytest
from chains import bad_argument

from aioretry_smithy._request.arguments import check_header_name, is_header_value


@pytest.mark.parametrize(
    "name", ["", "X Key", "X-Key\r\n", "X:Key", "Schlüssel", 7, None]
)
def test_name_is_a_token(name):
    """No blank, no colon, no control character, nothing that is not ASCII."""
    with bad_argument("header", name, "a header name"):
        check_header_name(name)


@pytest.mark.parametrize("value", ["abc", "a b", "a\tb", "=?/+", '"quoted"'])
def test_value_may_have_blanks_inside(value):
    """The server gets it as it is."""
    assert is_header_value(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "abc\n",
        "\nabc",
        "a\r\nX: 1",
        "a\0b",
        " abc",
        "abc ",
        "\x7f",
        "\xe9",
        "€",
        b"a",
        None,
    ],
)
def test_other_values_are_refused(value):
    """Line ends and control characters, blanks at the ends, what no byte stands for."""
    assert not is_header_value(value)
