"""The report on a file of many calls: what it takes of time and memory."""

import subprocess
import sys
from pathlib import Path

import pytest
from counted_again import made_lines

LINES = 100_000
MADE = 2500
STATUS = Path("/proc/self/status")
PROGRAM = r"""
import re, sys, time
from pathlib import Path
from aioretry_smithy.__main__ import main
assert 0 == main(["report", sys.argv[1], "--json"])
used = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
print(time.process_time(), int(used[1]) >> 10, file=sys.stderr)
"""


@pytest.mark.long
@pytest.mark.release
@pytest.mark.skipif(not STATUS.exists(), reason="needs /proc")
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
