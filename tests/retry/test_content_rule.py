"""Rules with content: which bodies they look at, and what they answer."""

from __future__ import annotations

import asyncio
import functools

import aiohttp
import pytest
from chains import URL, bad_argument, response_of
from chains import retrying_session as session
from fake_responses import unending

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    RequestLog,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    RetryStrategyWithContent,
)
from aioretry_smithy.testing import ask

BACKOFF = Backoff.fixed(0.5)


def is_busy(content):
    return content == b"busy"


def rule_that_notes(seen, **settings):
    """Return a rule that keeps what its function is shown."""
    return RetryRuleWithContent(
        **settings,
        on_content=lambda content: seen.append(content) or is_busy(content),
        backoff=BACKOFF,
    )


def silent(status):
    """Return an answer whose body never comes."""
    return lambda ctx, request: unending(request, status)


async def test_body_decides():
    """The same status is retried or not by what the body says."""
    rule = RetryRuleWithContent(on_content=is_busy, backoff=BACKOFF)

    assert BACKOFF is await ask(rule, content=b"busy")
    assert None is await ask(rule, content=b"done")


async def test_rule_is_a_strategy_with_content():
    """It is taken wherever one is, and is no plain one."""
    rule = RetryRuleWithContent(on_content=is_busy)

    assert isinstance(rule, RetryStrategyWithContent)
    assert not isinstance(rule, RetryStrategy)
    assert Backoff.of_default() is rule.backoff
    assert 1024 * 1024 == rule.max_content_length


async def test_caller_gets_the_body_that_was_looked_at():
    """In a session the busy body is retried, and the last one is whole."""
    seen = []
    rule = rule_that_notes(seen, max_content_length=4)
    answers = [(200, {}, b"busy"), (200, {}, b"done and more")]

    async with (
        session(answers, rule, attempt_timeout=1.0) as client,
        client.get(URL) as response,
    ):
        assert "done and more" == await response.text()
    assert [b"busy", b"done"] == seen


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ({"status": 503, "content": b"busy"}, []),
        ({"status": 200, "content": b"busy"}, [b"busy"]),
        ({"status": 200}, [b""]),
        ({"cause": TimeoutError()}, []),
        ({"cause": ConnectionResetError()}, [None]),
        ({"cause": aiohttp.InvalidURL("http://")}, []),
        ({"status": 200, "content": b"busy", "method": "POST"}, []),
    ],
)
async def test_content_is_asked_for_last(outcome, expected):
    """Not where a filter or a condition has decided, nor on permanent failures."""
    seen = []
    rule = rule_that_notes(seen, methods=["GET"], statuses=[503], on_timeout=True)
    await ask(rule, **outcome)

    assert expected == seen


async def test_function_may_retry_an_attempt_without_content():
    """It is shown None where the attempt failed, and may want another one."""
    rule = RetryRuleWithContent(
        on_content=lambda content: content is None, backoff=BACKOFF
    )

    assert BACKOFF is await ask(rule, cause=ConnectionResetError())
    assert None is await ask(rule, content=b"")
    assert None is await ask(rule, cause=RuntimeError("Session is closed"))


@pytest.mark.parametrize(
    ("settings", "method", "waits"),
    [
        ({"on_content": is_busy}, "GET", True),
        ({"on_content": is_busy, "methods": ["PUT"]}, "GET", False),
        ({"on_content": is_busy, "methods": ["PUT"]}, "PUT", True),
        ({"on_content": is_busy, "statuses": [429]}, "GET", True),
        ({"slower_than": 2.0}, "GET", False),
    ],
)
async def test_body_is_waited_for_where_it_is_wanted(settings, method, waits):
    """Not for a method that the rule is not about, nor without a function."""
    rule = RetryRuleWithContent(**settings, backoff=BACKOFF)
    async with session([silent(200)], rule, attempt_timeout=1.0) as client:
        if waits:
            with pytest.raises(AttemptTimeoutError):
                await client.request(method, URL)
        else:
            response = await client.request(method, URL)

            assert 0.0 == RequestLog.of(response).duration


