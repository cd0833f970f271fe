"""A pytest plugin: every session gets a chain, every outcome goes into a file."""

import json
import os
import weakref
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from aioretry_smithy import (
    CircuitBreakerClient,
    DecoratingClient,
    LoggingClient,
    RetryingClient,
    RetryStrategy,
    decorate,
)

if TYPE_CHECKING:
    pass

CHAIN = "AIORETRY_SMITHY_UPSTREAM_CHAIN"
"""The environment variable that names the chain: none, no-op or full."""

OUTCOMES = "AIORETRY_SMITHY_UPSTREAM_OUTCOMES"
"""The environment variable that names the file for the outcomes."""

_outcomes = defaultdict(list)


def pytest_configure():
    """Decorate the sessions to come."""
    chain = os.environ[CHAIN]
    if chain != "none":
        decorate_all_sessions(chain)


def decorate_all_sessions(chain):
    """Decorate every session when it sends its first request.

    Prepared in ``__new__``, because ``__init__`` would get one more frame around it,
    which the warnings that aiohttp raises there would point at.
    """

    def new(cls, *_, **__):
        session = object.__new__(cls)
        reference = weakref.ref(session)

        def first_request(*arguments, **options):
            session = reference()
            del session._request
            resends = session._retry_connection
            decorate(session, *decorators(chain))
            # What aiohttp sends again by itself is what some of its tests are about.
            session._retry_connection = resends
            return session._request(*arguments, **options)

        vars(session)["_request"] = first_request
        return session

    aiohttp.ClientSession.__new__ = new


def decorators(chain):
    """Return new decorators: what one test did must not reach another."""
    if chain == "no-op":
        return [DecoratingClient]
    return [
        CircuitBreakerClient.new_per_host_decorator(),
        LoggingClient.new_decorator(),
        RetryingClient.new_decorator(RetryStrategy.never()),
        LoggingClient.new_decorator(),
    ]


def pytest_runtest_logreport(report):
    """Keep what is not simply passed."""
    outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
    _outcomes[report.nodeid] += [] if outcome == "passed" else [report.when, outcome]


def pytest_unconfigure(config):
    """Write the outcomes, unless this is one of several workers."""
    if not hasattr(config, "workerinput"):
        outcomes = {test: " ".join(kept) for test, kept in _outcomes.items()}
        Path(os.environ[OUTCOMES]).write_text(json.dumps(outcomes), "utf-8")
