"""Run the README's first example as a stranger would, on a server of this machine.

Only the package and what it depends on have to be installed::

    python -I tests/tools/published/stranger.py README.rst
"""

import contextlib
import io
import re
import sys
import textwrap
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FIRST_EXAMPLE = r"^\.\. code-block:: python\n\n((?:    .*\n|\n)+)"


class FailsOnce(BaseHTTPRequestHandler):
    """Answers the first request with a 503, and all others with a 200."""

    seen = 0

    def do_GET(self):
        """Answer."""
        FailsOnce.seen += 1
        self.send_response(503 if FailsOnce.seen == 1 else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Keep quiet."""


def main(readme):
    """Run the example, and fail unless it prints a call that was answered."""
    text = Path(readme).read_text(encoding="utf-8")
    example = textwrap.dedent(re.search(FIRST_EXAMPLE, text, re.MULTILINE)[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), FailsOnce)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    local = f"http://127.0.0.1:{server.server_port}"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = compile(re.sub(r"https://[\w.]+", local, example), readme, "exec")
        exec(code, {"__name__": "__main__"})
    server.shutdown()
    if "->  200 OK" not in printed.getvalue():
        sys.exit(f"no call that was answered in: {printed.getvalue()!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
