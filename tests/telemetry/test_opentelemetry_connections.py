"""Spans and metrics of the waits for connections."""

from calls import connecting
from chains import retrying, session

NAME = "aioretry_smithy.connection.wait_time"
CONNECTION = "aioretry_smithy.connection."


def connection_of(span):
    """Return the attributes of a span about its connection."""
    return {
        name.removeprefix(CONNECTION): value
        for name, value in span.attributes.items()
        if name.startswith(CONNECTION)
    }


async def test_each_attempt_is_measured_by_part(heard):
    """What did not happen is neither in a span nor in the metric."""
    tracing = heard.decorator()
    waits = connecting({"queued": 0.5, "dns": 0.25}, {"reused": True})
    async with session([503, 200], waits, tracing, retrying(), tracing) as client:
        await client.get("http://example.com/")

    first, second = heard.attempts
    assert {"queued": 0.5, "dns": 0.25, "reused": False} == connection_of(first)
    assert {"reused": True} == connection_of(second)
    assert {} == connection_of(heard.call)
    server = {"server.address": "example.com", "server.port": 80}
    assert [
        ({**server, f"{CONNECTION}part": "queued"}, 0.5),
        ({**server, f"{CONNECTION}part": "dns"}, 0.25),
    ] == heard.points(NAME)
    assert "s" == heard.metrics()[NAME].unit


async def test_nothing_is_told_without_timings(heard):
    """The instrument is there, and has no points."""
    async with session([200], connecting(None), heard.decorator()) as client:
        await client.get("http://example.com/")

    assert {} == connection_of(heard.attempts[0])
    assert [] == heard.points(NAME)
