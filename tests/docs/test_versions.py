"""What the pages say of versions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIRST = 0, 3
"""The first release: what it has, needs no mark."""


def test_marks_name_versions_after_the_first_release():
    """Nobody met an older one, and nobody knows what comes after the next."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    major, minor, *_ = re.findall(r"\d+", metadata["project"]["version"])
    following = int(major), int(minor) + 1
    wrong = [
        (path.name, mark)
        for folder, suffix in (("docs", "rst"), ("aioretry_smithy", "py"))
        for path in sorted((ROOT / folder).rglob(f"*.{suffix}"))
        for mark, *version in re.findall(
            r"(\.\. (?:version\w+|deprecated):: *(\d+)\.(\d+))",
            re.sub(r"``[^`]+``", "", path.read_text(encoding="utf-8")),
        )
        if not FIRST < (int(version[0]), int(version[1])) <= following
    ]

    assert [] == wrong
