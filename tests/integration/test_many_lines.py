"""The report on a file of many calls: what it takes of time and memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
from made_calls import made_lines
from needs_posix import needs_posix

LINES = 100_000
MADE = 2500
PROGRAM = """
import resource, sys
from aioretry_smithy.__main__ import main
assert 0 == main(["report", sys.argv[1], "--json"])
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss >> 10, file=sys.stderr)
"""


@pytest.mark.long
@pytest.mark.release
@needs_posix("the memory of a process")
def test_a_hundred_thousand_lines(tmp_path):
    """They are counted within 20 seconds of a processor and 150 MB."""
    calls = tmp_path / "calls.jsonl"
    lines = made_lines(MADE)
    made = "".join(f"{line.rstrip()}\n" for line in lines)
    calls.write_text(made * (LINES // len(lines)))

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(calls)],
        check=True,
        capture_output=True,
        text=True,
    )

    seconds, megabytes = map(float, ran.stderr.split()[-2:])
    assert seconds < 20
    assert megabytes < 150
