"""``request``: bodies, logs, exit codes, and pictures of a timeline."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
from command_line import WITHOUT_RICH, needs_posix, nobody, run, written_to

from aioretry_smithy.__main__ import main

FAST = ["--backoff", "fixed=1ms,jitter=0"]
MODULE = [sys.executable, "-m", "aioretry_smithy"]
PLAIN = [sys.executable, "-c", WITHOUT_RICH]


def test_body_and_log_go_separate_ways(server, capfdbinary):
    """The body alone is on standard output, the tree alone on standard error."""
    code = main(["request", f"{server.url}/flaky", *FAST])
    out, err = capfdbinary.readouterr()
    first, second, headline, *attempts = err.decode().splitlines()

    assert 0 == code
    assert b"200\n" == out
    assert first.startswith("attempt 1: 503 Service Unavailable, 0.")
    assert second.startswith("attempt 2: 503 Service Unavailable, 0.")
    assert headline.startswith(f"GET {server.url}/flaky  ->  200 OK  in ")
    assert ["├─ 1  503", "├─ 2  503", "└─ 3  200"] == [line[:9] for line in attempts]


@pytest.mark.parametrize(
    ("path", "body"), [("nothing", b"nothing here\n"), ("busy", b"busy\n")]
)
def test_http_error_is_1_and_keeps_its_body(path, body, server, capsysbinary):
    """A final status from 400 on is told by the exit code; its body is not lost."""
    arguments = [*FAST, "--max-total-attempts", "2"]
    code = main(["request", f"{server.url}/{path}", *arguments])

    assert 1 == code
    assert body == capsysbinary.readouterr().out


def test_no_response_is_2(capsys):
    """Without a response there is the log, and the failure in one line."""
    arguments = [*FAST, "--max-total-attempts", "2"]
    code = main(["request", "http://user:hunter2@127.0.0.1:1/", *arguments])
    out, err = capsys.readouterr()
    first, second, *tree, last = err.splitlines()

    assert 2 == code
    assert "" == out
    assert first.startswith("attempt 1: ClientConnectorError: ")
    assert second.startswith("attempt 2: ClientConnectorError: ")
    assert 3 == len(tree)
    assert last.startswith("aioretry-smithy: error: ClientConnectorError: Cannot ")
    assert "hunter2" not in err


def test_half_a_body_is_2(server, capsysbinary):
    """The part of a body that came before it broke off is kept; the exit code tells."""
    code = main(["request", f"{server.url}/half"])
    out, err = capsysbinary.readouterr()

    assert 2 == code
    assert b"half" == out
    assert b"aioretry-smithy: error: ClientPayloadError" in err


@pytest.mark.slow
def test_attempts_are_shown_as_they_end(server):
    """The failure is shown while the wait for the next attempt goes on."""
    command = [*MODULE, "request", f"{server.url}/busy", "--backoff", "fixed=60s"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        line = process.stderr.readline().decode()
        is_running = process.poll() is None
        process.kill()

    assert line.startswith("attempt 1: 503 Service Unavailable, 0.")
    assert is_running


def test_attempt_that_succeeds_is_shown_once(server, capsys):
    """A call without trouble is its tree, as the tree follows at once."""
    main(["request", f"{server.url}/fine"])

    assert ["GET", "└─ "] == [line[:3] for line in capsys.readouterr().err.splitlines()]


def test_attempts_are_made_though_nobody_reads_of_them(server, tmp_path):
    """A closed standard error does not count as a failure of the server."""
    out = tmp_path / "out"
    run(["request", f"{server.url}/flaky", *FAST], written_to(out), nobody())

    assert "200\n" == out.read_text()
    assert 3 == len(server.seen)


def on_a_terminal(command):
    """Run a command on a terminal of its own and return what it shows."""
    controller, terminal = os.openpty()
    with subprocess.Popen(command, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        # Linux says so with an error when nobody has the terminal any more.
        with contextlib.suppress(OSError):
            while chunk := os.read(controller, 4096):
                shown += chunk
    os.close(controller)
    assert process.returncode is not None
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.slow
@needs_posix("terminals that are made by programs")
@pytest.mark.parametrize(("path", "body"), [("half", "half"), ("fine", "fine")])
def test_log_begins_a_line_on_a_terminal(path, body, server):
    """It is not glued to a body that does not end its line, nor is the prompt."""
    shown = on_a_terminal([*PLAIN, "request", f"{server.url}/{path}"])

    assert shown.startswith(f"{body}\nGET {server.url}/{path}  ->  ")
    assert shown.endswith("\n")


def test_json_is_the_log(server, capsys):
    """Standard output is one document, and nothing of the body."""
    code = main(["request", f"{server.url}/flaky", "--json", *FAST])
    out, err = capsys.readouterr()
    log = json.loads(out)

    assert 0 == code
    assert "" == err
    assert f"{server.url}/flaky" == log["request_url"]
    assert [503, 503, 200] == [each["response_status"] for each in log["children"]]
    assert log["is_complete"]
    assert len("200\n") == log["response_length"]


@pytest.mark.parametrize(
    ("path", "code", "cause"),
    [
        ("nothing", 1, None),
        ("half", 2, "ClientPayloadError"),
        ("silence", 2, "ResponseTimeoutError"),
    ],
)
def test_json_of_a_call_that_failed(path, code, cause, server, capsys):
    """The document says so; exit codes and errors are those of any request."""
    arguments = ["--json", "--response-timeout", "0.5"]
    ended = main(["request", f"{server.url}/{path}", *arguments])
    out, err = capsys.readouterr()
    told = json.loads(out)["response_cause"]

    assert code == ended
    assert cause == (told and told.partition(":")[0])
    assert (cause is not None) == err.startswith("aioretry-smithy: error: ")


@needs_posix("Ctrl-C for one thread")
@pytest.mark.usefixtures("ctrl_c_works")
def test_json_of_a_call_that_was_interrupted(server, capsys):
    """A user who interrupts gets the document all the same."""
    code = main(["request", f"{server.url}/interrupt", "--json"])

    assert 130 == code
    assert "cancelled" == json.loads(capsys.readouterr().out)["stop_reason"]


def test_json_and_a_timeline(server, tmp_path, capsys):
    """Standard output stays one document; the picture has a line on the other."""
    file = tmp_path / "call.svg"
    code = main(["request", f"{server.url}/fine", "--json", "--timeline", str(file)])
    out, err = capsys.readouterr()

    assert 0 == code
    assert 200 == json.loads(out)["response_status"]
    assert f"timeline: {file}\n" == err


def test_data_implies_post_and_a_form(server, capsys):
    """As with curl: data is a form and is posted, repeated data is joined."""
    code = main(["request", f"{server.url}/echo", "-d", "a=1", "-d", "b=2"])
    method, headers, body = json.loads(capsys.readouterr().out)

    assert 0 == code
    assert "POST" == method
    assert "application/x-www-form-urlencoded" == headers["Content-Type"]
    assert "a=1&b=2" == body


def test_method_and_headers_of_the_caller_win(server, capsys):
    """Options given outright are not overruled by what data implies."""
    main(
        [
            *("request", f"{server.url}/echo", "-X", "patch", "-d", "{}"),
            *("-H", "content-type: application/json", "-H", "X-Empty:"),
        ]
    )
    method, headers, body = json.loads(capsys.readouterr().out)

    assert "PATCH" == method
    assert "application/json" == headers["content-type"]
    assert "Content-Type" not in headers
    assert "" == headers["X-Empty"]
    assert "{}" == body


@pytest.mark.parametrize(
    ("strategy", "method", "requests"),
    [
        ("never", "GET", 1),
        ("failsafe", "DELETE", 3),
        ("failsafe", "POST", 1),
        ("on-server-error-status", "POST", 3),
        ("on-unprocessed", "GET", 1),
    ],
)
def test_strategy_decides(strategy, method, requests, server):
    """Each name stands for the strategy of that name."""
    arguments = ["-X", method, "--strategy", strategy, "--max-total-attempts", "3"]
    code = main(["request", f"{server.url}/busy", *arguments, *FAST])

    assert 1 == code
    assert requests == len(server.seen)


def test_attempt_timeout_cuts_each_attempt(server, capsys):
    """A silent server is asked as often as allowed."""
    arguments = ["--attempt-timeout", "0.05", "--max-total-attempts", "2"]
    code = main(["request", f"{server.url}/silence", *arguments, *FAST])

    assert 2 == code
    assert 2 == len(server.seen)
    assert "stopped: max_total_attempts" in capsys.readouterr().err


def test_response_timeout_ends_the_call(server, capsys):
    """The limit of the whole call is told as such."""
    code = main(["request", f"{server.url}/silence", "--response-timeout", "0.05"])

    assert 2 == code
    assert "aioretry-smithy: error: ResponseTimeoutError" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-H", "Content-Length: many", "-d", "x"],
        ["-H", "Transfer-Encoding: chunked", "-H", "Content-Length: x", "-d", "x"],
    ],
)
def test_header_that_aiohttp_refuses_is_64(arguments, server, capsys):
    """Usage that only aiohttp can judge is bad usage too; the server sees nothing."""
    code = main(["request", f"{server.url}/echo", *arguments])
    out, err = capsys.readouterr()

    assert 64 == code
    assert "" == out
    assert err.startswith("aioretry-smithy: error: ValueError: ")
    assert 1 == len(err.splitlines())
    assert [] == server.seen


@pytest.mark.parametrize("path", ["astray", "overlong"])
def test_url_that_the_server_got_wrong_is_no_bad_usage(path, server, capsys):
    """A redirect to nowhere is a failure of the call: the caller's URL was good."""
    code = main(["request", f"{server.url}/{path}", "--strategy", "never"])
    attempt, headline, _, last = capsys.readouterr().err.splitlines()

    assert 2 == code
    assert attempt.startswith("attempt 1: ")
    assert headline.startswith(f"GET {server.url}/{path}  ->  ")
    assert last.startswith("aioretry-smithy: error: ")
    assert 1 == len(server.seen)


@needs_posix("Ctrl-C for one thread")
@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_is_130_and_shows_the_log(server, capsys):
    """A user who interrupts still sees the attempts that were made."""
    code = main(["request", f"{server.url}/interrupt"])
    out, err = capsys.readouterr()

    assert 130 == code
    assert "" == out
    assert "stopped: cancelled" in err


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
