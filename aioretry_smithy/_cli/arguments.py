"""Read and check the command line before anything is sent."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import aioretry_smithy

from .. import Backoff, RetryStrategy
from . import converters
from .output import PROGRAM, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STRATEGIES: dict[str, Callable[[Backoff], RetryStrategy]] = {
    "never": lambda backoff: RetryStrategy.never(),
    "failsafe": RetryStrategy.failsafe,
    "on-server-error-status": RetryStrategy.on_server_error_status,
    "on-unprocessed": RetryStrategy.on_unprocessed,
}
"""The strategies that ``--strategy`` knows."""

_NUMBERS: tuple[tuple[str, Callable[[str], float], float, str], ...] = (
    ("clients", int, 50, "processes that make calls, each with a session of its own"),
    ("rate", float, 700.0, "calls a second, of all clients together"),
    ("capacity", float, 1000.0, "requests a second that the server can answer"),
    ("duration", float, 120.0, "seconds in which calls begin"),
    ("seed", int, 0, "the seed of all random numbers"),
)
"""The options of a simulation that are numbers."""

_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


class UsageError(Exception):
    """The arguments make no sense; says what is wrong with them in one line."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments of the program, by default those of the process.

    Raises:
        UsageError: They make no sense.
        SystemExit: Help or version was asked for and is printed; or there were no
            arguments, so the help is on standard error and the code is that of bad
            usage.
    """
    parser = _Parser(
        prog=PROGRAM,
        description="Decorated aiohttp sessions from the command line.",
        allow_abbrev=False,
    )
    version = f"{PROGRAM} {aioretry_smithy.__version__}"
    parser.add_argument(
        "--version",
        action="version",
        version=version,
        help="print the version and exit",
    )
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    _add_demo(commands)
    _add_request(commands)
    _add_simulate(commands)
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        raise SystemExit(ExitCode.USAGE)
    return parser.parse_args(arguments)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _add_demo(commands: _Commands) -> None:
    summary = "make calls that meet faults on purpose and show what became of each"
    parser = commands.add_parser(
        "demo", help=summary, description=f"{summary.capitalize()}.", allow_abbrev=False
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document when all is over (default: text as it happens)",
    )


def _add_request(commands: _Commands) -> None:
    parser = commands.add_parser(
        "request",
        help="send a request, again where that helps, and show its attempts",
        description="Send a request, again where that helps. The body goes to standard"
        " output, the log of the attempts to standard error, those that fail as they"
        " end.",
        epilog="Exit code: 0 for a status below 400, 1 for any other status, 2 without"
        " a response or with half a body, 64 for bad usage, 73 for a timeline or a"
        " log that cannot be written, 130 for Ctrl-C.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "url", metavar="URL", type=converters.url, help="where to send it"
    )
    _add_request_options(parser)
    _add_retry_options(parser)
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=converters.file,
        help="draw attempts, waits and deadline into an SVG file (default: do not)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the log as a JSON document to standard output, and not the body"
        " (default: the body, and the log as text)",
    )


def _add_request_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-X",
        "--method",
        type=converters.method,
        help="the method (default: GET; with --data POST)",
    )
    parser.add_argument(
        "-H",
        "--header",
        dest="headers",
        metavar="'NAME: VALUE'",
        action="append",
        type=converters.header,
        default=[],
        help="a header; may be repeated (default: those of aiohttp)",
    )
    parser.add_argument(
        "-d",
        "--data",
        action="append",
        type=os.fsencode,
        help="the body, of the type application/x-www-form-urlencoded unless a header"
        " says otherwise; what is repeated is joined with & (default: no body)",
    )


def _add_retry_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="failsafe",
        help="what is worth another attempt (default: %(default)s)",
    )
    parser.add_argument(
        "--backoff",
        metavar="SPEC",
        type=converters.checked(converters.backoff),
        default=Backoff.of_default(),
        help="the waits between attempts: seconds, or such as fixed=0.5,jitter=0"
        " (default: exponential=0.2:10:2.0,jitter=0.2)",
    )
    parser.add_argument(
        "--max-total-attempts",
        metavar="N",
        type=converters.attempts,
        help="attempts, the first one included (default: 10, or"
        " $AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS)",
    )
    parser.add_argument(
        "--attempt-timeout",
        metavar="SECONDS",
        type=converters.seconds,
        help="limit of each attempt, to the end of the body (default: none)",
    )
    parser.add_argument(
        "--response-timeout",
        metavar="SECONDS",
        type=converters.seconds,
        help="limit of all attempts and waits together, to the end of the body"
        " (default: 300, aiohttp's)",
    )


def _add_simulate(commands: _Commands) -> None:
    parser = commands.add_parser(
        "simulate",
        help="put a chain through an outage of a simulated server",
        description="Put a chain, plain retries and no retries through an outage of a"
        " simulated server, in virtual time, and show what the server got and how many"
        " calls were answered.",
        epilog="Exit code: 0 if it ran, 64 for bad usage or a function that cannot be"
        " used, 73 for a plot that cannot be written, 130 for Ctrl-C.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "chain",
        metavar="MODULE:FUNCTION",
        nargs="?",
        help="what makes a SessionBuilder for each client; also path/file.py:FUNCTION"
        " (default: the standard chain)",
    )
    for name, kind, default, meaning in _NUMBERS:
        parser.add_argument(
            f"--{name}",
            metavar="N",
            type=kind,
            default=default,
            help=f"{meaning} (default: %(default)s)",
        )
    parser.add_argument(
        "--outage",
        metavar="START:LENGTH:PART",
        type=converters.outage,
        default="10:20:0.2",
        help="the second when it begins, its seconds, and the part of the capacity that"
        " is left, from 0 to 1; or none (default: %(default)s)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document (default: a table)",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.svg",
        type=converters.picture,
        help="draw load and success over time into an SVG file (default: do not)",
    )
