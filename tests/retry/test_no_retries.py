"""An environment variable switches retries and hedges off, and every log says so."""

import json
import logging

import aiohttp
import pytest
from balanced import Fleet, at, call, group_of, out
from chains import (
    NOW,
    SAFELY,
    URL,
    Always,
    after,
    log_of,
    now,
    refused,
    response_of,
    retrying,
    retrying_session,
    session,
    silence,
    status_and_log,
)
from functions import lookups
from limiters import Recording
from token_strategies import adaptive, standard

from aioretry_smithy import (
    AttemptTimeoutError,
    HedgingClient,
    HedgingDelay,
    LogFormatter,
    LoggingClient,
    RequestLog,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryingRpcClient,
    RetryListener,
    RetryRule,
    RetryRuleWithContent,
    capture_logs,
    decorate,
    request_options,
    rpc,
    undecorate,
    unwrap,
)
from aioretry_smithy._log.saved_log import SavedLog
from aioretry_smithy.smithy import sdk_headers
from aioretry_smithy.testing import ScriptedTransport

VARIABLE = "AIORETRY_SMITHY_NO_RETRIES"
WORDS = "retries are off (AIORETRY_SMITHY_NO_RETRIES)"
THREE = RetryConfig(SAFELY, 3)


@pytest.fixture(autouse=True)
def _untold(monkeypatch):
    """Let each test be a process of its own, which was not warned yet."""
    monkeypatch.setattr("aioretry_smithy._retry.config._unlogged", ["warning"])
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def off(monkeypatch):
    """Retries are off."""
    monkeypatch.setenv(VARIABLE, "1")


async def outcome(client):
    """Make a call; return its attempts and why there was no other one."""
    log = await log_of(client)
    return log.total_attempts, log.stop_reason


# When


@pytest.mark.parametrize(
    ("value", "attempts"),
    [("", 3), ("0", 3), ("1", 1), ("true", 1), ("no", 1), ("00", 1), (" ", 1)],
)
async def test_empty_and_0_are_unset_and_all_else_means_off(
    value, attempts, monkeypatch
):
    """Whoever writes "no" wants no retries, too."""
    monkeypatch.setenv(VARIABLE, value)

    assert (attempts, "max_total_attempts") == await outcome(
        session([503] * 3, retrying(THREE))
    )


@pytest.mark.parametrize("most", [1, 2])
async def test_a_limit_that_is_low_already_is_one_then(most, off):
    """A single retry is switched off as many are."""
    chain = session([503] * 2, retrying(RetryConfig(SAFELY, most)))

    assert (1, "max_total_attempts") == await outcome(chain)


async def test_it_is_read_when_a_session_is_built(monkeypatch):
    """Not when the decorator is made, and not in a call."""
    decorator = retrying(THREE)
    before = session([503] * 9, decorator)
    monkeypatch.setenv(VARIABLE, "1")
    later = session([503] * 9, decorator)
    on = await outcome(before)
    monkeypatch.delenv(VARIABLE)

    assert (3, 1) == (on[0], (await outcome(later))[0])


async def test_it_is_read_when_a_session_is_decorated(monkeypatch):
    """And again, when it is decorated anew."""
    attempts = []
    async with aiohttp.ClientSession() as client:
        for value in "10":
            monkeypatch.setenv(VARIABLE, value)
            decorate(client, ScriptedTransport([503] * 9), retrying(THREE))
            async with client.get(URL) as response:
                attempts.append(RequestLog.of(response).total_attempts)
            undecorate(client)

    assert [1, 3] == attempts


async def test_it_is_read_when_a_function_is_decorated(monkeypatch):
    """Not when ``rpc()`` is called with its settings."""
    rule = RetryRule(exceptions=[LookupError], backoff=NOW)
    decorator = rpc(RetryingRpcClient.new_decorator(rule, 3))
    monkeypatch.setenv(VARIABLE, "1")
    once = decorator(lookups(*[LookupError()] * 9))
    monkeypatch.delenv(VARIABLE)
    often = decorator(lookups(*[LookupError()] * 9))
    with capture_logs() as logs:
        for function in (once, often):
            with pytest.raises(LookupError):
                await function()

    assert [1, 3] == [log.total_attempts for log in logs]
    assert [True, False] == [log.no_retries for log in logs]
    assert WORDS in logs[0].render()


