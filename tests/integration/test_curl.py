"""What the real curl sends is what the log shows."""

import asyncio
import shutil

import aiohttp
import pytest
from chains import connected, retrying
from stream_server import StreamServer
from yarl import URL

from aioretry_smithy import RequestLog

pytestmark = [
    pytest.mark.skipif(not shutil.which("curl"), reason="needs curl"),
    pytest.mark.skipif(not shutil.which("bash"), reason="needs bash"),
]

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
OF_BODY = {"content-length", "transfer-encoding"}


@pytest.fixture
async def heads():
    """The URL of a server, and the heads of requests that it has received."""
    received = []

    async def handle(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        received.append(head.decode().split("\r\n")[:-2])
        writer.write(ANSWER)

    async with StreamServer(handle) as server:
        yield server.url(path=""), received


async def run(command, folder):
    """Run a command in Bash, without settings of whoever runs the tests."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    )
    assert 0 == await asyncio.wait_for(process.wait(), 120.0)


def read(head):
    """Return the first line of a head, and its headers but for those of a body."""
    first, *lines = head
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.lower() not in OF_BODY:
            headers[name.lower()] = value.strip()
    return first, headers


def shown(log):
    """Return the same of what a log shows."""
    values = log.to_dict()
    headers = {
        name.lower(): value
        for name, value in values["request_headers"].items()
        if name.lower() not in OF_BODY
    }
    target = URL(values["request_url"], encoded=True).raw_path_qs
    return f"{values['request_method']} {target} HTTP/1.1", headers


@pytest.mark.parametrize(
    ("method", "target", "options"),
    [
        ("GET", "/orders?a=1&b=%20", {}),
        ("GET", "/", {"headers": {"Authorization": "Bearer S3CR3T"}}),
        ("HEAD", "/orders", {}),
        ("OPTIONS", "/orders", {"headers": {"X-Empty": "", "X-At": "@/etc/passwd"}}),
        ("DELETE", "/orders/1", {"headers": {"X-Quotes": 'it\'s "a" $HOME `id` \\'}}),
        ("POST", "/orders", {"json": {"a": 1}}),
        ("PUT", "/orders", {"data": b"a", "chunked": True}),
        ("GET", "/%E2%82%AC", {"headers": {"X-Euro": "\u20ac \u202e"}}),
        ("GET", "/", {"skip_auto_headers": ["User-Agent", "Accept"]}),
        ("PATCH", URL("/a/./b/../c?d[]=e{f}", encoded=True), {}),
        ("GET", URL("/%2e%2E/a", encoded=True), {}),
    ],
)
async def test_curl_sends_what_the_log_shows(heads, tmp_path, method, target, options):
    """Method, target and headers are the same; only the body is missing."""
    server, received = heads
    url = URL(f"{server}{target}", encoded=True)
    client = connected(None, retrying())
    async with client, client.request(method, url, **options) as response:
        log = RequestLog.of(response)

    await run(log.to_curl(), tmp_path)
    sent, repeated = map(read, received)

    assert shown(log) == repeated
    assert sent[0] == repeated[0]
    assert sent[1].keys() == repeated[1].keys()


async def test_command_before_an_answer_lets_curl_name_itself(heads, tmp_path):
    """What aiohttp adds is not known yet, but some servers ask for it."""
    server, received = heads
    async with connected(None) as client:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await client.get("http://127.0.0.1:1/orders", headers={"X-A": "b"})
    command = RequestLog.of(caught.value).to_curl()

    await run(command.replace("http://127.0.0.1:1", server), tmp_path)
    ((first, headers),) = map(read, received)

    assert "GET /orders HTTP/1.1" == first
    assert "b" == headers["x-a"]
    assert headers["user-agent"].startswith("curl/")


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
async def test_body_that_is_given_keeps_the_method(heads, method, tmp_path):
    """A search with a body stays a GET."""
    url, received = heads
    async with connected(url) as client:
        response = await client.request(method, "/search", json={"query": 1})
    lines = RequestLog.of(response).to_curl().splitlines()
    (tmp_path / "body").write_text('{"query": 1}', encoding="utf-8")
    (told,) = [line for line in lines if "--data-binary" in line]
    option = told[told.index("--data-binary") :].replace("FILE", f"{tmp_path}/body")
    await run("\n".join(lines[:-1]) + f" {option}", tmp_path)
    sent, again = (head[0] for head in received)

    assert f"{method} /search HTTP/1.1" == sent == again
