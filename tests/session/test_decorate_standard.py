"""The standard chain on a session that something else has built."""

from __future__ import annotations

import inspect

import aiohttp
import pytest
from chains import URL, bad_argument

from aioretry_smithy import (
    CircuitBreakerClient,
    LoggingClient,
    RateLimitingClient,
    RequestLog,
    RetryingClient,
    SessionBuilder,
    decorate_standard,
    undecorate,
    unwrap,
)
from aioretry_smithy._session.builder import SessionArguments
from aioretry_smithy._session.standard import STANDARD_SETTINGS, StandardSettings
from aioretry_smithy.testing import ScriptedTransport

KNOWN = "a setting of the standard chain"


async def test_it_is_the_chain_of_the_builder():
    """In its order, with its settings, in place."""
    async with aiohttp.ClientSession() as session:
        transport = ScriptedTransport([503, 503, 200])
        same = decorate_standard(session, inside=[transport], rate=100)
        async with session.get(URL) as response:
            log = RequestLog.of(response)

        chain = []
        client = unwrap(session, LoggingClient)
        while client is not None:
            chain.append(client)
            client = getattr(client, "delegate", None)

    expected = SessionBuilder.standard(rate=100).describe().splitlines()[:-1]
    assert same is session
    assert (200, 3) == (response.status, log.total_attempts)
    assert [line.strip().partition("(")[0] for line in expected] == [
        type(each).__name__ for each in chain[: len(expected)]
    ]
    assert expected[0] == chain[0].describe()


async def test_session_keeps_its_timeout():
    """Its total is the deadline of a call."""
    timeout = aiohttp.ClientTimeout(total=12.5)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        decorate_standard(session, inside=[ScriptedTransport([200])])
        async with session.get(URL) as response:
            log = RequestLog.of(response)

        assert timeout is session.timeout
    assert 12.5 == log.response_timeout


async def test_settings_are_those_of_the_builder():
    """None leaves a part out."""
    async with aiohttp.ClientSession() as session:
        decorate_standard(
            session, max_total_attempts=2, circuit_breaker=None, logging=None
        )

        assert 2 == unwrap(session, RetryingClient).config.max_total_attempts
        for left_out in CircuitBreakerClient, LoggingClient, RateLimitingClient:
            assert unwrap(session, left_out) is None


async def test_it_can_be_taken_off():
    """As any chain."""
    async with aiohttp.ClientSession() as session:
        undecorate(decorate_standard(session))
        assert unwrap(session, RetryingClient) is None
        decorate_standard(session)
        assert unwrap(session, RetryingClient) is not None


async def test_an_attempt_is_not_longer_than_a_call():
    """As where a session is built."""
    timeout = aiohttp.ClientTimeout(total=5.0)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        with pytest.raises(ValueError, match=r"^attempt_timeout: 10\.0 "):
            decorate_standard(session, attempt_timeout=10.0)

        assert unwrap(session, RetryingClient) is None
        # That of the chain is not meant to be longer.
        decorate_standard(session)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("retries", f"{KNOWN}, perhaps 'max_total_attempts', which counts the first"),
        ("retrying_", f"{KNOWN}, perhaps 'retrying'"),
        ("headers", KNOWN),
        ("base_url", KNOWN),
        ("has_group", KNOWN),
        (
            "response_timeout",
            f"{KNOWN}; the session has one, the total of its ClientTimeout",
        ),
    ],
)
async def test_unknown_settings_are_refused(name, expected):
    """Without their values, which may be secrets; the session stays as it was."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ValueError) as caught:
            decorate_standard(session, **{name: "hunter2"})

        assert f"argument: {name!r} (expected: {expected}" in str(caught.value)
        assert "hunter2" not in str(caught.value)
        assert unwrap(session, RetryingClient) is None


async def test_bad_settings_are_refused():
    """By the names that the caller wrote."""
    async with aiohttp.ClientSession() as session:
        with bad_argument("enforce", "no", "True or False"):
            decorate_standard(session, enforce="no")


def test_type_checkers_know_the_settings_that_there_are():
    """Those of the builder, with its types, but for what makes a session."""
    of_builder = {*inspect.signature(SessionBuilder.standard).parameters}
    others = {"base_url", "response_timeout", "client_session_arguments"}

    assert {*StandardSettings.__annotations__} == of_builder - others
    assert {*StandardSettings.__annotations__} == STANDARD_SETTINGS
    standard = SessionBuilder.standard.__annotations__
    assert {name: standard[name] for name in STANDARD_SETTINGS} == {
        name: kind.__forward_arg__
        for name, kind in StandardSettings.__annotations__.items()
    }
    assert not {*StandardSettings.__annotations__} & {*SessionArguments.__annotations__}
