"""Calls to several servers, and what their logs say."""

from __future__ import annotations

import ssl

import aiohttp
from balanced import call
from chains import refused

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient, CircuitState


def certificate() -> aiohttp.ClientConnectorCertificateError:
    """Make the error of a server with a wrong certificate."""
    key = refused().args[0]
    return aiohttp.ClientConnectorCertificateError(
        key, ssl.SSLCertVerificationError(1, "Hostname mismatch")
    )


async def logged(fleet, group, *decorators, **options):
    """Make one call, and return its status, its log and who was asked."""
    settings = {name: options.pop(name) for name in ("timeout",) if name in options}
    async with fleet.session(group, *decorators, **settings) as client:
        status, log = await call(client, **options)
    return status, log, fleet.text


def delays(log):
    """Return the wait after each attempt but the last, and its source."""
    return [(each.delay, each.delay_source) for each in log.children[:-1]]


class Breakers:
    """A circuit breaker per host, the first failure of which opens it."""

    def __init__(self, *opened, window=20.0):
        self.window = window
        self.opened = opened
        self.keys = []
        self.decorator = CircuitBreakerClient.new_per_host_decorator(self.make)

    def make(self, key):
        self.keys.append(key)
        breaker = CircuitBreaker(
            key, minimum_request_threshold=1, circuit_open_window=self.window
        )
        if key[0] in self.opened:
            breaker.enter_state(CircuitState.OPEN)
        return breaker