@pytest.mark.parametrize("settings", [{"statuses": [503]}, {"status_classes": [5]}])
async def test_body_is_not_waited_for_where_the_status_has_decided(settings):
    """The retry is made at once."""
    rule = RetryRuleWithContent(**settings, on_content=is_busy, backoff=BACKOFF)
    response = await response_of(session([silent(503), 200], rule, attempt_timeout=1.0))

    assert BACKOFF.delay == RequestLog.of(response).duration


async def test_rule_that_forbids():
    """The strategies behind it cannot retry what it forbids, be it by content."""
    final = RetryRuleWithContent.no_retry(on_content=lambda content: content == b"no")
    chain = final | RetryRule(statuses=[503], backoff=BACKOFF)

    assert None is await ask(chain, status=503, content=b"no")
    assert BACKOFF is await ask(chain, status=503, content=b"busy")
    assert "RetryRuleWithContent.no_retry(on_content=" in repr(final)


async def test_kinds_mix():
    """A chain with such a rule in any place asks each in turn."""
    inside = RetryRuleWithContent(on_content=is_busy, backoff=BACKOFF)
    plain = RetryRule(statuses=[409], backoff=Backoff.fixed(1.0))
    for chain in (inside | plain, plain | inside):
        assert isinstance(chain, RetryStrategyWithContent)
        assert BACKOFF is await ask(chain, content=b"busy")
        assert plain.backoff is await ask(chain, status=409, content=b"done")
        assert None is await ask(chain, status=500)


@pytest.mark.parametrize(
    "behind", [RetryRule(statuses=[503]), RetryRuleWithContent(on_content=is_busy)]
)
def test_strategy_behind_a_catch_all_is_warned_about(behind):
    """A rule that forbids everything does so with content too."""
    with pytest.warns(RuntimeWarning) as caught:
        RetryRuleWithContent.no_retry() | behind

    (warning,) = caught
    assert __file__ == warning.filename
    assert (
        f"{behind!r} is never reached: RetryRuleWithContent.no_retry() in front of it"
        " always decides"
    ) == str(warning.message)


async def later(content):
    return True


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("on_content", b"busy", "a plain function of bytes or None, or None"),
        ("on_content", later, "a plain function of bytes or None, or None"),
        (
            "on_content",
            functools.partial(later),
            "a plain function of bytes or None, or None",
        ),
        ("max_content_length", 0, "an int >= 1"),
        ("max_content_length", 4.0, "an int >= 1"),
        ("max_content_length", None, "an int >= 1"),
    ],
)
@pytest.mark.parametrize("make", [RetryRuleWithContent, RetryRuleWithContent.no_retry])
def test_bad_arguments(make, name, value, expected):
    """A condition that cannot be asked, or a bad length, is refused at once."""
    with bad_argument(name, value, expected):
        make(**{"statuses": [503], name: value})


def test_backoff_must_be_one():
    """As for a rule without content."""
    with pytest.raises(ValueError, match="backoff: 0.5"):
        RetryRuleWithContent(statuses=[503], backoff=0.5)
    with pytest.raises(ValueError, match="none where retries are forbidden"):
        RetryRuleWithContent.no_retry(backoff=BACKOFF)


async def test_answer_that_would_have_to_be_awaited_is_refused():
    """A coroutine would count as true, whatever comes of it."""
    rule = RetryRuleWithContent(on_content=lambda content: asyncio.sleep(0.0, content))

    with pytest.raises(ValueError, match=r"on_content: .*without awaiting it"):
        await ask(rule, content=b"busy")


def test_repr_shows_a_length_that_is_given():
    """The default is not shown."""
    rule = RetryRuleWithContent(statuses=[503], max_content_length=64, backoff=BACKOFF)
    names = {"RetryRuleWithContent": RetryRuleWithContent, "Backoff": Backoff}

    assert (
        "RetryRuleWithContent(statuses=[503], backoff=Backoff.fixed(0.5),"
        " max_content_length=64)"
    ) == repr(rule)
    assert rule == eval(repr(rule), names)
