import asyncio

import aiohttp


async def retry(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    for delay in (0.2, 0.4):
        response = await handler(request)
        if response.status < 500:
            return response
        await asyncio.sleep(delay)
    return await handler(request)


async def sign(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    request.headers["Authorization"] = "Bearer token"
    return await handler(request)


def new_session(base_url: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(base_url, middlewares=[retry, sign])
