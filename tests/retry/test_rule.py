"""Rules of retries: what they answer, and what stands behind them in a chain."""

import asyncio
import warnings

import aiohttp
import pytest
from chains import URL, response_of
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


class OwnError(Exception):
    pass


def is_local(request):
    return request.url.host == "localhost"


def is_remote(request):
    return not is_local(request)


def has_hint(ctx):
    return ctx.log.response_headers.get("X-Retry") == "please"


async def test_default_backoff_is_the_default_one():
    """The same object in every rule."""
    rule = RetryRule(status_classes=[5])

    assert Backoff.of_default() is rule.backoff
    assert Backoff.of_default() is await ask(rule, status=503)
    assert RetryRule.no_retry().backoff is None


def test_backoff_must_be_one():
    """A number of seconds is a frequent slip; a rule that forbids waits for nothing."""
    with pytest.raises(ValueError) as for_rule:
        RetryRule(statuses=[503], backoff=0.5)
    with pytest.raises(ValueError) as for_no_retry:
        RetryRule.no_retry(backoff=BACKOFF)

    expected = "a Backoff, or None"
    assert f"backoff: 0.5 (expected: {expected})" == str(for_rule.value)
    expected = "none where retries are forbidden"
    assert f"backoff: {BACKOFF!r} (expected: {expected})" == str(for_no_retry.value)


def test_rules_that_forbid_are_others():
    """The same conditions with the opposite answer."""
    assert RetryRule(statuses=[503]) != RetryRule.no_retry(statuses=[503])
    assert RetryRule.no_retry(statuses=[503]) == RetryRule.no_retry(statuses={503})


async def test_the_exception_in_a_group_of_one_is_matched():
    """A task group around a single task hides nothing from a rule."""
    rule = RetryRule(exceptions=[OwnError, RuntimeError], backoff=BACKOFF)
    groups = RetryRule(exceptions=ExceptionGroup, backoff=BACKOFF)
    own, bug, several = (
        ExceptionGroup("tasks", causes)
        for causes in ([OwnError()], [RuntimeError()], [OwnError(), OwnError()])
    )

    assert BACKOFF is await ask(rule, cause=own)
    assert BACKOFF is await ask(rule, cause=bug)
    assert None is await ask(rule, cause=several)
    assert BACKOFF is await ask(groups, cause=own)


class Inside(RetryStrategyWithContent):
    def should_retry(self, ctx, cause, content):
        return BACKOFF if content == b"busy" else None


BEHIND = [RetryRule(statuses=[503]), RetryStrategy.failsafe(), Inside()]


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("before", [None, RetryRule(statuses=[429]), Inside()])
def test_strategy_behind_a_catch_all_is_warned_about(before, behind):
    """It is told where the chain is made, with the names of both."""
    catch_all = RetryRule.no_retry()
    front = catch_all if before is None else before | catch_all
    with pytest.warns(RuntimeWarning) as caught:
        chain = front | behind

    (warning,) = caught
    assert __file__ == warning.filename
    assert (
        f"{behind!r} is never reached: RetryRule.no_retry() in front of it"
        " always decides" == str(warning.message)
    )
    assert repr(behind) in repr(chain)


def test_each_chain_is_warned_about_its_own_part():
    """A chain is not warned about the inner chain, which was warned before."""
    with pytest.warns(RuntimeWarning):
        inner = RetryRule.no_retry() | RetryStrategy.failsafe()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RetryRule(statuses=[429]) | inner

    with pytest.warns(
        RuntimeWarning, match="on_unprocessed.* is never reached"
    ) as caught:
        inner | RetryStrategy.on_unprocessed()
    assert 1 == len(caught)


@pytest.mark.parametrize(
    "rule",
    [
        RetryRule.no_retry(methods=["POST"]),
        RetryRule.no_retry(request_filter=is_remote),
        RetryRule.no_retry(statuses=[501]),
        RetryRule.no_retry(exceptions=OwnError),
        RetryRule.no_retry(on_response=has_hint),
        RetryRule(status_classes=[1, 2, 3, 4, 5]),
    ],
)
def test_rules_that_leave_something_are_not_warned_about(rule):
    """The strategy behind them has its share."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert rule | RetryStrategy.failsafe() != rule


def test_nothing_behind_a_catch_all_is_not_warned_about():
    """A strategy that never retries changes nothing there."""
    catch_all = RetryRule.no_retry()

    assert catch_all is catch_all | RetryStrategy.never()
    assert catch_all is RetryStrategy.never() | catch_all


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


async def test_answer_that_would_have_to_be_awaited_is_refused():
    """A coroutine would count as true, whatever comes of it."""
    rule = RetryRuleWithContent(on_content=lambda content: asyncio.sleep(0.0, content))

    with pytest.raises(ValueError, match=r"on_content: .*without awaiting it"):
        await ask(rule, content=b"busy")
