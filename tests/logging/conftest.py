"""A logger that belongs to one test, and where its lines go."""

import logging
from functools import partial

import pytest
from lines_sink import Sink

from aioretry_smithy import LoggingClient


@pytest.fixture
def logger():
    """The logger ``shop``, on and without handlers, left as it was found."""
    logger = logging.getLogger("shop")
    found = logger.level, logger.propagate, logger.handlers, logger.filters
    logger.setLevel(logging.DEBUG)
    logger.propagate, logger.handlers, logger.filters = False, [], []
    yield logger
    logger.setLevel(found[0])
    logger.propagate, logger.handlers, logger.filters = found[1:]


@pytest.fixture
def sink(logger):
    """Collect the records of that logger."""
    sink = Sink()
    logger.addHandler(sink)
    return sink


@pytest.fixture
def new(logger):
    """A function that makes the decorator of that logger."""
    return partial(LoggingClient.new_decorator, logger)
