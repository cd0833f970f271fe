"""Errors about what the caller gave show no secret of it."""

from __future__ import annotations

import functools
import logging
import time
from datetime import timedelta

import aiohttp
import pytest
from chains import response_of, retrying, session
from multidict import CIMultiDict

from aioretry_smithy import (
    Backoff,
    HttpRequest,
    RequestLog,
    RetryConfig,
    RetryDecision,
    RetryingClient,
    RetryLimiter,
    RetryStrategy,
    SessionBuilder,
    decorate,
    new_response,
    smithy,
    undecorate,
    unwrap,
)
from aioretry_smithy._errors import bad_argument
from aioretry_smithy.testing import ScriptedTransport

SECRET = "hunter2"
REQUEST = HttpRequest("GET", f"http://me:{SECRET}@localhost/?token={SECRET}")


class Vault:
    """A class of the user's own whose description says it all."""

    def __repr__(self):
        return f"Vault({SECRET})"


class VaultError(Exception):
    def __repr__(self):
        return f"VaultError({SECRET})"


async def response():
    return new_response(REQUEST, headers={"Set-Cookie": f"sid={SECRET}"})


async def status_error():
    info = aiohttp.RequestInfo(
        REQUEST.url, "GET", CIMultiDict(Authorization=SECRET), REQUEST.url
    )
    return aiohttp.ClientResponseError(info, (), status=500)


async def of(value):
    return value


SOURCES = {
    "response": response,
    "error of a status": status_error,
    "text": lambda: of(f"https://me:{SECRET}@localhost/"),
    "text without a scheme": lambda: of(f"me:{SECRET}@localhost:8080"),
    "query": lambda: of(f"/orders?token={SECRET}"),
    "bytes": lambda: of(f"password={SECRET}".encode()),
    "URL": lambda: of(REQUEST.url),
    "headers": lambda: of(CIMultiDict(Authorization=SECRET)),
    "dictionary": lambda: of({"X-Api-Key": SECRET}),
    "pairs": lambda: of([("Cookie", SECRET)]),
    "own class": lambda: of(Vault()),
    "list of own class": lambda: of([Vault()]),
    "own error": lambda: of(VaultError(SECRET)),
    "error": lambda: of(ValueError(f"no answer from https://me:{SECRET}@localhost/")),
    "partial": lambda: of(functools.partial(print, Vault())),
    "method": lambda: of(Vault().__repr__),
    "deep": lambda: of([[[[[Vault()]]]]]),
}
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@each_source
async def test_what_has_no_log_is_named_by_its_class(source):
    """What a program holds by mistake may be the response of another session."""
    given = await source()
    with pytest.raises(LookupError) as caught:
        RequestLog.of(given)

    assert SECRET not in str(caught.value)
    assert type(given).__name__ in str(caught.value)


@each_source
@pytest.mark.parametrize(
    "function",
    [decorate, undecorate, functools.partial(unwrap, client=RetryingClient)],
    ids=["decorate", "undecorate", "unwrap"],
)
async def test_what_is_no_session_is_named_by_its_class(source, function):
    """It may be the URL of the server, or the response."""
    given = await source()
    with pytest.raises(ValueError, match=r"^session: ") as caught:
        function(given)

    assert SECRET not in str(caught.value)


@each_source
async def test_other_arguments_are_named_by_their_class(source):
    """Each takes what its name says, and may get anything."""
    given = await source()
    calls = [
        lambda: RetryConfig(given),
        lambda: RetryingClient.new_decorator(RetryStrategy.never(), limiter=given),
        lambda: SessionBuilder().decorator(given),
        lambda: SessionBuilder().response_timeout(given),
        lambda: new_response(REQUEST, given),
        lambda: RetryDecision.retry(given),
        lambda: ScriptedTransport(given),
    ]
    for call in calls:
        try:
            call()
        except Exception as error:
            assert SECRET not in str(error)  # noqa: PT017 - or raise


async def test_answer_of_a_limiter_is_named_by_its_class(caplog):
    """It is logged, since it refuses the retry."""

    class Odd(RetryLimiter):
        async def acquire(self, ctx, cause):
            return await response()

    with caplog.at_level(logging.WARNING, "aioretry_smithy"):
        await response_of(session([503], retrying(0.0, limiter=Odd())))

    assert "returned <ClientResponse object>, so there is no retry" in caplog.text


async def test_error_that_allows_no_retry_is_named_by_its_class():
    """In a loop of one's own it is what the request failed with."""
    strategy = smithy.SimpleRetryStrategy()
    token = await strategy.acquire_initial_retry_token()
    with pytest.raises(smithy.RetryError) as caught:
        await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=await status_error()
        )

    assert "the error allows no retry: <ClientResponseError object>" == str(
        caught.value
    )


async def test_decorated_session_is_named():
    """A second decoration says what is wrong, as ever."""
    async with SessionBuilder().build() as client:
        with pytest.raises(ValueError, match=r"^session: <aiohttp.*decorated yet\)$"):
            decorate(client)


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        ("Adaptiv", "'Adaptiv'"),
        (b"GET", "b'GET'"),
        (timedelta(seconds=3), "datetime.timedelta(seconds=3)"),
        ([1, "2", (None,)], "[1, '2', (None,)]"),
        ({"Retry-After": 1}, "{'Retry-After': 1}"),
        (TimeoutError, "<class 'TimeoutError'>"),
        ([TimeoutError("late")], "[TimeoutError('late')]"),
        (len, "<built-in function len>"),
        (functools.partial(len), "functools.partial(<built-in function len>)"),
        (Backoff.fixed(1.0), "Backoff.fixed(1.0)"),
        (REQUEST, "<HttpRequest GET http://****@localhost/?token=****>"),
        ("9" * 5000, f"'{'9' * 499}…"),
        (b"9" * 5000, f"b'{'9' * 498}…"),
        ([0] * 200, f"[{'0, ' * 166}0…"),
        ([0] * 501, "<list object>"),
        ([[[[1]]]], "<list object>"),
        ([[[[]]]], "[[[[]]]]"),
        ({1: {2: 3}}, "{1: {2: 3}}"),
        (range(3), "<range object>"),
    ],
)
def test_what_has_surely_no_secret_is_shown(value, described):
    """An error says what was given wherever it can."""
    assert f"delay: {described} (expected: a number)" == str(
        bad_argument("delay", value, "a number")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        ["token" * 1_000_000],
        {"name": b"secret" * 1_000_000},
        [["pass" * 100] * 400] * 400,
        ("session" + " " * 5_000_000,),
    ],
    ids=["list", "dict", "nested", "blanks"],
)
def test_long_texts_in_a_collection_take_no_time(value):
    """Only what is shown is searched for what may be secret."""
    started = time.process_time()
    with pytest.raises(ValueError, match="max_total_attempts: ") as caught:
        RetryConfig(RetryStrategy.never(), max_total_attempts=value)

    assert time.process_time() - started < 1.0

    assert len(str(caught.value)) < 700


def test_value_that_python_cannot_describe_is_named_by_its_class():
    """A number of 5000 digits is refused for what it is, not for its digits."""
    with pytest.raises(ValueError, match="<int object> .expected: finite and > 0") as e:
        RetryConfig(RetryStrategy.never(), attempt_timeout=-(10**5000))

    assert str(e.value).startswith("attempt_timeout: ")
