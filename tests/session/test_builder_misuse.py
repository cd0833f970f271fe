"""Builders that are used as something else, and misspelt settings."""

import inspect

import pytest
from aiohttp import ClientSession
from chains import bad_argument

from aioretry_smithy import SessionBuilder
from aioretry_smithy._session.builder import STANDARD, SessionArguments

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


SESSION = "an argument of aiohttp.ClientSession"
EITHER = f"{SESSION} or of SessionBuilder.standard()"


@pytest.mark.parametrize(
    ("make", "name", "expected"),
    [
        (SessionBuilder, "tiemout", f"{SESSION}, perhaps 'timeout'"),
        (SessionBuilder, "header", f"{SESSION}, perhaps 'headers'"),
        (SessionBuilder, "xyzzy", SESSION),
        (
            SessionBuilder,
            "attempt_timeout",
            f"{SESSION}; SessionBuilder.standard() has one of that name",
        ),
        (SessionBuilder.standard, "tiemout", f"{EITHER}, perhaps 'timeout'"),
        (
            SessionBuilder.standard,
            "max_attempts",
            f"{EITHER}, perhaps 'max_total_attempts'",
        ),
        (SessionBuilder.standard, "xyzzy", EITHER),
    ],
)
def test_misspelt_argument_is_told_at_once(make, name, expected):
    """By its name alone: the value may be a secret."""
    with bad_argument("argument", name, expected):
        make("http://h", **{name: "S3CR3T"})


@pytest.mark.parametrize("make", [SessionBuilder, SessionBuilder.standard])
def test_every_argument_of_a_session_is_known(make):
    """The builder knows those of the aiohttp that is installed."""
    names = inspect.signature(ClientSession).parameters.keys()
    arguments = dict.fromkeys(names - {"base_url", "timeout"})

    assert isinstance(make(**arguments), SessionBuilder)


def test_every_argument_of_a_session_has_a_type():
    """Type checkers see a misspelt one, and no argument of aiohttp's seems to be."""
    names = inspect.signature(ClientSession).parameters.keys() - {"base_url"}
    typed = SessionArguments.__annotations__.keys()

    assert set() == names - typed
    assert typed - names <= {"json_serialize_bytes", "max_headers"}


def test_every_argument_of_the_standard_chain_is_known():
    """As its signature has them."""
    parameters = inspect.signature(SessionBuilder.standard).parameters.values()

    assert STANDARD == {
        each.name for each in parameters if each.kind is each.KEYWORD_ONLY
    }


def test_session_whose_names_are_unknown_takes_any(monkeypatch):
    """A tracer may stand in its place with a signature that tells nothing."""

    def traced(self, *arguments, **options): ...

    monkeypatch.setattr(ClientSession, "__init__", traced)

    assert isinstance(SessionBuilder(new_in_aiohttp=1), SessionBuilder)
