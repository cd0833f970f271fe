"""Switch retries and hedges off, for all calls of a program or for one call."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .._call.call import Call
    from .config import RetryConfig

_logger = logging.getLogger("aioretry_smithy")

VARIABLE: Final = "AIORETRY_SMITHY_NO_RETRIES"

_untold: Final = [
    f"{VARIABLE} is set: calls are neither retried nor hedged, whatever their settings"
]
"""The one warning of a process; a warning of Python's may be an error in tests."""


def retries_are_off() -> bool:
    """Say whether the environment wants one attempt of each call; warn once of it."""
    if os.environ.get(VARIABLE, "") in {"", "0"}:
        return False
    # Of threads that decorate functions at once, one finds it.
    with suppress(IndexError):
        _logger.warning(_untold.pop())
    return True


def in_one_attempt(config: RetryConfig) -> RetryConfig:
    """Return the same settings, but for one attempt."""
    if config.max_total_attempts == 1:
        return config
    # Not made anew, since that may warn of a setting again.
    changed = copy(config)
    object.__setattr__(changed, "max_total_attempts", 1)
    return changed


def hedges_are_off(call: Call) -> bool:
    """Say whether a call makes one request: as all do, or as the block around wants."""
    retry = None if call.options is None else call.options.retry
    if retry is not None and retry.max_total_attempts == 1:
        return True
    return call.defaults.no_retries