async def test_it_stays_when_the_session_changes(off):
    """Its defaults are copied anew when its headers change."""
    async with session([503] * 9, retrying(THREE)) as client:
        client.headers["X-New"] = "1"
        async with client.get(URL) as response:
            log = RequestLog.of(response)

    assert (1, True) == (log.total_attempts, log.no_retries)
    assert "1" == log.request_headers["X-New"]


# Whatever the settings


@pytest.mark.parametrize(
    "settings",
    [
        THREE,
        RetryConfig(Always(), 10, buffer_response=True),
        RetryConfigMapping.per_host(lambda host: THREE),
        RetryConfig(standard()),
        RetryConfig(adaptive()),
        RetryConfig(
            RetryRuleWithContent(on_content=lambda content: True, backoff=NOW), 3
        ),
    ],
    ids=["config", "buffered", "mapping", "smithy", "adaptive", "content"],
)
async def test_one_attempt_whatever_the_settings(settings, off):
    """Of the client, of a block, and of a later swap."""
    own = session([503] * 9, retrying(settings))
    with (
        request_options(retry=settings)
        if isinstance(settings, RetryConfig)
        else request_options()
    ):
        of_block = await outcome(session([503] * 9, retrying(THREE)))
    swapped = session([503] * 9, retrying(THREE))
    found = unwrap(swapped, RetryingClient)
    assert found is not None
    found.config = settings

    assert [(1, "max_total_attempts")] * 3 == [
        await outcome(own),
        of_block,
        await outcome(swapped),
    ]
    assert 0.0 == now()


async def test_settings_of_one_attempt_are_used_as_they_are(off):
    """They are not made anew for each call."""
    client = session([503], retrying(RetryConfig.no_retry()))

    assert (1, "no_retry") == await outcome(client)


async def test_next_endpoint_is_no_exception(off):
    """Though nothing was sent to the first one."""
    fleet = Fleet(a=refused())
    async with fleet.session(group_of("ab"), retrying(SAFELY)) as client:
        raised, log = await call(client)

    assert ("a", "max_total_attempts") == (fleet.text, log.stop_reason)
    assert isinstance(raised, aiohttp.ClientConnectorError)


async def test_trial_of_an_endpoint_is_not_cut(off, monkeypatch):
    """No other attempt follows it: the caller gets his answer."""
    monkeypatch.setattr("aioretry_smithy._endpoints.ejection.chance", lambda: 0.0)
    fleet, group = Fleet(a=[refused(), after(10.0, 200)]), group_of("ab")
    async with fleet.session(group, retrying(SAFELY)) as client:
        await call(client)
        await at(5.0)
        status, log = await call(client)

    assert (200, {"a": "trial_failed"}, 1) == (status, out(group), log.total_attempts)


async def test_limiter_is_told_and_not_asked(off):
    """As after the last of several attempts; listeners hear of no retry."""

    class Deaf(RetryListener):
        def on_retry(self, ctx, cause, delay):
            raise AssertionError

    limiter = Recording()
    client = retrying_session([503] * 3, limiter=limiter, listeners=[Deaf()])
    await status_and_log(client)

    assert ["failure 1 NoneType"] == limiter.heard


async def test_server_is_told_of_one_attempt(off):
    """By the headers of the AWS SDKs."""
    sent = []
    for strategy in (SAFELY, standard()):
        transport = ScriptedTransport([503])
        await status_and_log(session(transport, sdk_headers, retrying(strategy)))
        sent.append(transport.requests[0].headers["amz-sdk-request"])

    assert ["attempt=1; max=1"] * 2 == [each.rpartition("; ttl")[0] for each in sent]


# What stays


async def test_timeout_of_an_attempt_stays(off):
    """A server that never answers must not hang a suite."""
    client = session([silence], retrying(SAFELY, attempt_timeout=2.0))
    with pytest.raises(AttemptTimeoutError, match="attempt 1 had 2.000 s"):
        await response_of(client)

    assert 2.0 == now()


