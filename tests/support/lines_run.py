"""Count the lines of Python that a function runs: the same on every machine."""

from __future__ import annotations

import sys


def lines_run(function):
    """Count the lines of Python that a call of *function* runs."""
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return lines
