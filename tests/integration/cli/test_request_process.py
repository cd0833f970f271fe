"""``request`` in a process of its own: shells, readers who leave, full disks."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import WITHOUT_RICH, needs_posix, nobody, run, written_to

pytestmark = pytest.mark.slow

MODULE = [sys.executable, "-m", "aioretry_smithy"]
# Shells start background jobs with Ctrl-C ignored, and children inherit that.
WITH_CTRL_C = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "runpy.run_module('aioretry_smithy', run_name='__main__')"
)
PLAIN = [sys.executable, "-c", WITHOUT_RICH]


def run_process(arguments, stdout, stderr):
    """Run the command in a process, with standard output and error of its own."""
    with os.fdopen(stdout, "w") as out, os.fdopen(stderr, "w") as err:
        command = [*MODULE, *arguments]
        process = subprocess.run(
            command, check=False, stdout=out, stderr=err, timeout=120
        )
    return process.returncode


@pytest.mark.parametrize(
    ("arguments", "code", "out"),
    [
        (["/fine"], 0, b"fine\n"),
        (["/nothing"], 1, b"nothing here\n"),
        (["/half"], 2, b"half"),
        (["/fine", "-X", "GE T"], 64, b""),
    ],
)
def test_shell_sees_code_and_body(arguments, code, out, server):
    """A real process ends with the code, and its standard output is the body."""
    path, *options = arguments
    command = [*MODULE, "request", server.url + path, *options]
    process = subprocess.run(command, capture_output=True, check=False, timeout=120)

    assert code == process.returncode
    assert out == process.stdout
    assert b"Traceback" not in process.stderr


def test_shell_without_rich_sees_the_same(server):
    """The extra is optional: without it the tree is as good."""
    command = [*PLAIN, "request", f"{server.url}/fine"]
    process = subprocess.run(command, capture_output=True, check=False, timeout=120)

    assert 0 == process.returncode
    assert b"fine\n" == process.stdout
    assert "└─ 1  200 OK" in process.stderr.decode()


def test_reader_may_leave_early(server):
    """As before ``| head -c 1``: the rest is not wanted, and nobody complains."""
    command = [*MODULE, "request", f"{server.url}/large"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        first = process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read().decode()

    assert b"\0" == first
    assert 0 == process.returncode
    assert ["GET", "└─ "] == [line[:3] for line in err.splitlines()]


@pytest.mark.parametrize(
    ("path", "code"), [("fine", 0), ("nothing", 1)], ids=["success", "failure"]
)
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_reader_who_left_changes_no_exit_code(path, code, options, server):
    """The exit code tells of the call, though nobody reads its log."""
    arguments = ["request", f"{server.url}/{path}", *options]
    ended = run(arguments, nobody(), nobody())

    assert code == ended


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("ran", "arguments", "stream", "code"),
    [
        (run, ["/fine"], "stderr", 73),
        (run, ["/nothing"], "stderr", 1),
        (run, ["/fine"], "stdout", 73),
        (run, ["/large"], "stdout", 73),
        (run, ["/nothing"], "stdout", 1),
        (run_process, ["/fine"], "stdout", 73),
        (run_process, ["/fine", "--json"], "stdout", 73),
        (run, ["/nothing", "--json"], "stdout", 1),
        (run, ["nonsense"], "stderr", 64),
    ],
)
def test_full_disk_is_told_by_the_exit_code(
    ran, arguments, stream, code, server, tmp_path
):
    """No traceback, and the code of an error status stays."""
    arguments = [f"{server.url}{a}" if a.startswith("/") else a for a in arguments]
    files = {"stdout": tmp_path / "out", "stderr": tmp_path / "err"}
    files[stream].symlink_to("/dev/full")
    ended = ran(["request", *arguments], *map(written_to, files.values()))

    assert code == ended
    said = "".join(each.read_text() for each in files.values() if not each.is_symlink())
    assert "Traceback" not in said
    if stream == "stdout":
        assert 1 == said.count("error: [Errno 28] No space left on device")


@needs_posix("Ctrl-C for one process")
def test_ctrl_c_leaves_no_traceback(server):
    """A real process that is interrupted ends with 130 and without a fuss."""
    command = [sys.executable, "-c", WITH_CTRL_C, "request", f"{server.url}/silence"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert server.asked.wait(120)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)

    assert 130 == process.returncode
    assert b"" == out
    assert b"Traceback" not in err
