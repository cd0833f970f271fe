"""A client of the orders API."""

import logging
from collections.abc import Iterable
from typing import Self, TypedDict

import aiohttp

from aioretry_smithy import (
    Decorator,
    LogFormatter,
    LoggingClient,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    SessionBuilder,
)

BUDGETS = RetryBudget.per_host(unserved_cost=0.1)  # shared by all clients


class Order(TypedDict):
    id: int
    item: str


class OrderNotFoundError(LookupError):
    """The API knows no such order."""


class OrdersClient:
    """Calls the orders API: ``async with OrdersClient(url) as orders: ...``."""

    def __init__(self, url: str, *, inside: Iterable[Decorator] = ()) -> None:
        self._session = SessionBuilder.standard(
            url,
            response_timeout=5.0,
            retrying=RetryConfigMapping.per_method(retries_of),
            logging=LoggingClient.new_decorator(
                logging.getLogger("orders"), formatter=LogFormatter.line()
            ),
            inside=inside,
            raise_for_status=raise_error,
        ).build()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get_order(self, number: int) -> Order:
        async with self._session.get(f"orders/{number}") as response:
            order: Order = await response.json()
        return order

    async def create_order(self, item: str, *, key: str | None = None) -> Order:
        headers = {"Idempotency-Key": key} if key else None
        body = {"item": item}
        async with self._session.post("orders", json=body, headers=headers) as response:
            order: Order = await response.json()
        return order


def retries_of(method: str) -> RetryConfig:
    if method == "GET":
        return RetryConfig.standard(attempt_timeout=2.0, limiter=BUDGETS)
    return RetryConfig.standard(
        max_total_attempts=2, attempt_timeout=4.0, limiter=BUDGETS
    )


async def raise_error(response: aiohttp.ClientResponse) -> None:
    if response.status == 404:
        raise OrderNotFoundError(response.url.path)
    response.raise_for_status()
