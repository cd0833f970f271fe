"""The subcommand ``request``: send a request, with retries."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from functools import partial
from typing import TYPE_CHECKING

import aiohttp
from multidict import CIMultiDict

from .. import (
    ClientRequestContext,
    DecoratingClient,
    HttpRequest,
    RequestLog,
    RetryConfig,
    RetryingClient,
    SessionBuilder,
    capture_logs,
    is_unprocessed,
)
from .._log.error_text import describe_error
from .._log.request_log import note
from .._text.mask import DEFAULT_MASK
from .._text.printable import printable
from .arguments import STRATEGIES
from .options import UsageError
from .output import ExitCode, cannot_write, complain, end_line, new_output, save, write

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from .._retry.config import RetrySettings

_FORM = "application/x-www-form-urlencoded"


async def request(arguments: argparse.Namespace) -> ExitCode:
    """Send a request: its body to standard output, its log to standard error.

    With ``--json`` the log goes to standard output, and the body nowhere.

    Raises:
        UsageError: It cannot be sent like that.
    """
    builder = _session_builder(arguments)
    with capture_logs() as logs:
        try:
            async with builder.build() as session:
                code = await _send(session, arguments)
        except asyncio.CancelledError:
            _show(logs[0], arguments)
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            message = describe_error(error, DEFAULT_MASK)
            if _is_misuse(error) and not (logs and logs[0].sent):
                raise UsageError(message) from None
            _show(logs[0], arguments)
            complain(message)
            return ExitCode.NO_RESPONSE
    shown = _show(logs[0], arguments)
    return code or shown


class _ShowFailures(DecoratingClient):
    """Prints each failed attempt immediately, before the wait."""

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request*, and describe the outcome of a failure."""
        try:
            response = await self.delegate.execute(ctx, request)
        except Exception as error:
            if ctx.log.sent or not _is_misuse(error):
                _show_attempt(ctx.log)
            raise
        if response.status >= 400:
            _show_attempt(ctx.log)
        return response


def _show_attempt(log: RequestLog) -> None:
    # A closed standard error must not change the outcome of the call.
    with contextlib.suppress(OSError):
        new_output(sys.stderr).line(note(log))


def _show(log: RequestLog, arguments: argparse.Namespace) -> ExitCode:
    """Show the outcome of the call, and complain where that fails."""
    timeline: Path | None = arguments.timeline
    # The picture first: the reader of a pipe may have left.
    drawn = code = ExitCode.OK
    if timeline is not None:
        drawn = save("timeline", partial(log.to_svg, timeline))
    try:
        output = new_output(sys.stderr)
        if arguments.json:
            print(json.dumps(log.to_dict(), indent=2))
        else:
            output.document([log])
        if timeline is not None and drawn is ExitCode.OK:
            output.line(f"timeline: {printable(str(timeline))}")
    except OSError as error:
        code = cannot_write(error)
    return drawn or code


def _session_builder(arguments: argparse.Namespace) -> SessionBuilder:
    strategy = STRATEGIES[arguments.strategy](arguments.backoff)
    settings: RetrySettings = {"attempt_timeout": arguments.attempt_timeout}
    if arguments.max_total_attempts is not None:
        settings["max_total_attempts"] = arguments.max_total_attempts
    try:
        config = RetryConfig(strategy, **settings)
    except ValueError as error:  # the environment sets some of the settings
        raise UsageError(error) from None
    builder = SessionBuilder()
    if not arguments.json:
        builder.decorator(_ShowFailures)
    builder.decorator(RetryingClient.new_decorator(config))
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
        code = await _read(response, shown=not arguments.json)
        return ExitCode.HTTP_ERROR if response.status >= 400 else code


async def _read(response: aiohttp.ClientResponse, *, shown: bool) -> ExitCode:
    """Read a body to its end, or until nobody takes it: a full disk, a closed pipe."""
    chunk = b""
    try:
        async for chunk in response.content.iter_any():
            code = write(chunk) if shown else None
            if code is not None:
                return code
    finally:
        if shown:
            end_line(chunk)
    return ExitCode.OK


def _is_misuse(error: Exception) -> bool:
    # Some mistakes in a request only aiohttp finds, when it is about to send it.
    if isinstance(error, aiohttp.ClientError):
        return isinstance(error, aiohttp.InvalidURL) and is_unprocessed(error)
    return isinstance(error, ValueError)
