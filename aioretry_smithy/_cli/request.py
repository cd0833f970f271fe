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
from .._render import describe_error, printable
from .arguments import STRATEGIES, UsageError
from .exit_code import ExitCode
from .output import complain, new_output, write

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from .. import RequestLog
    from .._retry.config import RetrySettings

_FORM = "application/x-www-form-urlencoded"


async def request(arguments: argparse.Namespace) -> ExitCode:
    """Send a request: its body to standard output, its log to standard error.

    Raises:
        UsageError: It cannot be sent like that.
    """
    builder = _session_builder(arguments)
    with capture_logs() as logs:
        try:
            async with builder.build() as session:
                code = await _send(session, arguments)
        except asyncio.CancelledError:
            _show(logs[0], arguments.timeline)
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            message = describe_error(error, DEFAULT_MASK)
            if _is_misuse(error):
                raise UsageError(message) from None
            _show(logs[0], arguments.timeline)
            complain(message)
            return ExitCode.NO_RESPONSE
    shown = _show(logs[0], arguments.timeline)
    return code or shown


def _show(log: RequestLog, timeline: Path | None) -> ExitCode:
    """Show what became of the call, and say so where that goes wrong."""
    # The picture first: whoever reads standard error may have left.
    failure = None if timeline is None else _draw(log, timeline)
    output = new_output(sys.stderr)
    output.log(log)
    if failure is not None:
        complain(f"--timeline: {failure}")
        return ExitCode.CANNOT_WRITE
    if timeline is not None:
        output.line(f"timeline: {printable(str(timeline))}")
    return ExitCode.OK


def _draw(log: RequestLog, file: Path) -> OSError | None:
    try:
        log.to_svg(file)
    except OSError as error:
        return error
    return None


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
