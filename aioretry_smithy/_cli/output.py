"""Write to standard output and standard error, and define the exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import TextIO

from .._text.printable import printable
from .plain_output import PlainOutput

PROGRAM = "aioretry-smithy"

new_output: Callable[[TextIO | None], PlainOutput]
"""Makes what writes text for people to a file, in colours where ``rich`` is there."""

try:
    from .rich_output import RichOutput
except ImportError:
    new_output = PlainOutput
else:
    new_output = RichOutput


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    """The command did what it was asked for; the status was below 400."""

    HTTP_ERROR = 1
    """The last response had a status of 400 or above."""

    NO_RESPONSE = 2
    """There was no response, or its body did not come whole."""

    USAGE = 64
    """The arguments made no sense; nothing was sent. ``EX_USAGE`` of sysexits."""

    NO_CALLS = 65
    """There was no call to report on. ``EX_DATAERR`` of sysexits."""

    CANNOT_READ = 66
    """A file could not be read. ``EX_NOINPUT`` of sysexits."""

    CANNOT_WRITE = 73
    """A file or a text could not be written. ``EX_CANTCREAT`` of sysexits."""

    INTERRUPTED = 130
    """Interrupted by Ctrl-C (128 + SIGINT, like a shell)."""


def complain(message: str) -> None:
    """Write a line about what went wrong to standard error, if that can be written."""
    try:
        PlainOutput(sys.stderr).line(f"{PROGRAM}: error: {printable(message)}")
    except OSError:
        _give_up()


def write(chunk: bytes) -> ExitCode | None:
    """Write to standard output at once.

    Return None, or the exit code where it cannot be written to; from now on nobody
    tries.
    """
    if sys.stdout is None:
        return None
    try:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    except OSError as error:
        return cannot_write(error)
    return None


def save(option: str, write: Callable[[], object]) -> ExitCode:
    """Write the file of an option; complain if that fails."""
    try:
        write()
    except OSError as error:
        complain(f"--{option}: {error}")
        return ExitCode.CANNOT_WRITE
    return ExitCode.OK


def end_line(last: bytes) -> None:
    """Let what follows *last* on a terminal begin a line; in a file add nothing."""
    if last and not last.endswith(b"\n") and sys.stdout and sys.stdout.isatty():
        write(b"\n")


def flush() -> None:
    """Write what is still in the buffer of standard output, or raise OSError."""
    if sys.stdout is not None:
        sys.stdout.flush()


def cannot_write(error: OSError) -> ExitCode:
    """Complain that standard output or standard error cannot be written.

    From now on what is written there goes nowhere. A reader that leaves early, such as
    ``head``, is no failure. Returns the exit code for a command that has no worse one.
    """
    _give_up()
    if _is_left(error):
        return ExitCode.OK
    complain(str(error))
    return ExitCode.CANNOT_WRITE


def _is_left(error: OSError) -> bool:
    """Say whether an error means a closed pipe (on Windows an invalid argument)."""
    is_invalid = error.errno == errno.EINVAL and os.name == "nt"
    return is_invalid or isinstance(error, BrokenPipeError)


def _give_up() -> None:
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            # The rest of the buffer would fail once more when Python exits.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
