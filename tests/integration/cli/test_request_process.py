"""``request`` and other commands in processes of their own, and on full disks."""

import asyncio
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import WITHOUT_RICH, needs_posix, nobody, run, written_to
from made_lines import call

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_shell_without_rich_sees_the_same(server):
    """The extra is optional: without it the tree is as good."""
    command = [*PLAIN, "request", f"{server.url}/fine"]
    process = subprocess.run(command, capture_output=True, check=False, timeout=120)

    assert 0 == process.returncode
    assert b"fine\n" == process.stdout
    assert "└─ 1  200 OK" in process.stderr.decode()


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "code"), [("fine", 0), ("nothing", 1)], ids=["success", "failure"]
)
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_reader_who_left_changes_no_exit_code(path, code, options, server):
    """The exit code tells of the call, though nobody reads its log."""
    arguments = ["request", f"{server.url}/{path}", *options]
    ended = run(arguments, nobody(), nobody())

    assert code == ended


@pytest.mark.slow
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


@pytest.mark.slow
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


OUTAGE = ["--duration=6", "--outage=1:2:0.2", "--clients=2", "--rate=20"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
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


CHAINS = """
from aioretry_smithy import SessionBuilder

def chain():
    print("made", flush=True)
    return SessionBuilder.standard()
"""
HEARS_CTRL_C = """
import runpy, signal

# A shell lets what it runs in the background ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("aioretry_smithy", run_name="__main__", alter_sys=True)
"""
PATIENCE = 20.0
"""Seconds to end in, on a machine that is busy; to make all clients takes minutes."""


@pytest.mark.slow
@needs_posix("Ctrl-C for one process")
@pytest.mark.parametrize("made", [1, 300])
async def test_ctrl_c_ends_it_while_the_clients_are_made(tmp_path, made):
    """At once, with the exit code that other commands have, and without a word."""
    file = tmp_path / "chains.py"
    file.write_text(CHAINS)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HEARS_CTRL_C),
        *("simulate", f"{file}:chain", "--clients", "100000"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    for _ in range(made):
        assert b"made\n" == await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(PATIENCE):
            _, errors = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()

    assert (130, b"") == (process.returncode, errors)


TITLES = [
    "503 twice",
    "silence",
    "reset",
    "429",
    "outage",
    "circuit open",
    "still open",
    "trial",
    "recovered",
    "replica dies",
]


@pytest.fixture
def text(demo_run):
    """Return the demo's output for people."""
    return demo_run.text


@pytest.fixture
def logs(demo_run):
    """The logs of the calls by their titles, as a machine reads them."""
    calls = json.loads(demo_run.json)["calls"]
    return {call["title"]: call["log"] for call in calls}


def statuses(log):
    return [attempt["response_status"] for attempt in log["children"]]


@pytest.mark.slow
def test_demo_is_over_soon(demo_run):
    """The demo is short, and prints nothing besides."""
    assert demo_run.seconds < 30
    assert "" == demo_run.errors


@pytest.mark.slow
def test_every_call_is_a_tree(text):
    """Each title is followed by the headline of its call and by its attempts."""
    lines = text.splitlines()
    headlines = {
        line.partition(":")[0]: following
        for line, following in itertools.pairwise(lines)
        if following.startswith("GET http://127.0.0.1:")
    }

    assert TITLES == [*headlines]
    assert 8 == text.count("├─")
    assert 10 == text.count("└─")


@pytest.mark.slow
def test_closing_table_has_a_row_for_each_call(text):
    """The table at the end names every call and why it stopped."""
    table = text.rpartition("why it stopped")[2].splitlines()
    rows = [row for row in table if row.startswith(tuple(TITLES))]

    assert len(TITLES) == len(rows)
    assert [7, 1, 2] == [
        sum(row.rstrip().endswith(why) for row in rows)
        for why in ("success", "max_total_attempts", "refused")
    ]


@pytest.mark.slow
def test_attempts_fail_and_wait_as_their_titles_say(logs):
    """Waits double, limits cut, hints are obeyed, and another replica answers."""
    log = logs["503 twice"]
    assert [503, 503, 200] == statuses(log)
    assert [0.1, 0.2, None] == [attempt["delay"] for attempt in log["children"]]

    first, second = logs["silence"]["children"]
    assert "AttemptTimeoutError: attempt 1 had 0.500 s" == first["response_cause"]
    assert 0.5 <= first["duration"] < 5
    assert 200 == second["response_status"]

    assert "reset" in logs["reset"]["children"][0]["response_cause"]
    assert [None, 200] == statuses(logs["reset"])

    first, _ = logs["429"]["children"]
    assert "retry_after" == first["delay_source"]
    assert 1.0 <= first["delay"] < 1.5

    log = logs["replica dies"]
    first, second = log["children"]
    assert [None, 200] == statuses(log)
    assert 0.0 == first["delay"]
    assert first["endpoint"] != second["endpoint"] == log["endpoint"]


@pytest.mark.slow
def test_circuit_opens_refuses_tries_and_closes(logs):
    """Refused calls take no time, and one trial after the open window closes it."""
    assert [200, 200] == [logs[each]["response_status"] for each in TITLES[7:9]]
    for title in ("circuit open", "still open"):
        assert "circuit breaker 'demo' is open" in logs[title]["response_cause"]
        assert logs[title]["duration"] < 1.0
