"""``request --timeline``: the picture is drawn, or nothing is sent."""

import os

import pytest
from command_line import needs_posix, nobody, run, written_to

from aioretry_smithy.__main__ import main

FAST = ["--backoff", "fixed=1ms,jitter=0"]


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("flaky", 0, "200 OK"),
        ("nothing", 1, "404 Not Found"),
        ("half", 2, "200 OK, ClientPayloadError"),
    ],
)
def test_timeline_is_drawn_whatever_became_of_the_call(
    path, code, said, server, tmp_path, capsys
):
    """The picture shows the attempts, and the last line says where it is."""
    file = tmp_path / "call.svg"
    ended = main(["request", f"{server.url}/{path}", *FAST, "--timeline", str(file)])
    lines = capsys.readouterr().err.splitlines()

    assert code == ended
    assert said in file.read_text(encoding="utf-8")
    assert f"timeline: {file}" in lines


@needs_posix("Ctrl-C for one thread")
@pytest.mark.usefixtures("ctrl_c_works")
def test_timeline_of_a_call_that_was_interrupted(server, tmp_path):
    """A user who interrupts may want to see why it took so long."""
    file = tmp_path / "call.svg"
    code = main(["request", f"{server.url}/interrupt", "--timeline", str(file)])

    assert 130 == code
    assert "CancelledError" in file.read_text(encoding="utf-8")


@needs_posix("links that everybody may make")
@pytest.mark.parametrize(("path", "code"), [("fine", 73), ("nothing", 1)])
def test_timeline_that_cannot_be_written(path, code, server, tmp_path, capsys):
    """The call counts for more; the body and the tree are there all the same."""
    file = tmp_path / "call.svg"
    file.symlink_to(tmp_path / "missing" / "call.svg")
    ended = main(["request", f"{server.url}/{path}", "--timeline", str(file)])
    out, err = capsys.readouterr()

    assert code == ended
    assert path.partition("_")[0] in out
    assert "└─ 1" in err
    assert "aioretry-smithy: error: --timeline: " in err


def test_timeline_is_there_when_nobody_reads_the_tree(server, tmp_path):
    """Standard error may be a pipe that is closed; the picture was asked for."""
    file = tmp_path / "call.svg"
    arguments = ["request", f"{server.url}/fine", "--timeline", str(file)]
    run(arguments, written_to(os.devnull), nobody())

    assert "200 OK" in file.read_text(encoding="utf-8")


def test_name_of_a_timeline_is_one_line(server, tmp_path, capsys):
    """No text in it can pass for another line."""
    file = tmp_path / "a\nb.svg"
    main(["request", f"{server.url}/fine", "--timeline", str(file)])

    assert r"a\nb.svg" in capsys.readouterr().err.splitlines()[-1]


def test_request_is_not_sent_for_a_timeline_that_has_no_place(server, tmp_path, capsys):
    """A directory that is missing is bad usage, and found out at once."""
    file = tmp_path / "missing" / "call.svg"
    code = main(["request", f"{server.url}/fine", "--timeline", str(file)])

    assert 64 == code
    assert [] == server.seen
    assert 1 == len(capsys.readouterr().err.splitlines())
