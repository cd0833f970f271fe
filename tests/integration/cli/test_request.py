"""``request``: bodies, logs and exit codes, in this process and in real ones."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from aioretry_smithy.__main__ import main

FAST = ["--backoff", "fixed=1ms,jitter=0"]
LARGE = bytes(range(256)) * 16 * 1024
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0

MODULE = [sys.executable, "-m", "aioretry_smithy"]
# Shells start background jobs with Ctrl-C ignored, and children inherit that.
WITH_CTRL_C = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "runpy.run_module('aioretry_smithy', run_name='__main__')"
)
WITHOUT_RICH = (
    "import runpy, sys; sys.modules['rich'] = None;"
    "runpy.run_module('aioretry_smithy', run_name='__main__')"
)
PLAIN = [sys.executable, "-c", WITHOUT_RICH]


class Handler(BaseHTTPRequestHandler):
    """Answers each path in its own way, and counts the requests."""

    def do_GET(self):
        """Answer; also for every other method."""
        self.server.seen.append(self)
        length = int(self.headers.get("Content-Length", 0))
        self.body = self.rfile.read(length)
        name = self.path.strip("/").partition("?")[0]
        getattr(self, f"answer_{name}")()

    def respond(self, status=200, body=b"", **headers):
        self.send_response(status)
        for header, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(header, str(value))
        self.end_headers()
        self.wfile.write(body)

    def answer_fine(self):
        self.respond(body=b"fine\n")

    def answer_nothing(self):
        self.respond(404, b"nothing here\n")

    def answer_busy(self):
        self.respond(503, b"busy\n")

    def answer_flaky(self):
        status = 503 if len(self.server.seen) < 3 else 200
        self.respond(status, f"{status}\n".encode())

    def answer_large(self):
        self.respond(body=LARGE)

    def answer_half(self):
        self.respond(body=b"half", **{"Content-Length": 8})

    def answer_astray(self):
        self.respond(302, Location="http://127.1:1/")

    def answer_echo(self):
        seen = [self.command, dict(self.headers), self.body.decode("latin-1")]
        self.respond(body=json.dumps(seen).encode())

    def answer_silence(self):
        self.server.asked.set()
        self.server.over.wait(10)
        self.close_connection = True

    def answer_interrupt(self):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        self.answer_silence()

    def log_message(self, *_):
        """Keep standard error for what is tested."""


for method in ("DELETE", "PATCH", "POST"):
    setattr(Handler, f"do_{method}", Handler.do_GET)


@pytest.fixture
def server():
    """A server in a thread of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # clients that leave are the point
    server.seen, server.asked, server.over = [], threading.Event(), threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def ctrl_c_works():
    """Let Ctrl-C do what it does in a shell, also where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def run(arguments, stdout, stderr):
    """Run the command in this process, with standard output and error of its own.

    As at the end of a process, what is left in their buffers is written then, and
    fails if it cannot be.
    """
    with (
        os.fdopen(stdout, "w") as out,
        os.fdopen(stderr, "w", buffering=1) as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        return main(arguments)


def run_process(arguments, stdout, stderr):
    """Run the command in a process, with standard output and error of its own."""
    with os.fdopen(stdout, "w") as out, os.fdopen(stderr, "w") as err:
        command = [*MODULE, *arguments]
        process = subprocess.run(
            command, check=False, stdout=out, stderr=err, timeout=30
        )
    return process.returncode


def nobody():
    """Return a pipe that nobody reads from."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def written_to(path):
    """Return a descriptor of a file that is to be written."""
    return os.open(path, os.O_WRONLY | os.O_CREAT)


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


def test_large_body_arrives_whole(server, capfdbinary):
    """A body of megabytes goes through unchanged."""
    code = main(["request", f"{server.url}/large"])

    assert 0 == code
    assert LARGE == capfdbinary.readouterr().out


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


def test_url_that_the_server_got_wrong_is_no_bad_usage(server, capsys):
    """A redirect to nowhere is a failure of the call: the caller's URL was good."""
    code = main(["request", f"{server.url}/astray", "--strategy", "never"])

    assert 2 == code
    assert "aioretry-smithy: error: " in capsys.readouterr().err
    assert 1 == len(server.seen)


@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_is_130_and_shows_the_log(server, capsys):
    """A user who interrupts still sees the attempts that were made."""
    code = main(["request", f"{server.url}/interrupt"])
    out, err = capsys.readouterr()

    assert 130 == code
    assert "" == out
    assert "stopped: cancelled" in err


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
    process = subprocess.run(command, capture_output=True, check=False, timeout=30)

    assert code == process.returncode
    assert out == process.stdout
    assert b"Traceback" not in process.stderr


def test_shell_without_rich_sees_the_same(server):
    """The extra is optional: without it the tree is as good."""
    command = [*PLAIN, "request", f"{server.url}/fine"]
    process = subprocess.run(command, capture_output=True, check=False, timeout=30)

    assert 0 == process.returncode
    assert b"fine\n" == process.stdout
    assert "└─ 1  200 OK" in process.stderr.decode()


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


@pytest.mark.usefixtures("ctrl_c_works")
def test_timeline_of_a_call_that_was_interrupted(server, tmp_path):
    """A user who interrupts may want to see why it took so long."""
    file = tmp_path / "call.svg"
    code = main(["request", f"{server.url}/interrupt", "--timeline", str(file)])

    assert 130 == code
    assert "CancelledError" in file.read_text(encoding="utf-8")


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
    assert "aioretry-smithy: error: --timeline: " in err.splitlines()[-1]


def test_name_of_a_timeline_that_is_too_long(server, tmp_path, capsys):
    """The system says so when the file is written, in one line."""
    file = tmp_path / f"{'a' * 300}.svg"
    code = main(["request", f"{server.url}/fine", "--timeline", str(file)])
    err = capsys.readouterr().err

    assert 73 == code
    assert "aioretry-smithy: error: --timeline: " in err.splitlines()[-1]


@pytest.mark.skipif(IS_ROOT, reason="root may enter every directory")
def test_timeline_below_a_directory_that_may_not_be_entered(server, tmp_path, capsys):
    """A directory that cannot be looked at cannot be written to either."""
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0)
    file = closed / "inner" / "call.svg"
    code = main(["request", f"{server.url}/fine", "--timeline", str(file)])
    closed.chmod(0o700)

    assert 64 == code
    assert 1 == len(capsys.readouterr().err.splitlines())


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
    assert "Traceback" not in "".join(
        file.read_text() for file in files.values() if not file.is_symlink()
    )


def test_ctrl_c_leaves_no_traceback(server):
    """A real process that is interrupted ends with 130 and without a fuss."""
    command = [sys.executable, "-c", WITH_CTRL_C, "request", f"{server.url}/silence"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert server.asked.wait(30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)

    assert 130 == process.returncode
    assert b"" == out
    assert b"Traceback" not in err
