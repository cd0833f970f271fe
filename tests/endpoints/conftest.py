"""Chances that the test says, and answers to health checks."""

import random

import pytest
from balanced import Health
from fake_responses import sent_to


@pytest.fixture
def dice(monkeypatch):
    """Draw what is told, again and again, in place of chance."""

    def draw(*numbers):
        drawn = iter(numbers * 10_000)
        monkeypatch.setattr(
            "aioretry_smithy._endpoints.selection.chance", lambda: next(drawn)
        )

    return draw


@pytest.fixture
def seeded(monkeypatch):
    """Draw the same numbers in each run."""
    for module in ("selection", "roster", "ejection"):
        monkeypatch.setattr(
            f"aioretry_smithy._endpoints.{module}.chance", random.Random(7).random
        )


@pytest.fixture
def shortest_ejections(monkeypatch):
    """Let endpoints be out for the times that were asked for, and no longer."""
    monkeypatch.setattr("aioretry_smithy._endpoints.ejection.chance", lambda: 0.0)


@pytest.fixture
def health(monkeypatch):
    """Answers the checks."""
    return sent_to(Health(), monkeypatch)


@pytest.fixture
def no_jitter(monkeypatch):
    """Rounds and queries begin when the interval is over."""
    for module in ("health", "discovery"):
        monkeypatch.setattr(f"aioretry_smithy._endpoints.{module}.chance", lambda: 0.5)
