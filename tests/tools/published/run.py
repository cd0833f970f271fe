"""Build what is published, check it, and run tests from the source archive.

The tests of the archive meet the package that is installed, not this checkout::

    python tests/tools/published/run.py FOLDER [ARGUMENTS OF PYTEST ...]
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
RELATIVE = r"^\.\. (?:image|figure):: (?!https:).*|<(?!https:)\S+>`_|``docs/\S+``"
"""Pictures, links and paths that lead nowhere on the page of the package index."""


def run(*arguments: str, cwd: Path = CHECKOUT) -> None:
    """Run a module of this Python, or end with its exit code."""
    process = subprocess.run([sys.executable, "-m", *arguments], check=False, cwd=cwd)
    if process.returncode:
        sys.exit(process.returncode)


def main(folder: str, *arguments: str) -> None:
    """Build into a folder, check the page of the index, test what was packed."""
    work = Path(folder).absolute()
    run("build", "--outdir", str(work / "dist"))
    archives = sorted((work / "dist").iterdir())
    run("twine", "check", "--strict", *map(str, archives))
    (source,) = (each for each in archives if each.suffix == ".gz")
    with tarfile.open(source) as archive:
        archive.extractall(work, filter="data")
    unpacked = work / source.name.removesuffix(".tar.gz")
    page = (unpacked / "PKG-INFO").read_text(encoding="utf-8")
    if relative := re.findall(RELATIVE, page, re.MULTILINE):
        sys.exit(f"not on the package index: {relative}")
    # Nothing that the tests need is missing, also not of those that are not run.
    run("pytest", "--collect-only", "--quiet", "--quiet", "tests", cwd=unpacked)
    run("pytest", *arguments, cwd=unpacked)


if __name__ == "__main__":
    main(*sys.argv[1:])
