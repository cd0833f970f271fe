"""The page about Smithy says what the code does; the loops that it prints work."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import logging
import re
import runpy
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from chains import session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    FailFastError,
    RetryingClient,
    smithy,
)
from aioretry_smithy._retry.classify import (
    THROTTLING_CODES,
    TIMEOUT_CODES,
    TRANSIENT_CODES,
)
from aioretry_smithy.smithy import (
    CallError,
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    RetryError,
    RetryProfile,
    RetryToken,
    sync,
)
from aioretry_smithy.testing import ScriptedTransport

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


FOLDER = Path(__file__).parents[2] / "docs" / "reference"
PROFILES = (
    smithy.RetryProfile.V2_1,
    smithy.RetryProfile.V2_0,
    smithy.RetryProfile.DYNAMODB,
    smithy.RetryProfile.GUIDE,
)
CODES = {
    "throttling": THROTTLING_CODES,
    "timeout": TIMEOUT_CODES,
    "transient": TRANSIENT_CODES,
}
AT_ONCE = smithy.from_backoff(Backoff.without_delay())
KEY = ConnectionKey("localhost", 443, True, True, None, None, None)
EXCEPTIONS = {
    "ConnectionResetError": ConnectionResetError(),
    "FailFastError": FailFastError(CircuitBreaker()),
    "LookupError": LookupError(),
    "TimeoutError": TimeoutError(),
    "ValueError": ValueError(),
    "aiohttp.ClientConnectorCertificateError": aiohttp.ClientConnectorCertificateError(
        KEY, ssl.SSLCertVerificationError()
    ),
    "aiohttp.ClientConnectorError": aiohttp.ClientConnectorError(
        KEY, ConnectionRefusedError()
    ),
    "aiohttp.ClientPayloadError": aiohttp.ClientPayloadError(),
    "aiohttp.InvalidURL": aiohttp.InvalidURL("http://"),
    "aiohttp.ServerDisconnectedError": aiohttp.ServerDisconnectedError(),
    "aiohttp.ServerTimeoutError": aiohttp.ServerTimeoutError(),
    "aiohttp.TooManyRedirects": aiohttp.TooManyRedirects(None, ()),
}


def rows_of(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def codes_of(kind: str) -> list[str]:
    return [row["code"] for row in rows_of("smithy-codes.csv") if row["kind"] == kind]


def carrying(code: str) -> list[tuple[int, dict[str, str], bytes]]:
    headers = {"x-amzn-errortype": code}
    return [(status, headers, b"") for status in (400, 403, 404, 500, 501, 503)]


def outcomes_of(text: str) -> list[Any]:
    """Return what to answer with for the first cell of a row."""
    if text.startswith("any status"):
        kind = text.rsplit(maxsplit=1)[-1]
        return [answer for code in codes_of(kind) for answer in carrying(code)]
    names = re.findall(r"``(\S+?)``", text)
    return [int(name) if name.isdigit() else EXCEPTIONS[name] for name in names]


class Asked(smithy.StandardRetryStrategy):
    """Remembers the failure it is asked about."""

    error: Exception | None = None

    async def refresh_retry_token_for_retry(self, *, token_to_renew, error):
        self.error = error
        return await super().refresh_retry_token_for_retry(
            token_to_renew=token_to_renew, error=error
        )


def kind_of(error: Exception | None) -> str:
    info = smithy.RetryInfo.of(error)
    if info.is_throttling_error:
        return "throttling"
    if info.is_timeout_error:
        return "timeout"
    return "transient" if info.allows_retry else ""


async def verdict(outcome: Any) -> tuple[str, str]:
    """Return the words for an outcome, from a call that meets it once."""
    strategy = Asked(backoff_strategy=AT_ONCE, throttling_backoff_strategy=AT_ONCE)
    transport = ScriptedTransport([outcome, 200])
    decorator = RetryingClient.new_decorator(strategy)
    async with session(transport, decorator) as client:
        try:
            async with client.get("http://localhost/"):
                pass
        except (aiohttp.ClientError, OSError, LookupError, ValueError):
            pass
    if strategy.error is None:
        return "", "not asked"
    return kind_of(strategy.error), "yes" if len(transport.requests) == 2 else "no"


@pytest.mark.parametrize(
    "row", rows_of("smithy-verdicts.csv"), ids=lambda row: row["outcome"]
)
async def test_verdict_is_the_documented_one(row):
    """Each outcome of a row is of its kind, and retried or not."""
    outcomes = outcomes_of(row["outcome"])
    verdicts = {await verdict(outcome) for outcome in outcomes}

    assert {(row["kind"], row["retried"])} == verdicts


def test_every_constant_is_documented():
    """The table has the numbers of each profile, all of them and in order."""
    row = r"^ *``(\w+)``" + r" +(\S+)(?: s)?" * len(PROFILES) + "$"
    documented = re.findall(row, smithy.RetryProfile.__doc__, flags=re.MULTILINE)
    fields = [field.name for field in dataclasses.fields(smithy.RetryProfile)]

    assert documented == [
        (
            name,
            *(f"{getattr(profile, name)}".removesuffix(".0") for profile in PROFILES),
        )
        for name in fields
    ]


@pytest.mark.parametrize("kind", CODES)
def test_every_error_code_is_documented(kind):
    """The page lists the codes that the classifiers know, and no other."""
    assert sorted(CODES[kind]) == codes_of(kind)


@pytest.mark.parametrize(
    ("name", "module"), [("smithy.rst", smithy), ("smithy-sync.rst", smithy.sync)]
)
def test_every_public_name_is_documented(name, module):
    """Each public name has its place on the page."""
    page = (FOLDER / name).read_text(encoding="utf-8")
    documented = re.findall(r"^\.\. (?:auto\w+|data):: (\w+)", page, flags=re.MULTILINE)

    assert sorted(module.__all__) == sorted(documented)
