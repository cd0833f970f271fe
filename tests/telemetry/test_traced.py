"""The span of an attempt, and that of a body that failed."""

from __future__ import annotations

import pytest

from aioretry_smithy import RequestLog, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

pytest.importorskip("opentelemetry")

from opentelemetry.context import Context

from aioretry_smithy._telemetry.traced import trace_body


class BrokenTracer:
    def start_span(self, *arguments, **options):
        raise RuntimeError("no spans today")


async def test_tracer_that_fails_is_reported(caplog):
    """It breaks neither the call nor what else waits for the end of the body."""
    builder = SessionBuilder().decorator(ScriptedTransport([TimeoutError()]))
    async with builder.build() as session:
        with pytest.raises(TimeoutError) as caught:
            await session.get("http://example.com/")

    log = RequestLog.of(caught.value)
    trace_body(BrokenTracer(), Context(), log)
    log._call.wake()

    assert ["RuntimeError"] == [
        record.exc_info[0].__name__ for record in caplog.records
    ]
