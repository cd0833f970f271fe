"""A logger that belongs to one test."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """The logger ``shop``, on and without handlers, left as it was found."""
    logger = logging.getLogger("shop")
    found = logger.level, logger.propagate, logger.handlers, logger.filters
    logger.setLevel(logging.DEBUG)
    logger.propagate, logger.handlers, logger.filters = False, [], []
    yield logger
    logger.setLevel(found[0])
    logger.propagate, logger.handlers, logger.filters = found[1:]
