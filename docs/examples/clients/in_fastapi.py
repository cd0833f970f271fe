import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeAlias

import aiohttp
from fastapi import Depends, FastAPI, HTTPException, Request

from aioretry_smithy import FailFastError, SessionBuilder


def new_app(orders_url: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        builder = SessionBuilder.standard(
            orders_url, response_timeout=2.0, attempt_timeout=1.0
        )
        async with builder.build() as session:  # one, for the life of the service
            yield {"orders": session}

    app = FastAPI(lifespan=lifespan)
    app.get("/orders/{number}")(show_order)
    return app


async def orders_of(request: Request) -> aiohttp.ClientSession:
    session: aiohttp.ClientSession = request.state.orders
    return session


Orders: TypeAlias = Annotated[aiohttp.ClientSession, Depends(orders_of)]


async def show_order(number: int, orders: Orders) -> Any:
    try:
        async with orders.get(f"/orders/{number}", raise_for_status=True) as response:
            return await response.json()
    except FailFastError as error:  # the circuit is open: nothing was sent
        seconds = math.ceil(error.retry_in or 1)
        raise HTTPException(503, headers={"Retry-After": str(seconds)}) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise HTTPException(502) from error
