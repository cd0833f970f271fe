"""The log of a call without an answer shows the headers that were sent."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import NOW, decorated, retrying

from aioretry_smithy import (
    DecoratingClient,
    RequestLog,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
)

HANGS_UP = [None]
each_chain = pytest.mark.parametrize(
    "decorators",
    [[], [retrying(0.01, max_total_attempts=1)], [DecoratingClient]],
    ids=["plain", "retrying", "decorated"],
)


def built(url, *decorators):
    """Build a session that sends the version of its program."""
    builder = SessionBuilder(url, headers={"X-Version": "1"})
    return decorated(builder, *decorators).build()


async def log_of(session, **options):
    with capture_logs() as logs, suppress(aiohttp.ClientError, TimeoutError):
        await session.get("/", **options)
    return logs[0]


def versions(log):
    """Return the versions that the logs of a call and its attempts show."""
    return [each.request_headers.get("X-Version") for each in (log, *log.children)]


@each_chain
async def test_headers_that_change_after_the_call(serve, decorators):
    """The log is that of the call: it shows nothing that came later."""
    async with built(await serve(HANGS_UP), *decorators) as session:
        with pytest.raises(aiohttp.ClientError) as caught:
            await session.get("/", headers={"X-Call": "a"})
        session.headers["X-Version"] = "2"
        session.headers["X-Later"] = "yes"
        log = RequestLog.of(caught.value)

    assert {"1"} == {*versions(log)}
    assert "X-Later" not in log.request_headers
    assert "a" == log.request_headers["X-Call"]
    assert "1" == log.to_dict()["request_headers"]["X-Version"]


@each_chain
async def test_headers_that_are_taken_away_while_the_call_is_under_way(
    serve, decorators
):
    """They were sent."""
    async with built(await serve([0.05, None]), *decorators) as session:
        with capture_logs() as logs:
            call = asyncio.ensure_future(session.get("/"))
            await asyncio.sleep(0.02)
            del session.headers["X-Version"]

            assert "1" == logs[0].request_headers["X-Version"]
            with pytest.raises(aiohttp.ClientError):
                await call

    assert {"1"} == {*versions(logs[0])}


async def test_headers_that_change_between_two_attempts(serve):
    """Each attempt shows its own, the call those of the first."""

    def upgrade(status, cause):
        session.headers["X-Version"] = "2"
        return NOW

    retries = retrying(RetryStrategy.on_status(upgrade), max_total_attempts=3)
    session = built(await serve(HANGS_UP), retries)
    async with session:
        log = await log_of(session)
        session.headers["X-Version"] = "3"

    assert ["1", "1", "2", "2"] == versions(log)
