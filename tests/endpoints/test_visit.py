"""What follows a request to its endpoint, and no further."""

from __future__ import annotations

import contextvars

from balanced import Fleet, group_of, state_of
from chains import after, now
from yarl import URL

from aioretry_smithy import client_decorator
from aioretry_smithy._endpoints.visit import note_hop


async def test_hop_in_a_context_that_outlives_a_request_is_none_of_it():
    """A task that began meanwhile may follow a redirect of its own."""
    contexts = []

    @client_decorator
    async def notice(delegate, ctx, request):
        contexts.append(contextvars.copy_context())
        return await delegate.execute(ctx, request)

    group = group_of("a")
    async with Fleet().session(group, notice) as client:
        async with client.get("/"):
            pass
        for host in ("a", "elsewhere"):
            contexts[0].run(note_hop, URL(f"http://{host}.example/"), contexts)

    assert 0 == state_of(group, "a").in_flight


async def test_calls_that_overlap_in_one_context_are_all_over():
    """In whatever order they are closed."""
    group = group_of("a")
    async with Fleet(a=after(3.0, 200)).session(group) as client:
        calls = [client._request("GET", "/") for _ in range(2)]
        for each in calls:
            each.send(None)
        begun = state_of(group, "a").in_flight
        for each in calls:
            each.close()
        async with client.get("/"):
            pass

    assert (2, 0) == (begun, state_of(group, "a").in_flight)
    assert 3.0 == now()
