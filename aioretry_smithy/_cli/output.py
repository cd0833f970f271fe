"""Standard output and standard error, whatever stands behind them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from .._text import printable
from .exit_code import ExitCode
from .plain_output import PlainOutput

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = "aioretry-smithy"

new_output: Callable[[TextIO | None], PlainOutput]
"""Makes what writes text for people to a file, in colours where ``rich`` is there."""

try:
    from .rich_output import RichOutput
except ImportError:
    new_output = PlainOutput
else:
    new_output = RichOutput


def complain(message: str) -> None:
    """Write a line about what went wrong to standard error, if that can be written."""
    try:
        PlainOutput(sys.stderr).line(f"{PROGRAM}: error: {printable(message)}")
    except OSError:
        _give_up()


def write(chunk: bytes) -> None:
    """Write to standard output at once.

    Raises:
        OSError: It cannot be written to; from now on nobody tries.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    except OSError:
        _give_up()
        raise


def end_line(last: bytes) -> None:
    """Let what follows on a terminal begin a line; in a pipe or a file add nothing.

    Args:
        last: What was written last to standard output.
    """
    if last and not last.endswith(b"\n") and sys.stdout and sys.stdout.isatty():
        write(b"\n")


def flush() -> None:
    """Write what is still in the buffer of standard output.

    Raises:
        OSError: It cannot be written.
    """
    if sys.stdout is not None:
        sys.stdout.flush()


def cannot_write(error: OSError) -> ExitCode:
    """Complain that standard output or standard error cannot be written.

    From now on what is written there goes nowhere. A reader that leaves early, such as
    ``head``, is no failure.

    Args:
        error: What the attempt to write raised.

    Returns:
        The exit code for a command that has no worse one.
    """
    _give_up()
    if isinstance(error, BrokenPipeError):
        return ExitCode.OK
    complain(str(error))
    return ExitCode.CANNOT_WRITE


def _give_up() -> None:
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            # What is left in the buffer would fail once more when Python exits.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
