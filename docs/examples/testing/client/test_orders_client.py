import asyncio

import aiohttp
import pytest
from orders_client import OrderNotFoundError, OrdersClient

from aioretry_smithy import RequestLog, RetryBudget, capture_logs
from aioretry_smithy.testing import ScriptedTransport

ORDER = {"id": 7, "item": "tea"}


@pytest.fixture(autouse=True)
def _budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test pay for the failures of another."""
    budgets = RetryBudget.per_host(unserved_cost=0.1)
    monkeypatch.setattr("orders_client.BUDGETS", budgets)


def client_that_meets(*answers: object) -> OrdersClient:
    return OrdersClient("https://api.example.com", inside=[ScriptedTransport(answers)])


async def silence(*_: object) -> None:
    await asyncio.sleep(3600)


async def test_get_is_retried() -> None:
    async with client_that_meets(503, aiohttp.ServerDisconnectedError, ORDER) as orders:
        with capture_logs() as logs:
            assert await orders.get_order(7) == ORDER

    assert [attempt.response_status for attempt in logs[0].children] == [503, None, 200]


async def test_post_without_a_key_is_sent_once() -> None:
    async with client_that_meets(503) as orders:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await orders.create_order("tea")

    assert RequestLog.of(caught.value).stop_reason == "no_retry"


async def test_post_with_a_key_is_retried() -> None:
    async with client_that_meets(503, (201, ORDER)) as orders:
        assert await orders.create_order("tea", key="a1") == ORDER


async def test_missing_order_is_an_error() -> None:
    async with client_that_meets(404) as orders:
        with pytest.raises(OrderNotFoundError, match="/orders/7"):
            await orders.get_order(7)


async def test_hung_server_costs_an_attempt() -> None:
    async with client_that_meets(silence, ORDER) as orders:
        with capture_logs() as logs:
            await orders.get_order(7)

    assert logs[0].children[0].duration == 2.0  # virtual seconds


async def test_deadline_holds() -> None:
    async with client_that_meets(silence, silence, silence) as orders:
        with pytest.raises(TimeoutError) as caught:
            await orders.get_order(7)

    assert RequestLog.of(caught.value).duration == 5.0


async def test_outage_opens_the_circuit(caplog: pytest.LogCaptureFixture) -> None:
    async with client_that_meets(*[500] * 5, ORDER) as orders:
        for _ in range(3):  # three attempts, and one each when the budget is used up
            with pytest.raises(aiohttp.ClientResponseError):
                await orders.get_order(7)
        with capture_logs() as logs:
            await orders.get_order(7)  # waits for the server to be back

    assert logs[0].delay_source == "circuit_breaker"
    assert {record.name for record in caplog.records} == {"orders"}


async def test_all_clients_share_a_budget() -> None:
    async with client_that_meets(500, 500, 500) as one, client_that_meets(500) as other:
        attempts = []
        for orders in one, other:
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await orders.get_order(7)
            attempts.append(RequestLog.of(caught.value).total_attempts)

    assert attempts == [3, 1]
