"""A server for the command line."""

import signal
import threading
from http.server import ThreadingHTTPServer

import pytest
from command_line import Handler


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
