"""A thousand calls: everybody who counts attempts has counted the same."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from aiohttp import web

pytest.importorskip("opentelemetry.sdk")
pytest.importorskip("prometheus_client")

from chains import connected, retrying
from heard import Heard
from prometheus_client import CollectorRegistry

from aioretry_smithy import Backoff, RetryStrategy, capture_logs
from aioretry_smithy.prometheus import MetricsClient

CALLS = 1000
STATUSES = (200, 200, 200, 200, 404, 429, 500, 503)


async def test_attempts_are_counted_alike(serving):
    """The server, spans, both kinds of metrics and the logs agree on every status."""
    chance = random.Random(6)
    seen: Counter[int] = Counter()
    parents: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        status = chance.choice(STATUSES)
        seen[status] += 1
        parents.append(request.headers["traceparent"].split("-")[2])
        return web.Response(status=status)

    server = await serving(answer)
    heard = Heard()
    tracing = heard.decorator()
    registry = CollectorRegistry()
    metrics = MetricsClient.new_decorator(registry)
    gate = asyncio.Semaphore(50)

    async def call(number: int) -> None:
        async with gate, session.get(f"/{number}"):
            pass

    with capture_logs() as logs:
        async with connected(
            server.make_url("/"),
            tracing,
            metrics,
            retrying(
                RetryStrategy.failsafe(Backoff.without_delay()), max_total_attempts=4
            ),
            metrics,
            tracing,
        ) as session:
            await asyncio.gather(*map(call, range(CALLS)))

    total = sum(seen.values())
    assert CALLS < total
    assert total == sum(log.total_attempts for log in logs)
    assert total == len(heard.attempts)
    assert {*parents} == {f"{span.context.span_id:016x}" for span in heard.attempts}
    assert total == heard.total("aioretry_smithy.attempts")
    assert total - CALLS == heard.total("aioretry_smithy.retries")
    assert CALLS == len(heard.spans()) - total
    by_status = Counter(
        {
            attributes["http.response.status_code"]: value
            for attributes, value in heard.points("aioretry_smithy.attempts")
        }
    )
    assert seen == by_status
    durations = heard.metrics()["http.client.request.duration"].data.data_points
    assert total == sum(point.count for point in durations)
    calls = heard.metrics()["aioretry_smithy.call.duration"].data.data_points
    assert CALLS == sum(point.count for point in calls)
    scraped: Counter[str] = Counter()
    for metric in registry.collect():
        for sample in metric.samples:
            scraped[sample.name] += int(sample.value)
    assert total == scraped["aioretry_smithy_attempts_total"]
    assert total - CALLS == scraped["aioretry_smithy_retries_total"]
    assert CALLS == scraped["aioretry_smithy_call_duration_seconds_count"]
