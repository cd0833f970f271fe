"""Samplers: functions and objects that pick the calls that are logged."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from chains import session

from aioretry_smithy import LoggingClient, RequestLog

ERROR = logging.ERROR


class PerSecond:
    """Samples so many calls a second, as a rate-limiting sampler does."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.second = -1
        self.left = most

    def is_sampled(self, log: RequestLog) -> bool:
        second = int(asyncio.get_running_loop().time())
        if second != self.second:
            self.second, self.left = second, self.most
        self.left -= 1
        return self.left >= 0


@pytest.fixture
def logged(logger):
    """The status of each response that was logged."""
    statuses: list[int | None] = []

    class Keeping(logging.Handler):
        def emit(self, record: Any) -> None:
            if record.getMessage().startswith("Response"):
                statuses.append(record.request_log.response_status)

    logger.addHandler(Keeping())
    return statuses


async def make_calls(answers: list[Any], pause: float = 0.0, **settings: Any) -> None:
    """Make a call for each answer, with a *pause* after each."""
    async with session(answers, LoggingClient.new_decorator(**settings)) as client:
        for _ in answers:
            async with client.get("http://example.com/orders"):
                await asyncio.sleep(pause)


async def test_function_picks_calls_by_their_logs(logger, logged):
    """It is asked about the outcomes of its setting only."""
    asked = []

    def is_sampled(log: RequestLog) -> bool:
        asked.append(log.response_status)
        return log.response_status == 503

    await make_calls([200, 404, 503], logger=logger, failure_sampling_rate=is_sampled)

    assert [404, 503] == asked
    assert [200, 503] == logged


@pytest.mark.parametrize("name", ["success_sampling_rate", "failure_sampling_rate"])
async def test_object_with_a_method_picks_calls(logger, logged, name):
    """One that limits the rate lets so many through each second."""
    status = 200 if name.startswith("success") else 503
    settings = {name: PerSecond(2)}
    await make_calls([status] * 8, 0.25, logger=logger, **settings)

    assert [status] * 4 == logged


async def test_sampler_is_asked_once_for_both_lines(logger):
    """And not at all where both levels are off."""
    asked = []

    def is_sampled(log: RequestLog) -> bool:
        asked.append(log.response_status)
        return True

    settings = {"logger": logger, "success_sampling_rate": is_sampled}
    await make_calls([200], **settings)
    logger.setLevel(ERROR)
    await make_calls([200], **settings)

    assert [200] == asked


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (
            lambda log: 1,
            "failure_sampling_rate(): 1 (expected: True or False)",
        ),
        (
            lambda log: None,
            "failure_sampling_rate(): None (expected: True or False)",
        ),
        (lambda log: 1 / 0, "division by zero"),
    ],
)
async def test_error_in_a_sampler_is_reported_once(
    logger, logged, caplog, sampler, message
):
    """The calls go on, and what it was asked about is not logged."""
    await make_calls([503, 503, 200], logger=logger, failure_sampling_rate=sampler)

    assert [200] == logged
    (report,) = (record for record in caplog.records if record.name != logger.name)
    assert ("aioretry_smithy", ERROR) == (report.name, report.levelno)
    assert message == str(report.exc_info[1])
