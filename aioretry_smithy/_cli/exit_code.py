"""Name the exit codes of the commands."""

from __future__ import annotations

from enum import IntEnum


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

    CANNOT_WRITE = 73
    """All was well, but the timeline or the text for people could not be written.

    ``EX_CANTCREAT`` of sysexits.
    """

    INTERRUPTED = 130
    """Ctrl-C, as shells report it."""
