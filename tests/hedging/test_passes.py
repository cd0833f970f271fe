"""A decorator around the hedging client that passes it twice in one attempt."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from chains import after, retrying
from races import hedging, race, sent

from aioretry_smithy import RefreshingClient, client_decorator


@client_decorator
async def impatient(delegate, ctx, request):
    """Give up the first pass after a second, and ask once more."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            return await delegate.execute(ctx, request)
    return await delegate.execute(ctx, request)


def of_two(number):
    """Make a decorator that asks twice, one after the other, and takes one answer."""

    @client_decorator
    async def asking(delegate, ctx, request):
        answers = [await delegate.execute(ctx, request) for _ in range(2)]
        answers.pop(1 - number).close()
        return answers.pop()

    return asking


def racing(seen):
    """Make a decorator that asks twice at once, and takes the first answer."""

    @client_decorator
    async def first_of_two(delegate, ctx, request):
        tasks = [asyncio.create_task(delegate.execute(ctx, request)) for _ in "ab"]
        done, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in rest:
            each.cancel()
        await asyncio.wait(rest)
        seen.append(ctx.log.response_status)
        return done.pop().result()

    return first_of_two


async def test_a_second_pass_is_judged_by_its_own_answer():
    """Not by the first one, which was given up: a 503 is retried."""
    answers = [after(9.0, 200), after(0.5, 503), 502, 201]
    status, ended, log = await race(answers, hedging(5.0), impatient, retrying(0.25))

    assert (201, 1.75) == (status, ended)
    cancelled = asyncio.CancelledError
    requests = [(0, cancelled, 1.0), (1.0, 503, 0.5), (1.5, 502, 0), (1.75, 201, 0)]
    assert requests == sent(log)
    # After the request of its attempt that was sent first.
    assert [None, None, 0.25, None] == [each.delay for each in log.children]


async def test_each_pass_has_losers_of_its_own():
    """A request that won one is not superseded in the other."""
    answers = [after(9.0, 200), 201, after(9.0, 202), after(0.25, 203)]
    status, ended, log = await race(answers, hedging(0.5), of_two(1), retrying(0.25))

    assert (203, 1.25) == (status, ended)
    assert [(0, None, 0.5), (0.5, 201, 0), (0.5, None, 0.75), (1.0, 203, 0.25)] == sent(
        log
    )
    assert [False, True, False, True] == [each.is_hedge for each in log.children]
    assert (203, 4) == (log.response_status, log.total_attempts)


async def test_the_answer_that_is_taken_counts():
    """Also where another pass has ended after it."""
    answers = [after(0.25, 201), after(0.25, 202)]
    status, ended, log = await race(answers, hedging(0.5), of_two(0), retrying(0.25))

    assert (201, 0.5) == (status, ended)
    assert (201, 2) == (log.response_status, log.total_attempts)
    assert [(0, 201, 0.25), (0.25, 202, 0.25)] == sent(log)


async def test_a_bad_answer_that_is_taken_is_retried():
    """Though the pass after it brought a good one."""
    answers = [500, 503, 202, 201, 203]
    status, _, log = await race(answers, hedging(0.5), of_two(0), retrying(0.25))

    assert (201, 5) == (status, log.total_attempts)
    assert [500, 503, 202, 201, 203] == [each.response_status for each in log.children]


async def test_the_quicker_of_two_passes_counts():
    """Giving up the other one changes nothing of its log."""
    seen = []
    answers = [after(9.0, 200), after(0.25, 201)]
    status, ended, log = await race(answers, hedging(5.0), racing(seen), retrying(0.25))

    assert (201, 0.25) == (status, ended)
    cancelled = asyncio.CancelledError
    assert [(0, cancelled, 0.25), (0, 201, 0.25)] == sent(log)
    assert [201] == seen
    assert (201, None) == (log.response_status, log.response_cause)


async def test_a_refreshed_request_is_no_hedge():
    """Though the one that was refused before it was one."""

    async def fetch():
        return "a token"

    refreshing = RefreshingClient.new_decorator(fetch, hosts=["http://localhost"])
    answers = [after(9.0, 200), 401, after(0.75, 201), 202]
    chain = hedging(0.5), refreshing, retrying(0.25)
    status, ended, log = await race(answers, *chain)

    assert (202, 1.0) == (status, ended)
    assert [False, True, False, True] == [each.is_hedge for each in log.children]
    assert [True, False, True, False] == [each.superseded for each in log.children]
