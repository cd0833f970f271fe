"""Build what is published twice, check it, install it, and run its own tests.

The two builds have to be equal byte for byte. The tests of the source archive meet the
package that is installed, not this checkout::

    python tests/tools/published/run.py FOLDER [ARGUMENTS OF PYTEST ...]
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
STRANGER = Path(__file__).with_name("stranger.py")
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
"""Each of them that is on this machine gets the wheel, and nothing else."""

RELATIVE = r"^\.\. (?:image|figure):: (?!https:).*|<(?!https:)\S+>`_|``docs/\S+``"
"""Pictures, links and paths that lead nowhere on the page of the package index."""


def run(*arguments, cwd=CHECKOUT, **options):
    """Run a module of this Python, or end with its exit code."""
    command = [sys.executable, "-m", *arguments]
    process = subprocess.run(command, check=False, cwd=cwd, **options)
    if process.returncode:
        sys.exit(process.returncode)


def build(source, into, **options):
    """Build both archives and return where they are."""
    run("build", "--installer=uv", f"--outdir={into}", cwd=source, **options)
    return sorted(into.glob("*.tar.gz")) + sorted(into.glob("*.whl"))


def files():
    """List what a clone of this checkout has, as it is now."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=CHECKOUT, check=True, stdout=subprocess.PIPE)
    names = filter(None, listed.stdout.decode().split("\0"))
    return [name for name in names if (CHECKOUT / name).is_file()]


def copy(to):
    """Copy the checkout as if it were cloned elsewhere, earlier, by somebody else."""
    for name in files():
        copied = to / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(CHECKOUT / name, copied)
        # Whether a file may be run is of git; who else may read it is not.
        copied.chmod(0o600 | (CHECKOUT / name).stat().st_mode & 0o100)
        os.utime(copied, (1_000_000_000, 1_000_000_000))
    return to


def check_that_builds_are_equal(archives, work):
    """Build once more, from other files at another time, and compare."""
    if not (CHECKOUT / ".git").exists():
        print("skipped: the second build, which takes its files from a clone")
        return
    elsewhere = {**os.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C"}
    again = build(copy(work / "copy"), work / "again", env=elsewhere, umask=0o077)
    differing = [
        one.name
        for one, other in zip(archives, again, strict=True)
        if (one.name, one.read_bytes()) != (other.name, other.read_bytes())
    ]
    if differing:
        sys.exit(f"not equal in a second build: {differing}")
    print("equal in two builds:", *(archive.name for archive in archives))


def install_on(python, wheel, work):
    """Install the wheel alone, run the README's first example, and say how it went."""
    search = [sys.executable, "-m", "uv", "python", "find", "--no-python-downloads"]
    found = subprocess.run(
        [*search, python], capture_output=True, check=False, cwd=work, text=True
    )
    if found.returncode:
        return f"skipped: Python {python} is not on this machine"
    folder = work / f"python{python}"
    uv = [sys.executable, "-m", "uv", "--quiet"]
    inside = folder / ("Scripts" if os.name == "nt" else "bin")
    own = str(inside / "python")
    for command in (
        [*uv, "venv", "--clear", "--python", found.stdout.strip(), str(folder)],
        [*uv, "pip", "install", "--python", own, str(wheel)],
        [*uv, "pip", "check", "--python", own],
        [str(inside / "aioretry-smithy"), "--version"],
        # Isolated, so that nothing else is there to be imported.
        [own, "-I", str(STRANGER), str(CHECKOUT / "README.rst")],
    ):
        done = subprocess.run(
            command,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=work,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode:
            return f"failed on Python {python}: {command}\n{done.stdout}"
    return f"installed on Python {python}: the README's first example runs"


def check_installs(wheel, work):
    """Install the wheel in an empty environment of each Python."""
    with ThreadPoolExecutor() as pool:
        told = list(pool.map(lambda each: install_on(each, wheel, work), PYTHONS))
    print(*told, sep="\n")
    if any(line.startswith("failed") for line in told):
        sys.exit(1)
    if not any(line.startswith("installed") for line in told):
        sys.exit("no Python was found to install on")


def unpack(source, work):
    """Unpack the source archive and return its folder."""
    with tarfile.open(source) as archive:
        archive.extractall(work, filter="data")
    return work / source.name.removesuffix(".tar.gz")


def main(folder, *arguments):
    """Build into a folder, check the page of the index, install and test the rest."""
    work = Path(folder).absolute()
    shutil.rmtree(work, ignore_errors=True)
    source, wheel = archives = build(CHECKOUT, work / "dist")
    check_that_builds_are_equal(archives, work)
    run("twine", "check", "--strict", *map(str, archives))
    run("check_wheel_contents", str(wheel))
    check_installs(wheel, work)
    unpacked = unpack(source, work)
    page = (unpacked / "PKG-INFO").read_text(encoding="utf-8")
    if relative := re.findall(RELATIVE, page, re.MULTILINE):
        sys.exit(f"not on the package index: {relative}")
    # Nothing that the tests need is missing, also not of those that are not run.
    run("pytest", "--collect-only", "--quiet", "--quiet", "tests", cwd=unpacked)
    run("pytest", *arguments, cwd=unpacked)


if __name__ == "__main__":
    main(*sys.argv[1:])
