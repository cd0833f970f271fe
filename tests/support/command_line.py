"""The command line, run in this process and in one of its own."""

import contextlib
import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from aioretry_smithy.__main__ import main


def needs_posix(what):
    """Mark a test that needs something that Windows does not have."""
    return pytest.mark.skipif(os.name == "nt", reason=f"needs POSIX: {what}")


LARGE = bytes(range(256)) * 16 * 1024
WITHOUT_RICH = (
    "import runpy, sys; sys.modules['rich'] = None;"
    "runpy.run_module('aioretry_smithy', run_name='__main__')"
)


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

    def answer_overlong(self):
        self.respond(302, Location=f"http://{'a' * 64}/")

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


def nobody():
    """Return a pipe that nobody reads from."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def written_to(path):
    """Return a descriptor of a file that is to be written."""
    return os.open(path, os.O_WRONLY | os.O_CREAT)
