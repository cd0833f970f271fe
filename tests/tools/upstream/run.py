"""Run aiohttp's own client tests bare and through chains that retry nothing.

Each test must end in the three runs alike. The tests come with the source archive of
the aiohttp that is installed; none of them is kept here::

    python tests/tools/upstream/run.py [tests/test_client_session.py ...]
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
CHAINS = ("none", "no-op", "full")

SELECTION = (
    "test_client_*.py",
    "test_connector.py",
    "test_cookiejar.py",
    "test_formdata.py",
    "test_leaks.py",
    "test_proxy*.py",
    "test_run_app.py",
    "test_test_utils.py",
    "test_tracing.py",
    # Tests of servers, each of them asked through a session.
    "test_web_functional.py",
    "test_web_sendfile_functional.py",
    "test_web_server.py",
    "test_web_websocket_functional.py",
)
"""The tests that use a session.

``test_leaks.py`` starts processes of its own: ``sitecustomize.py`` reaches them.
"""

_LOOKED_UP_LATE = (
    "expects ClientSession._request to be called before the call is awaited;"
    " the chain calls it when the turn comes to aiohttp"
)
KNOWN = {
    "tests/test_client_session.py::test_http_GET[pyloop]": _LOOKED_UP_LATE,
    "tests/test_client_session.py::test_http_OPTIONS[pyloop]": _LOOKED_UP_LATE,
    "tests/test_client_session.py::test_http_HEAD[pyloop]": _LOOKED_UP_LATE,
    "tests/test_client_session.py::test_http_POST[pyloop]": _LOOKED_UP_LATE,
    "tests/test_client_session.py::test_http_PUT[pyloop]": _LOOKED_UP_LATE,
    "tests/test_client_session.py::test_http_PATCH[pyloop]": _LOOKED_UP_LATE,
    "tests/test_client_session.py::test_http_DELETE[pyloop]": _LOOKED_UP_LATE,
    "tests/test_client_session.py::test_proxy_str[pyloop]": _LOOKED_UP_LATE,
}
"""The tests that end differently by their own making, and why."""
VERSION = importlib.metadata.version("aiohttp")
if VERSION.startswith(("3.12.", "3.13.")):
    KNOWN[
        "tests/test_client_functional.py::test_async_iterable_payload_redirect[pyloop]"
    ] = (
        "expects a stream that was read to go on after a redirect as an empty body;"
        " the chain sends bodies whole or not at all"
    )

OPTIONS = (
    *("-o", "addopts=", "--quiet", "--tb=short"),
    *("-m", "not dev_mode and not autobahn and not internal"),
    *("-p", "chain_plugin"),
    # The suite brings a plugin of its own for async tests.
    *("-p", "no:aiohttp", "-p", "no:asyncio"),
    *("-p", "no:cacheprovider"),
)


def main(arguments):
    """Run, compare and report; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        root = fetch(VERSION, Path(folder))
        tests = arguments or selected(root)
        runs = {chain: run(root, chain, tests) for chain in CHAINS}
        unsteady = {
            chain: settle(root, chain, runs["none"], runs[chain])
            for chain in CHAINS[1:]
        }
    return report(VERSION, runs, unsteady)


def fetch(version, folder):
    """Download the source archive and unpack it, but for the package itself."""
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
    wanted = ("--no-binary", "aiohttp", f"aiohttp=={version}")
    subprocess.run([*pip, *wanted, "--dest", str(folder)], check=True)
    name = f"aiohttp-{version}"
    with tarfile.open(folder / f"{name}.tar.gz") as archive:
        # The package that is installed is the one to test.
        members = [
            member
            for member in archive
            if not member.name.startswith((f"{name}/aiohttp/", f"{name}/vendor/"))
        ]
        archive.extractall(folder, members, filter="data")
    return folder / name


def selected(root):
    """Return the files of the selection that this version of aiohttp has."""
    files = [path for name in SELECTION for path in root.glob(f"tests/{name}")]
    return [str(path.relative_to(root)) for path in sorted(set(files))]


def run(root, chain, tests, *options):
    """Run tests through a chain and return how each of them ended."""
    outcomes = root / "outcomes.json"
    outcomes.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[2])]),
        "AIORETRY_SMITHY_UPSTREAM_CHAIN": chain,
        "AIORETRY_SMITHY_UPSTREAM_OUTCOMES": str(outcomes),
    }
    parallel = options or ("--numprocesses=auto",)
    print(f"== chain: {chain}, tests: {len(tests)} files or single ones", flush=True)
    pytest = [sys.executable, "-m", "pytest", *OPTIONS, *parallel, *tests]
    status = subprocess.run(pytest, cwd=root, env=environment, check=False).returncode
    if status not in {0, 1} or not outcomes.exists():
        raise SystemExit(f"pytest did not get through, exit code {status}")
    return json.loads(outcomes.read_text("utf-8"))


def settle(root, chain, bare, chained):
    """Run what differs once more, one by one; return what then does not."""
    tests = [test for test in differing(bare, chained) if test not in KNOWN]
    if not tests:
        return []
    bare_again = run(root, "none", tests, "--numprocesses=0")
    chained_again = run(root, chain, tests, "--numprocesses=0")
    still = differing(bare_again, chained_again)
    steady = [test for test in tests if test not in still]
    for test in steady:
        chained[test] = bare[test]
    return steady


def differing(bare, chained):
    """Return the tests that did not end alike."""
    tests = {**bare, **chained}
    return [test for test in tests if bare.get(test) != chained.get(test)]


def report(version, runs, unsteady):
    """Print the differences and return the exit code: 1 if one is not known."""
    bare = runs["none"]
    bad = 0
    print(f"\naiohttp {version}, each test bare and through a chain")
    for chain in CHAINS[1:]:
        different = differing(bare, runs[chain])
        known = [test for test in different if test in KNOWN]
        outdated = [test for test in KNOWN if test in bare and test not in known]
        unknown = [test for test in different if test not in KNOWN]
        bad += len(unknown) + len(outdated)
        print(
            f"{chain}: {len(bare)} tests, {len(bare) - len(different)} alike,"
            f" {len(known)} different by their own making, {len(unknown)} different"
        )
        for test in unsteady[chain]:
            print(f"  unsteady, alike when run again: {test}")
        for test in outdated:
            print(f"  no longer different, take it off the list: {test}")
        for test in unknown:
            ways = bare.get(test, "not run"), runs[chain].get(test, "not run")
            print(f"  {test}: {' -> '.join(way or 'passed' for way in ways)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
