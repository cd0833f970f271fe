from collections.abc import Iterator
from unittest.mock import AsyncMock, patch

import pytest
from orders import count_orders, with_our_chain

from aioretry_smithy import (
    RequestLog,
    RetryConfig,
    RetryingClient,
    SessionBuilder,
    capture_logs,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport


@pytest.fixture
def logs() -> Iterator[list[RequestLog]]:
    with capture_logs() as logs:  # a plain fixture does
        yield logs


def new_builder() -> SessionBuilder:
    transport = ScriptedTransport([409, 409, [1, 2]])
    builder = SessionBuilder("https://api.example.com").decorator(transport)
    return with_our_chain(builder)


async def test_attempts_and_waits(logs: list[RequestLog]) -> None:
    async with new_builder().build() as session:
        assert await count_orders(session) == 2

    assert logs[0].total_attempts == 3
    assert [attempt.delay for attempt in logs[0].children] == [1.0, 2.0, None]


async def test_sleep_is_replaced() -> None:
    async with new_builder().build() as session:
        with patch("asyncio.sleep", AsyncMock()) as sleep:
            assert await count_orders(session) == 2

    assert [call.args[0] for call in sleep.await_args_list] == [1.0, 2.0]


async def test_settings_of_a_session() -> None:
    async with new_builder().build() as session:
        retrying = unwrap(session, RetryingClient)
        assert retrying is not None
        assert isinstance(retrying.config, RetryConfig)
        assert retrying.config.attempt_timeout == 5.0
        retrying.config = RetryConfig.no_retry()  # from the next call on
        with pytest.raises(Exception, match="409"):
            await count_orders(session)