async def test_strategy_is_asked_and_its_word_counts(off):
    """An error inside a 200 is no success: another attempt was wanted."""
    rule = RetryRuleWithContent(on_content=lambda content: content == b"busy")
    status, log = await status_and_log(retrying_session([(200, b"busy")], rule))

    assert (200, False) == (status, log.is_success)
    assert "max_total_attempts" == log.stop_reason


# Hedges


LATE = [after(1.0, 200), after(1.0, 201)]


@pytest.mark.parametrize("outside", [(), (retrying(SAFELY),)], ids=["alone", "retried"])
async def test_nothing_is_hedged(outside, off):
    """Around a hedging client with and without retries."""
    hedging = HedgingClient.new_decorator(0.25)
    client = session(LATE, hedging, *outside)
    status, log = await status_and_log(client)

    assert (200, 1, 1.0) == (status, log.total_attempts, log.duration)


async def test_block_of_one_attempt_stops_hedges_too():
    """Of all sessions in it, those without a retrying client too; and of no other."""
    hedging = HedgingClient.new_decorator(0.25)
    requests = []
    for config in (RetryConfig.no_retry(), RetryConfig(SAFELY, 2), None):
        with request_options(retry=config):
            log = await log_of(session(LATE, hedging))
        requests.append(log.total_attempts)

    assert [1, 2, 2] == requests


async def test_settings_of_the_client_do_not_stop_hedges():
    """A chain may hedge and not retry."""
    hedging = HedgingClient.new_decorator(0.25)
    client = session(LATE, hedging, retrying(RetryConfig.no_retry()))

    assert 2 == (await log_of(client)).total_attempts


async def test_answers_in_such_a_block_count_for_the_delay():
    """The percentile goes on learning."""
    delay = HedgingDelay.percentile(0.5, minimum_samples=2)
    hedging = HedgingClient.new_decorator(delay)
    async with session([after(0.5, 200)] * 4, hedging) as client:
        with request_options(retry=RetryConfig.no_retry()):
            for _ in range(4):
                await client.get(URL)
        found = unwrap(client, HedgingClient)

    assert found is not None
    assert {"localhost:80": pytest.approx(0.5, rel=0.05)} == found.delays


# What says so


async def test_one_warning_a_process(off, caplog):
    """By the logger: a suite may turn warnings of Python's into errors."""
    for _ in range(3):
        await session([]).close()
        rpc()(lookups())

    assert [("aioretry_smithy", logging.WARNING, "warning")] == caplog.record_tuples


async def test_no_warning_where_it_is_not_set(caplog):
    """Nor a word in the log."""
    _, log = await status_and_log(session([503] * 3, retrying(THREE)))

    assert [] == caplog.records
    assert "no_retries" not in log.to_dict()
    assert "retries are off" not in log.render()
    assert not log.no_retries


@pytest.mark.parametrize("answer", [200, 503])
async def test_tree_and_values_of_a_call_say_so(answer, off):
    """Also of one that succeeded; its attempts do not repeat it."""
    client = session([answer], retrying(THREE))
    _, log = await status_and_log(client)
    values = log.to_dict()

    assert log.render().splitlines()[0].endswith(f", {WORDS}")
    assert 1 == log.render().count(WORDS)
    assert (True, False) == (
        values["no_retries"],
        "no_retries" in values["children"][0],
    )
    assert SavedLog(values).render() == log.render()


async def test_chain_without_retries_says_so_too(off):
    """Nobody need know what the chain has to understand it."""
    _, log = await status_and_log(session([503]))

    assert f"503 Service Unavailable  in 0.000 s, {WORDS}" in log.render()
    assert log.to_dict()["no_retries"]


FORMATTERS = {
    "text": LogFormatter.text(),
    "json": LogFormatter.json(),
    "nested": LogFormatter.json(nested=True, omit_empty=True),
    "tree": LogFormatter.tree(),
}


@pytest.mark.parametrize("formatter", FORMATTERS.values(), ids=FORMATTERS)
async def test_lines_say_so(formatter, off, caplog):
    """Once for each call."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    logs = LoggingClient.new_decorator(formatter=formatter)
    await status_and_log(session([503], retrying(THREE), logs))

    line = caplog.messages[-1]
    if "JSON" in repr(formatter).upper():
        assert json.loads(line)["no_retries"] is True
        assert 1 == line.count("no_retries")
    else:
        assert 1 == line.count(WORDS)
