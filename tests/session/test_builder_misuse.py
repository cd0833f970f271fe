"""A builder that is used as something else says what to write."""

from __future__ import annotations

import pytest

from aioretry_smithy import SessionBuilder

OF_ATTEMPTS = (
    "; SessionBuilder.standard(attempt_timeout=...) has it, and"
    " RetryingClient.new_decorator(..., attempt_timeout=...)"
)


async def test_builder_is_entered():
    """The forgotten ``build()`` is named."""
    expected = "a builder is no session: async with builder.build() as session"
    with pytest.raises(TypeError) as caught:
        async with SessionBuilder("https://api.example.com"):
            pass

    assert expected == str(caught.value)


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("retries", ""),
        ("rate", "; SessionBuilder.standard(rate=...) has it"),
        ("attempt_timeout", OF_ATTEMPTS),
    ],
)
def test_setting_of_another_place(name, places):
    """The place of a setting that a builder has no method for is named."""
    with pytest.raises(AttributeError) as caught:
        getattr(SessionBuilder(), name)

    expected = f"'SessionBuilder' object has no attribute '{name}'{places}"
    assert expected == str(caught.value)


@pytest.mark.parametrize("make", [SessionBuilder, SessionBuilder.standard])
def test_base_url_without_a_scheme(make):
    """The argument is named, and a URL that would do."""
    expected = "base_url: 'api.example.com/v1' (expected: with a scheme, such as"
    with pytest.raises(ValueError, match=r"\Abase_url: ") as caught:
        make("api.example.com/v1")

    assert f"{expected} 'http://api.example.com/v1')" == str(caught.value)


@pytest.mark.parametrize("make", [SessionBuilder, SessionBuilder.standard])
@pytest.mark.parametrize("value", [b"http://example.com", 80, True])
def test_base_url_that_is_none(make, value):
    """It is refused at once, not where a session is built."""
    expected = r"\Abase_url: .* \(expected: a str or a yarl\.URL\)\Z"
    with pytest.raises(ValueError, match=expected):
        make(value)
