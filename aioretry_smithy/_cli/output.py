"""Standard output and standard error, whatever stands behind them."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, TextIO

from .._render import printable
from .plain_output import PlainOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    """Write a line about what went wrong to standard error."""
    PlainOutput(sys.stderr).line(f"{PROGRAM}: error: {printable(message)}")


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


@contextlib.contextmanager
def reader_may_leave() -> Iterator[None]:
    """Let whoever reads standard output, such as ``head``, stop early."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _give_up()


def _give_up() -> None:
    # What is left in the buffer would fail once more when Python exits.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
