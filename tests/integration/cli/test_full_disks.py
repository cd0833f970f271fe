"""Each command on a disk that is full: it says so, by its exit code too."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_lines import call

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full"),
]

OUTAGE = ["--duration=6", "--outage=1:2:0.2", "--clients=2", "--rate=20"]


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["demo"],
        ["demo", "--json"],
        ["simulate", *OUTAGE],
        ["simulate", "--json", *OUTAGE],
        ["report", "calls.jsonl"],
        ["report", "calls.jsonl", "--json"],
        ["--help"],
        ["report", "--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_full_disk(arguments, unbuffered, tmp_path):
    """One line says why, and nothing else comes of it when Python exits."""
    (tmp_path / "calls.jsonl").write_text(f"{json.dumps(call())}\n")
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            [sys.executable, "-m", "aioretry_smithy", *arguments],
            check=False, stdout=full, stderr=subprocess.PIPE, timeout=120,
            cwd=tmp_path, env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip

    assert 73 == process.returncode
    expected = "aioretry-smithy: error: [Errno 28] No space left on device\n"
    assert expected == process.stderr.decode()
