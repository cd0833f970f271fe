"""Metrics of the waits for connections."""

from calls import connecting
from chains import retrying, session
from prometheus_client import generate_latest

from aioretry_smithy.prometheus import MetricsClient, MetricsRpcClient

NAME = "connection_wait_seconds"


async def measure(registry, answers, *decorators):
    async with session(answers, *decorators) as client:
        await client.get("http://example.com/")


async def test_each_attempt_is_measured_by_part(registry, values):
    """What did not happen is not observed."""
    metrics = MetricsClient.new_decorator(registry)
    waits = connecting({"queued": 0.5, "dns": 0.25}, {"queued": 0.25, "reused": True})
    await measure(registry, [503, 200], waits, metrics, retrying(), metrics)

    host = "example.com:80"
    assert {(host, "queued"): 2, (host, "dns"): 1} == values(f"{NAME}_count")
    assert {(host, "queued"): 0.75, (host, "dns"): 0.25} == values(f"{NAME}_sum")


async def test_call_without_retries_is_its_attempt(registry, values):
    """One client is enough then."""
    metrics = MetricsClient.new_decorator(registry)
    await measure(registry, [200], connecting({"connect": 0.25}), metrics)

    assert {("example.com:80", "connect"): 1} == values(f"{NAME}_count")


async def test_series_is_there_without_timings(registry, values):
    """A dashboard may ask for it; nothing was observed."""
    metrics = MetricsClient.new_decorator(registry)
    await measure(registry, [200], connecting(None), metrics)

    assert {} == values(f"{NAME}_count")
    assert f"# TYPE aioretry_smithy_{NAME} histogram" in f"{generate_latest(registry)}"


async def test_functions_have_no_connections(registry):
    """Those of their requests count where these are measured."""
    MetricsRpcClient.new_decorator(registry)

    assert "connection" not in f"{generate_latest(registry)}"
