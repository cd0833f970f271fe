"""Decorators that send a request twice in one attempt, and give one answer up."""

from __future__ import annotations

import asyncio

from aioretry_smithy import client_decorator


@client_decorator
async def first_of_two(delegate, ctx, request):
    """Ask twice at once, and give up the slower one."""
    tasks = [asyncio.create_task(delegate.execute(ctx, request)) for _ in "ab"]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    quicker = next(each for each in tasks if each in done)
    tasks.remove(quicker)
    if not tasks[0].cancel():
        (await tasks[0]).close()
    await asyncio.wait(tasks)
    return quicker.result()


@client_decorator
async def first_answer(delegate, ctx, request):
    """Ask twice, one after the other, and take the first answer."""
    response = await delegate.execute(ctx, request)
    (await delegate.execute(ctx, request)).close()
    return response


@client_decorator
async def last_answer(delegate, ctx, request):
    """Ask twice, and hold the first answer until there is the second."""
    response = await delegate.execute(ctx, request)
    try:
        return await delegate.execute(ctx, request)
    finally:
        response.close()
