"""Read and check the command line before anything is sent."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING

from yarl import URL

from .. import Backoff, RetryStrategy
from .._context.options import UNSET
from .._policies.backoff import parse_spec
from .._request.arguments import TOKEN
from .._text.mask import DEFAULT_MASK
from ..testing._simulation import USUAL_OUTAGE
from . import options
from .output import PROGRAM, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

STRATEGIES: dict[str, Callable[[Backoff], RetryStrategy]] = {
    "never": lambda backoff: RetryStrategy.never(),
    "failsafe": RetryStrategy.failsafe,
    "on-server-error-status": RetryStrategy.on_server_error_status,
    "on-unprocessed": RetryStrategy.on_unprocessed,
}
"""The strategies that ``--strategy`` knows."""

NUMBERS: tuple[tuple[str, Callable[[str], float], float, str], ...] = (
    ("clients", int, 50, "processes that make calls, each with a session of its own"),
    ("rate", float, 700.0, "calls a second, of all clients together"),
    ("capacity", float, 1000.0, "requests a second that the server can answer"),
    ("duration", float, 120.0, "seconds in which calls begin; the outage ends by then"),
    ("seed", int, 0, "the seed of all random numbers"),
    ("replicas", int, 1, "servers, which have the capacity together"),
    ("dead", int, 0, "replicas that take no connections in the outage"),
    ("slow", float, 1.0, "times as long that one replica takes in the outage"),
    ("failing", int, 0, "replicas that answer 503 in the outage"),
)
"""The options of a simulation that are numbers."""

_TIME = re.compile(r"[0-9.]+(ms|s)?")
_HEADER = re.compile(
    rf"({TOKEN.pattern}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*)"
)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the arguments of the program, by default those of the process.

    Raises:
        UsageError: They make no sense.
        SystemExit: Help or version was asked for and is printed; or there were no
            arguments, so the help is on standard error and the code is that of bad
            usage.
    """
    parser = options.Parser(
        prog=PROGRAM,
        description="Decorated aiohttp sessions from the command line.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action=options.PrintVersion, help="print the version and exit"
    )
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    _add_demo(commands)
    _add_request(commands)
    _add_simulate(commands)
    options.add_report(commands)
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        raise SystemExit(ExitCode.USAGE)
    return parser.parse_args(arguments)


def _add_demo(commands: options.Commands) -> None:
    summary = "make calls that meet faults on purpose and show what became of each"
    parser = commands.add_parser(
        "demo", help=summary, description=f"{summary.capitalize()}.", allow_abbrev=False
    )
    options.add_json(
        parser, "print one JSON document when all is over (default: text as it happens)"
    )


def _add_request(commands: options.Commands) -> None:
    parser = commands.add_parser(
        "request",
        help="send a request, again where that helps, and show its attempts",
        description="Send a request, again where that helps. The body goes to standard"
        " output, the log of the attempts to standard error, those that fail as they"
        " end.",
        epilog="Exit code: 0 for a status below 400, 1 for any other status, 2 without"
        " a response or with half a body, 64 for bad usage, 73 for a body, a timeline"
        " or a log that cannot be written, 130 for Ctrl-C.",
        allow_abbrev=False,
    )
    parser.add_argument("url", metavar="URL", type=_url, help="where to send it")
    _add_request_options(parser)
    _add_retry_options(parser)
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=options.file_to_write,
        help="draw attempts, waits and deadline into an SVG file (default: do not)",
    )
    options.add_json(
        parser,
        "print the log as a JSON document to standard output, and not the body"
        " (default: the body, and the log as text)",
    )


