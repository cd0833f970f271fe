"""What was injected says so, in every view of the log."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from chains import SAFELY, log_of, refused, retrying, session

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    LogFormatter,
    RequestLog,
    client_decorator,
    new_response,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

TEXT = LogFormatter.text()
FAULTS = {
    "status": InjectedFault.status(503),
    "error": InjectedFault.error(aiohttp.ServerDisconnectedError),
    "hang": InjectedFault.hang(),
    "latency": InjectedFault.latency(60.0),
}
each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)


def injecting(fault, *strikes):
    """Strike these of the requests: by default all."""
    numbers = iter([0.0 if strike else 1.0 for strike in strikes])
    return FaultInjectingClient.new_decorator(fault, random=lambda: next(numbers, 0.0))


@each_fault
@pytest.mark.parametrize(
    "decorators", [[], [retrying(SAFELY)]], ids=["plain", "retrying"]
)
async def test_every_view_says_that_a_fault_was_injected(fault, decorators):
    """In place of "not sent", which puzzles; it was not sent all the same."""
    faults = injecting(fault)
    log = await log_of(session([], faults, *decorators, timeout=5.0))
    first = log.children[0] if log.children else log

    assert (True, False) == (first.injected, first.sent)
    assert ", injected" in first.render()
    assert "not sent" not in first.render()
    assert ", injected=yes" in TEXT.format_response(first)
    assert "sent=" not in TEXT.format_response(first)
    assert (True, False) == (first.to_dict()["injected"], first.to_dict()["sent"])
    assert json.loads(LogFormatter.json().format_response(first))["injected"] is True


async def test_rows_and_headline_of_a_call_that_only_met_faults():
    """The call ended with an injected answer, and says so."""
    log = await log_of(session([], injecting(FAULTS["status"]), retrying(SAFELY)))
    headline, *rows = log.render().splitlines()

    assert log.injected
    assert "503 Service Unavailable, injected, stopped: " in headline
    assert all("503 Service Unavailable, injected  " in row for row in rows)


async def test_call_that_a_server_answered_in_the_end():
    """Only the attempt that was struck says so."""
    faults = injecting(FAULTS["status"], True, False)
    log = await log_of(session([200], faults, retrying(SAFELY)))
    headline, first, second = log.render().splitlines()

    assert [False, True, False] == [each.injected for each in (log, *log.children)]
    assert "injected" not in headline + second
    assert "503 Service Unavailable, injected" in first


async def test_attempt_that_a_breaker_refuses_after_faults_was_not_injected():
    """The breaker is real, and what it refused was not sent."""
    breaker = CircuitBreaker(minimum_request_threshold=2)
    breaking = CircuitBreakerClient.new_decorator(breaker)
    faults = injecting(FAULTS["status"])
    log = await log_of(session([], faults, breaking, retrying(SAFELY)))
    headline, *rows = log.render().splitlines()

    assert [False, True, True, False] == [
        each.injected for each in (log, *log.children)
    ]
    assert ", not sent" in headline
    assert ", not sent" in rows[-1]


async def test_answer_that_a_decorator_made_of_a_fault_was_not_injected():
    """The fallback is the user's own."""

    @client_decorator
    async def fallback(delegate, ctx, request):
        await delegate.execute(ctx, request)
        return new_response(request, body=b"fallback")

    log = await log_of(session([], injecting(FAULTS["status"]), fallback))

    assert (False, False, 200) == (log.injected, log.sent, log.response_status)
    assert log.render().endswith("200 OK, not sent")


async def test_body_that_was_cut_on_purpose():
    """It is that of a real answer, and its end was injected."""
    faults = injecting(InjectedFault.cut_body(after=3))
    async with session([(200, b"orders")], faults) as client:
        response = await client.get("http://localhost/")
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
    log = RequestLog.of(response)

    assert (True, True) == (log.injected, log.sent)
    assert "ClientPayloadError: " in log.render()
    assert ", injected" in log.render()


async def test_wait_on_purpose_that_was_not_cut_injects_no_answer():
    """The server has answered."""
    log = await log_of(session([200], injecting(InjectedFault.latency(0.5))))

    assert not log.injected
    assert "injected" not in log.render()


async def test_failure_after_an_injected_wait_is_real():
    """The request went on, and then was refused."""
    log = await log_of(session([refused()], injecting(InjectedFault.latency(0.5))))

    assert not log.injected
    assert ", not sent" in log.render()


async def test_error_of_the_function_that_switches_faults_was_not_injected():
    """It is a mistake of the user's."""

    def broken(ctx, request):
        raise LookupError("no such flag")

    faults = FaultInjectingClient.new_decorator(FAULTS["status"], enabled=broken)
    log = await log_of(session([], faults))

    assert "LookupError: no such flag, not sent" in log.render()


async def test_attempt_that_was_cut_in_an_injected_silence():
    """The limit of the attempt passed in it."""
    retries = retrying(SAFELY, attempt_timeout=2.0)
    faults = injecting(FAULTS["hang"], True, False)
    log = await log_of(session([200], faults, retries))
    first = log.children[0]

    assert AttemptTimeoutError is type(first.response_cause)
    assert "1  AttemptTimeoutError, injected   2.000 s" in log.render()


async def test_fault_after_the_call_was_answered_changes_nothing():
    """A decorator outside did not wait for it."""
    late = []

    @client_decorator
    async def impatient(delegate, ctx, request):
        late.append(asyncio.ensure_future(delegate.execute(ctx, request)))
        return new_response(request)

    faults = FaultInjectingClient.new_decorator(
        InjectedFault.latency(1.0), InjectedFault.status(503)
    )
    log = await log_of(session([], faults, impatient))
    response = await late[0]

    assert 503 == response.status
    assert (200, False) == (log.response_status, log.injected)
