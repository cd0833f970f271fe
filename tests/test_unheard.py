"""A call that nobody listens to pays for nobody."""

import sys
from pathlib import Path

import pytest

import aioretry_smithy
from aioretry_smithy import Backoff, LoggingClient, RetryStrategy, SessionBuilder
from aioretry_smithy.testing import ScriptedTransport

ROOT = Path(aioretry_smithy.__file__).parent

FOR_LISTENERS = (
    "_log/error_text",
    "_log/rich_tree",
    "_log/timeline",
    "_log/tree",
    "_logging/formatter",
    "_logging/previews",
    "_text/mask",
    "_text/reprs",
    "_limits/stor",
    "_telemetry",
    "limits",
    "opentelemetry",
    "prometheus",
    "redis",
)
"""Modules that make things on request, by the beginnings of their names."""


def logging_that_is_off():
    return LoggingClient.new_decorator(
        request_log_level=1,
        successful_response_log_level=1,
        failure_response_log_level=1,
    )


async def modules_of_a_call(builder):
    """Return the modules of the package whose functions a call runs."""
    seen = set()

    def note(frame, event, argument):
        seen.add(frame.f_code.co_filename)

    async with builder.build() as session:
        sys.setprofile(note)
        try:
            response = await session.get("http://example.com/?token=S3CR3T")
            await response.read()
        finally:
            sys.setprofile(None)
    paths = (Path(name) for name in seen)
    return {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for path in paths
        if path.is_relative_to(ROOT)
    }


@pytest.mark.parametrize("answers", [[200], [503, 200]], ids=["success", "retry"])
@pytest.mark.parametrize(
    "logging", [None, logging_that_is_off()], ids=["no logging", "logging off"]
)
async def test_call_that_nobody_listens_to_makes_nothing_for_listeners(
    answers, logging
):
    """No text, no mask, no measurement, for a success as for a retried call."""
    builder = SessionBuilder.standard(
        strategy=RetryStrategy.failsafe(Backoff.without_delay()),
        logging=logging,
        inside=[ScriptedTransport(answers)],
    )
    modules = await modules_of_a_call(builder)
    made = {name for name in modules if name.startswith(FOR_LISTENERS)}

    assert {"_session/install", "_retry/retries", "_breaker/client"} <= modules
    assert set() == made


def test_what_is_made_for_listeners_is_there():
    """A module that got another name would go unnoticed above."""
    modules = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")]
    missing = [
        name
        for name in FOR_LISTENERS
        if not any(module.startswith(name) for module in modules)
    ]

    assert [] == missing
