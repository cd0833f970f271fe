"""Certificates and requests that were not sent: the next attempt goes elsewhere."""

from __future__ import annotations

import aiohttp
from balanced import Fleet, group_of, out
from calls import begin, call_of
from chains import refused, retrying
from retrying_clients import certificate, delays, logged

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    FailFastError,
    RetryStrategy,
    UnprocessedRequestError,
)
from aioretry_smithy._call.tries import is_unsent
from aioretry_smithy._failures.failure import judge
from aioretry_smithy._retry.wait import overrules

LATER = RetryStrategy.failsafe(Backoff.fixed(0.5))


class TestCertificates:
    """Case 25: servers that cannot prove who they are."""

    async def test_is_tried_elsewhere_and_put_out(self):
        """The strategies say no, as to any permanent failure; nothing was sent."""
        group = group_of("ab")
        status, log, asked = await logged(
            Fleet(a=certificate()), group, retrying(LATER), method="POST"
        )

        assert (200, "ab", [(0.0, "next_endpoint")]) == (status, asked, delays(log))
        assert {"a": "connect_failures"} == out(group)

    async def test_twice_a_call(self):
        """As other switches."""
        fleet = Fleet(**dict.fromkeys("abcd", certificate()))
        error, log, asked = await logged(fleet, group_of("abcd"), retrying(LATER))

        assert (aiohttp.ClientConnectorCertificateError, "abc") == (type(error), asked)
        assert "no_retry" == log.stop_reason

    async def test_of_the_only_one_is_permanent(self):
        """There is nothing else."""
        _error, log, asked = await logged(
            Fleet(a=certificate()), group_of("a"), retrying(LATER)
        )

        assert ("a", "no_retry") == (asked, log.stop_reason)

    async def test_fingerprint_that_differs(self):
        """It is the same."""
        failure = aiohttp.ServerFingerprintMismatch(b"a", b"b", "a.example", 443)
        status, _, asked = await logged(
            Fleet(a=failure), group_of("ab"), retrying(LATER)
        )

        assert (200, "ab") == (status, asked)


class TestUnsent:
    """Which failures reached no server."""

    def test_kinds(self):
        """Not those that something shared has refused."""
        circuit = FailFastError(CircuitBreaker("a"))
        circuit.is_of_endpoint = True
        queued = refused()
        judge(queued).queue = "limit"

        assert [True, True, True, False, False, False, False] == [
            is_unsent(each)
            for each in (
                refused(),
                certificate(),
                circuit,
                queued,
                FailFastError(CircuitBreaker("all")),
                UnprocessedRequestError("ours"),
                TimeoutError(),
            )
        ]

    async def test_success_overrules_nothing(self):
        """There is no failure, or no choice."""
        record = call_of(begin())

        assert not overrules(record, record, None)
        assert not overrules(record, record, refused())
