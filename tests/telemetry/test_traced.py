"""The span of an attempt, and that of a body that failed."""

import pytest
from calls import begin, end

pytest.importorskip("opentelemetry")

from opentelemetry.context import Context

from aioretry_smithy._telemetry.spans import trace_body


class BrokenTracer:
    def start_span(self, *arguments, **options):
        raise RuntimeError("no spans today")


async def test_tracer_that_fails_is_reported(caplog):
    """It breaks neither the call nor what else waits for the end of the body."""
    ctx = begin()
    trace_body(BrokenTracer(), Context(), ctx.call, ctx.record)
    end(ctx, TimeoutError())

    assert ["RuntimeError"] == [
        record.exc_info[0].__name__ for record in caplog.records
    ]
