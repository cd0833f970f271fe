"""Answers with bodies of all kinds, and ways to read them."""

from __future__ import annotations

from chains import connected, retrying

from aioretry_smithy import Backoff, RetryStrategyWithContent

SOON = Backoff.fixed(0.01)
NUMBERS = [b'"%06d"' % n for n in range(20_000)]
LINES = [b", ".join(NUMBERS[n : n + 10]) for n in range(0, 20_000, 10)]
BODY = b"[" + b",\n".join(LINES) + b"]"
"""JSON in 2000 lines, 200 KB: more than a stream holds before it stops reading."""
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class WhileBusy(RetryStrategyWithContent):
    """Keeps what it was shown; retries failures, and bodies that begin so."""

    def __init__(self, max_content_length=1024):
        self.max_content_length = max_content_length
        self.seen = []

    def should_retry(self, ctx, cause, content):
        self.seen.append((ctx.log.response_status, cause, content))
        return SOON if content is None or content.startswith(b"busy") else None


def sized(body, *headers):
    """Write a response whose body has a length."""
    length = b"Content-Length: %d" % len(body)
    return HEAD + b"\r\n".join([length, *headers]) + b"\r\n\r\n" + body


def chunk(data):
    """Write an HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunked(pieces, *headers):
    """Write a response whose body comes in chunks."""
    lines = [b"Transfer-Encoding: chunked", *headers]
    head = HEAD + b"\r\n".join(lines) + b"\r\n\r\n"
    return head + b"".join(map(chunk, pieces)) + b"0\r\n\r\n"


def pieces_of(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


async def joined(iterator):
    return b"".join([part async for part in iterator])


async def in_reads(content):
    parts = [b"1"]
    while parts[-1]:
        parts.append(await content.read(1000))
    return b"".join(parts[1:])


WAYS = {
    "read": lambda response: response.read(),
    "text": lambda response: response.text(),
    "json": lambda response: response.json(),
    "content.read": lambda response: response.content.read(),
    "content.read(n)": lambda response: in_reads(response.content),
    "readexactly": lambda response: response.content.readexactly(len(BODY)),
    "iter_chunked": lambda response: joined(response.content.iter_chunked(3000)),
    "iter_any": lambda response: joined(response.content.iter_any()),
    "lines": lambda response: joined(response.content),
}


def build(url, strategy, *, attempts=10, limit=None, buffer=False, **options):
    """Build a session with settings of retries, and options of its own."""
    return connected(
        url,
        retrying(
            strategy,
            max_total_attempts=attempts,
            attempt_timeout=limit,
            buffer_response=buffer,
        ),
        **options,
    )


def assert_nothing_is_held(session):
    assert not session.connector._acquired
