"""Open the servers and files that a request may be made of."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import trustme
from body_kinds import Content
from request_kind import Scene
from wire_server import Wire, WireServer


def new_tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make contexts of TLS: of a server, and of a client that trusts it."""
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    return served, trusting


@contextlib.contextmanager
def content_to_send() -> Iterator[Content]:
    """Write a file to send."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.txt"
        path.write_text("0123456789" * 20)
        yield Content(path.read_bytes(), path)


@contextlib.asynccontextmanager
async def opened_scene(
    tls: tuple[ssl.SSLContext, ssl.SSLContext], content: Content
) -> AsyncIterator[Scene]:
    """Run servers that record what they are sent."""
    served, trusting = tls
    wire = Wire()
    async with WireServer(wire) as server, WireServer(wire, served) as tls_server:
        yield Scene(wire, server, tls_server, trusting, content)
