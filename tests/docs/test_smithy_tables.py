"""The tables of the page about Smithy say what the code does."""

from __future__ import annotations

import csv
import dataclasses
import re
import ssl
from pathlib import Path
from typing import Any

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
from aioretry_smithy.testing import ScriptedTransport

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
