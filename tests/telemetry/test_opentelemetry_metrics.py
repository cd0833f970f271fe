"""Metrics of calls, against the tables of the semantic conventions."""

import aiohttp
from chains import after
from heard import Row, check, get, seconds, traced

from aioretry_smithy._telemetry.client import DURATION_BUCKETS

HTTP_CLIENT_DURATION = {
    "http.request.method": Row(str, "required"),
    "server.address": Row(str, "required"),
    "server.port": Row(int, "required"),
    "error.type": Row(str, "where it failed"),
    "http.response.status_code": Row(int, "where there is a response"),
    "network.protocol.version": Row(str, "recommended"),
}
"""https://opentelemetry.io/docs/specs/semconv/http/http-metrics/#http-client"""


async def test_duration_of_a_span_is_the_measured_one(heard):
    """Span and histogram say the same number, in the buckets of the convention."""
    await get(traced(heard, [after(0.1, 503), after(0.3, 200)]))

    metric = heard.metrics()["http.client.request.duration"]
    assert "s" == metric.unit
    measured = {
        point.attributes["http.response.status_code"]: point
        for point in metric.data.data_points
    }
    assert {
        span.attributes["http.response.status_code"]: seconds(span)
        for span in heard.attempts
    } == {status: point.sum for status, point in measured.items()}
    assert {span.context.span_id for span in heard.attempts} == {
        exemplar.span_id for point in measured.values() for exemplar in point.exemplars
    }
    for point in measured.values():
        assert DURATION_BUCKETS == point.explicit_bounds
        check(
            dict(point.attributes),
            HTTP_CLIENT_DURATION,
            failed=point.attributes["http.response.status_code"] == 503,
            answered=True,
        )


async def test_counters(heard):
    """Attempts are counted with their outcome, retries without the first attempt."""
    await get(traced(heard, [503, aiohttp.ServerDisconnectedError(), 200]))

    server = {
        "http.request.method": "GET",
        "server.address": "api.example.com",
        "server.port": 443,
    }
    kind = "aiohttp.client_exceptions.ServerDisconnectedError"
    unavailable = {**server, "http.response.status_code": 503, "error.type": "503"}
    lost = {**server, "error.type": kind}
    fine = {**server, "http.response.status_code": 200}
    attempts = heard.points("aioretry_smithy.attempts")
    assert [(unavailable, 1), (lost, 1), (fine, 1)] == attempts
    assert [(lost, 1), (fine, 1)] == heard.points("aioretry_smithy.retries")
    assert [(server, 1.0)] == heard.points("aioretry_smithy.call.duration")


async def test_exemplars_lead_to_the_span_that_was_measured(heard):
    """Counters and durations alike: of an attempt to it, of a call to that."""
    await get(traced(heard, [503, 200]))

    call = heard.call.context.span_id
    first, second = (span.context.span_id for span in heard.attempts)
    assert {
        "http.client.request.duration": [first, second],
        "aioretry_smithy.attempts": [first, second],
        "aioretry_smithy.retries": [second],
        "aioretry_smithy.call.duration": [call],
    } == {
        name: [
            exemplar.span_id
            for point in metric.data.data_points
            for exemplar in point.exemplars
        ]
        for name, metric in heard.metrics().items()
    }


async def test_duration_of_a_call_says_why_it_stopped(heard):
    """The stop reason and the error are on the metric of the call."""
    await get(traced(heard, [404]))

    ((attributes, _),) = heard.points("aioretry_smithy.call.duration")
    assert "no_retry" == attributes["aioretry_smithy.stop_reason"]
    assert "404" == attributes["error.type"]
