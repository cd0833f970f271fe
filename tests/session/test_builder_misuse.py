"""A builder that is used as something else says what to write."""

from __future__ import annotations

import pytest

from aioretry_smithy import SessionBuilder


async def test_builder_is_entered():
    """The forgotten ``build()`` is named."""
    expected = "a builder is no session: async with builder.build() as session"
    with pytest.raises(TypeError) as caught:
        async with SessionBuilder("https://api.example.com"):
            pass

    assert expected == str(caught.value)


@pytest.mark.parametrize("make", [SessionBuilder, SessionBuilder.standard])
def test_base_url_without_a_scheme(make):
    """The argument is named, and a URL that would do."""
    expected = "base_url: 'api.example.com/v1' (expected: with a scheme, such as"
    with pytest.raises(ValueError, match=r"\Abase_url: ") as caught:
        make("api.example.com/v1")

    assert f"{expected} 'http://api.example.com/v1')" == str(caught.value)
