"""The command line: ``python -m aioretry_smithy``, or ``aioretry-smithy``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from ._cli.arguments import parse
from ._cli.demo import demo
from ._cli.options import UsageError
from ._cli.output import ExitCode, cannot_write, complain, flush
from ._cli.report import report
from ._cli.request import request
from ._cli.simulate import simulate

_IN_A_LOOP = {"demo": demo, "request": request}
_WITHOUT_LOOP = {"report": report, "simulate": simulate}  # that has some of its own


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, by default that of the process, and return its exit code."""
    code = ExitCode.OK
    try:
        code = _run(argv)
        flush()
    except OSError as error:
        failed = cannot_write(error)
        code = code or failed
    return int(code)


def _run(argv: Sequence[str] | None) -> ExitCode:
    try:
        arguments = parse(argv)
        if arguments.command in _WITHOUT_LOOP:
            return _WITHOUT_LOOP[arguments.command](arguments)
        return asyncio.run(_IN_A_LOOP[arguments.command](arguments))
    except SystemExit as stop:
        # Otherwise help was asked for, or the version.
        return ExitCode.USAGE if stop.code == ExitCode.USAGE else ExitCode.OK
    except UsageError as error:
        complain(str(error))
        return ExitCode.USAGE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
