"""The loops that Smithy's guide and smithy-python's design print, as examples."""

from __future__ import annotations

import asyncio
import logging
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aioretry_smithy.smithy import (
    CallError,
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    RetryError,
    RetryProfile,
    RetryToken,
    sync,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.virtual_time

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
UNAVAILABLE = CallError("503", fault="server")
NOT_FOUND = CallError("404", fault="client")
DOUBLING = ExponentialRetryBackoffStrategy(
    backoff_scale_value=1.0, jitter_type=ExponentialBackoffJitterType.NONE
)


@pytest.fixture(autouse=True)
def _errors_know_of_no_other_test():
    for error in (UNAVAILABLE, NOT_FOUND):
        error.__context__ = error.__cause__ = error.__traceback__ = None


class RefusingStrategy(sync.StandardRetryStrategy):
    """Has no initial token for anybody."""

    def acquire_initial_retry_token(self, *, token_scope=None):
        raise RetryError("none left")


class Service:
    """Answers or fails as told, and counts how often it was asked."""

    def __init__(self, *outcomes: str | Exception) -> None:
        self.outcomes = iter(outcomes)
        self.requests: list[object] = []

    def send(self, serialized_request: object) -> str:
        self.requests.append(serialized_request)
        outcome = next(self.outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


async def slept_by_the_loop(call: Callable[[], Any]) -> tuple[Any, float]:
    loop = asyncio.get_running_loop()
    started = loop.time()
    try:
        return await call(), loop.time() - started
    except Exception as error:
        return error, loop.time() - started


@pytest.fixture
def design_client(monkeypatch):
    """The client of the example of the design, whose responses are plain text."""
    monkeypatch.setattr(asyncio, "run", lambda main: main.close())
    kind = runpy.run_path(str(EXAMPLES / "smithy_design_loop.py"))["Client"]
    monkeypatch.setattr(kind, "_deserialize", lambda self, response: response)
    return kind()


@pytest.fixture
def new_guide_client(monkeypatch, capsys):
    """Make a client as the example of the guide needs it."""
    monkeypatch.setattr(logging, "basicConfig", lambda **settings: None)
    return runpy.run_path(str(EXAMPLES / "smithy_guide_loop.py"))["Client"]


def strategy(kind: Any = sync.StandardRetryStrategy, **settings: Any) -> Any:
    return kind(backoff_strategy=DOUBLING, profile=RetryProfile.GUIDE, **settings)


@pytest.mark.parametrize(
    ("outcomes", "seconds", "quota"),
    [
        (["done"], 0.0, 500),
        ([UNAVAILABLE, "done"], 1.0, 496),
        ([UNAVAILABLE] * 4 + ["done"], 15.0, 481),
    ],
)
class TestSuccess:
    """A call that succeeds, at once or after failures."""

    async def test_loop_of_the_design(self, design_client, outcomes, seconds, quota):
        """The response comes after the delays, and the success is recorded."""
        retry_strategy, service = strategy(), Service(*outcomes)
        result = await slept_by_the_loop(
            lambda: design_client.request(retry_strategy, service, b"orders")
        )

        assert ("done", seconds) == result
        assert [b"orders"] * len(outcomes) == service.requests
        assert quota == retry_strategy.quota_for().available_capacity

    def test_loop_of_the_guide(self, new_guide_client, outcomes, seconds, quota):
        """The same, and the thread sleeps."""
        retry_strategy, service, slept = strategy(), Service(*outcomes), []
        client = new_guide_client(retry_strategy, service.send, slept.append)

        assert "done" == client.request(b"orders")
        assert seconds == sum(slept)
        assert [b"orders"] * len(outcomes) == service.requests
        assert quota == retry_strategy.quota_for().available_capacity


@pytest.mark.parametrize(
    ("error", "attempts", "reason"),
    [
        (UNAVAILABLE, 5, "all attempts are made: 5"),
        (NOT_FOUND, 1, f"the error allows no retry: {NOT_FOUND!r}"),
    ],
)
class TestFailure:
    """A call that the strategy gives up."""

    async def test_loop_of_the_design(self, design_client, error, attempts, reason):
        """The refusal is raised, from the last error."""
        service = Service(*[error] * attempts)
        refusal, _ = await slept_by_the_loop(
            lambda: design_client.request(strategy(), service, b"orders")
        )

        assert isinstance(refusal, RetryError)
        assert reason == str(refusal)
        assert error is refusal.__cause__
        assert attempts == len(service.requests)

    def test_loop_of_the_guide(self, new_guide_client, error, attempts, reason, caplog):
        """The last error is raised as it is, and the reason stands in the log."""
        caplog.set_level(logging.INFO, "orders")
        service = Service(*[error] * attempts)
        client = new_guide_client(strategy(), service.send, float)
        with pytest.raises(CallError) as caught:
            client.request(b"orders")

        assert error is caught.value
        assert error.__context__ is None
        assert [f"no retry: {reason}"] == caplog.messages
        assert attempts == len(service.requests)


@pytest.mark.parametrize("outcome", ["done", UNAVAILABLE])
class TestNoInitialToken:
    """A call whose strategy has no token to begin with."""

    async def test_loop_of_the_design(self, design_client, outcome):
        """It makes one attempt, whatever comes of it."""
        service = Service(outcome)
        result, _ = await slept_by_the_loop(
            lambda: design_client.request(strategy(RefusingStrategy), service, b"a")
        )

        assert (outcome, 1) == (result, len(service.requests))

    def test_loop_of_the_guide(self, new_guide_client, outcome):
        """It makes one attempt, whatever comes of it."""
        service = Service(outcome)
        client = new_guide_client(strategy(RefusingStrategy), service.send, float)
        try:
            result = client.request(b"a")
        except CallError as error:
            result = error

        assert (outcome, 1) == (result, len(service.requests))


def test_guide_s_token_may_have_no_delay(new_guide_client):
    """A strategy of one's own may say None, and nobody sleeps then."""

    @dataclass(kw_only=True)
    class Token(RetryToken):
        retry_count: int
        retry_delay: float | None

    class Hasty(sync.StandardRetryStrategy):
        def acquire_initial_retry_token(self, *, token_scope=None):
            return Token(retry_count=0, retry_delay=None)

        def record_success(self, *, token):
            assert 0 == token.retry_count

    client = new_guide_client(Hasty(), Service("done").send, pytest.fail)

    assert "done" == client.request(b"orders")