def _add_request_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-X",
        "--method",
        type=_method,
        help="the method (default: GET; with --data POST)",
    )
    parser.add_argument(
        "-H",
        "--header",
        dest="headers",
        metavar="'NAME: VALUE'",
        action="append",
        type=_header,
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
        type=_backoff,
        default=Backoff.of_default(),
        help="the waits between attempts: seconds, or such as fixed=0.5,jitter=0"
        " (default: exponential=0.2:10:2.0,jitter=0.2)",
    )
    parser.add_argument(
        "--max-total-attempts",
        metavar="N",
        type=_attempts,
        help="attempts, the first one included (default: 10, or"
        " $AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS)",
    )
    parser.add_argument(
        "--attempt-timeout",
        metavar="SECONDS",
        type=_seconds,
        help="limit of each attempt, to the end of the body (default: none)",
    )
    parser.add_argument(
        "--response-timeout",
        metavar="SECONDS",
        type=_seconds,
        help="limit of all attempts and waits together, to the end of the body"
        " (default: 300, aiohttp's)",
    )


def _add_simulate(commands: options.Commands) -> None:
    parser = commands.add_parser(
        "simulate",
        help="put a chain through an outage or a restart of a simulated server",
        description="Put a chain, plain retries and no retries through an outage or a"
        " restart of a simulated server, in virtual time, and show what the server got"
        " and how many calls were answered.",
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
    usual = ":".join(f"{number:g}" for number in USUAL_OUTAGE)
    for name, kind, default, meaning in NUMBERS:
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
        type=_none_or_text,
        default=UNSET,
        help="the second when it begins, its seconds, and the part of the capacity that"
        f" is left, from 0 to 1; or none (default: {usual}, or none beside a restart)",
    )
    parser.add_argument(
        "--restart",
        metavar="START:LENGTH",
        type=_none_or_text,
        help="the second when the server goes away, the first one of replicas, and the"
        " seconds until it is back; or none (default: none)",
    )
    options.add_json(parser, "print one JSON document (default: a table)")
    parser.add_argument(
        "--plot",
        metavar="FILE.svg",
        type=_picture,
        help="draw load and success over time into an SVG file (default: do not)",
    )


def _url(text: str) -> URL:
    """Read a URL of HTTP, with a host."""
    with contextlib.suppress(ValueError):
        url = URL(text)
        host = url.host or ""
        # Finds hosts with an empty label, or one that is too long.
        host.encode("idna")
        is_host = host != "" and " " not in host
        if is_host and url.scheme in {"http", "https"} and text.isprintable():
            return url
    raise options.refused(DEFAULT_MASK.text(text), "http:// or https://, and a host")


def _method(text: str) -> str:
    """Read a method, in capital letters."""
    if not TOKEN.fullmatch(text):
        raise options.refused(text, "a method such as PUT")
    return text.upper()


def _header(text: str) -> tuple[str, str]:
    """Read the name and the value of a header."""
    match = _HEADER.fullmatch(text)
    if match is None:
        raise options.refused(text, "'Name: value'")
    return match[1], match[2]


def _picture(text: str) -> Path:
    """Read the name of a picture to draw."""
    path = options.file_to_write(text)
    if path.suffix.lower() != ".svg":
        raise options.refused(text, "a file whose name ends in .svg")
    return path


def _attempts(text: str) -> int:
    """Read a number of attempts."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise options.refused(text, "an integer >= 1")
    return int(text)


def _seconds(text: str) -> float:
    """Read a time."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise options.refused(text, "seconds, finite and > 0")
    return seconds


def _backoff(text: str) -> Backoff:
    """Read the waits between attempts, in seconds as the other options are.

    One number is a fixed wait. What looks like milliseconds is refused.
    """
    spec = f"fixed={text}" if _TIME.fullmatch(text) else text
    with warnings.catch_warnings(action="error"):
        try:
            backoff = parse_spec(spec, "s")
        except (RuntimeWarning, ValueError) as error:
            # argparse would not pass on what a ValueError says.
            raise argparse.ArgumentTypeError(str(error)) from None
    return backoff


def _none_or_text(text: str) -> str | None:
    """Read an outage or a restart, or none."""
    return None if text == "none" else text
