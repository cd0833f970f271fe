"""One request from the command line, sent again where that helps."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING

import aiohttp
from multidict import CIMultiDict

from .. import (
    RetryConfig,
    RetryingClient,
    SessionBuilder,
    capture_logs,
    is_unprocessed,
)
from .._mask import DEFAULT_MASK
from .._render import describe_error
from .arguments import STRATEGIES, UsageError
from .exit_code import ExitCode
from .output import complain, new_output, write

if TYPE_CHECKING:
    import argparse

    from .._retry.config import RetrySettings

_FORM = "application/x-www-form-urlencoded"


async def request(arguments: argparse.Namespace) -> ExitCode:
    """Send a request: its body to standard output, its log to standard error.

    Raises:
        UsageError: It cannot be sent like that.
    """
    builder = _session_builder(arguments)
    output = new_output(sys.stderr)
    with capture_logs() as logs:
        try:
            async with builder.build() as session:
                code = await _send(session, arguments)
        except asyncio.CancelledError:
            output.log(logs[0])
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            message = describe_error(error, DEFAULT_MASK)
            if _is_misuse(error):
                raise UsageError(message) from None
            output.log(logs[0])
            complain(message)
            return ExitCode.NO_RESPONSE
    output.log(logs[0])
    return code


def _session_builder(arguments: argparse.Namespace) -> SessionBuilder:
    strategy = STRATEGIES[arguments.strategy](arguments.backoff)
    settings: RetrySettings = {"attempt_timeout": arguments.attempt_timeout}
    if arguments.max_total_attempts is not None:
        settings["max_total_attempts"] = arguments.max_total_attempts
    try:
        config = RetryConfig(strategy, **settings)
    except ValueError as error:  # the environment has a say in the settings
        raise UsageError(error) from None
    builder = SessionBuilder().decorator(RetryingClient.new_decorator(config))
    if arguments.response_timeout is not None:
        builder.response_timeout(arguments.response_timeout)
    return builder


async def _send(
    session: aiohttp.ClientSession, arguments: argparse.Namespace
) -> ExitCode:
    headers = CIMultiDict(arguments.headers)
    method, data = arguments.method or "GET", None
    if arguments.data:
        data = b"&".join(arguments.data)
        method = arguments.method or "POST"
        headers.setdefault("Content-Type", _FORM)
    async with session.request(
        method, arguments.url, headers=headers, data=data
    ) as response:
        with contextlib.suppress(BrokenPipeError):  # the reader has seen enough
            async for chunk in response.content.iter_any():
                write(chunk)
        return ExitCode.HTTP_ERROR if response.status >= 400 else ExitCode.OK


def _is_misuse(error: Exception) -> bool:
    # Some of what is wrong with a request only aiohttp finds, on its way out.
    if isinstance(error, aiohttp.ClientError):
        return isinstance(error, aiohttp.InvalidURL) and is_unprocessed(error)
    return isinstance(error, ValueError)
