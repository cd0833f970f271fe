"""Read and check the command line before anything is sent."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar

from yarl import URL

import aioretry_smithy

from .. import Backoff, RetryStrategy
from .._masking.mask import DEFAULT_MASK
from .output import PROGRAM, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_T = TypeVar("_T")

STRATEGIES: dict[str, Callable[[Backoff], RetryStrategy]] = {
    "never": lambda backoff: RetryStrategy.never(),
    "failsafe": RetryStrategy.failsafe,
    "on-server-error-status": RetryStrategy.on_server_error_status,
    "on-unprocessed": RetryStrategy.on_unprocessed,
}
"""The strategies that ``--strategy`` knows."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER = re.compile(
    rf"({_TOKEN.pattern}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*)"
)

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
    parser.add_argument("url", metavar="URL", type=_url, help="where to send it")
    _add_request_options(parser)
    _add_retry_options(parser)
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=_file,
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
        type=_checked(Backoff.of),
        default=Backoff.of_default(),
        help="the waits between attempts, such as fixed=500ms,jitter=0 (default:"
        " exponential=200:10000:2.0,jitter=0.2)",
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


def _checked(convert: Callable[[str], _T]) -> Callable[[str], _T]:
    """Let argparse pass on what a ValueError says, which it would not."""

    def checked(text: str) -> _T:
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


def _refuse(text: str, expected: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"{text!r} (expected: {expected})")


def _url(text: str) -> URL:
    with contextlib.suppress(ValueError):
        url = URL(text)
        host = url.host or ""
        # Finds hosts with an empty label, or one that is too long.
        host.encode("idna")
        is_host = host != "" and " " not in host
        if is_host and url.scheme in {"http", "https"} and text.isprintable():
            return url
    _refuse(DEFAULT_MASK.text(text), "http:// or https://, and a host")


def _method(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        _refuse(text, "a method such as PUT")
    return text.upper()


def _header(text: str) -> tuple[str, str]:
    match = _HEADER.fullmatch(text)
    if match is None:
        _refuse(text, "'Name: value'")
    return match[1], match[2]


def _file(text: str) -> Path:
    if text == "-":
        _refuse(text, "a file; standard output is for the body")
    # The request may cost something, and must not be sent for nothing.
    path = Path(text)
    if "\0" in text or not _is_directory(path.parent) or _is_directory(path):
        _refuse(text, "a file in a directory that exists")
    return path


def _is_directory(path: Path) -> bool:
    # Path.is_dir() raises for names that are too long, and closed directories.
    return os.path.isdir(path)  # noqa: PTH112


def _attempts(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        _refuse(text, "an integer >= 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        _refuse(text, "seconds, finite and > 0")
    return seconds
