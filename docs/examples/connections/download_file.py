import asyncio
import tempfile
from pathlib import Path

import aiohttp
from aiohttp import web

from aioretry_smithy import ResumingClient, SessionBuilder


async def download(session: aiohttp.ClientSession, url: str, path: Path) -> None:
    """Load a file; take up what an earlier run of the program has left."""
    part, tag = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.tag")
    headers = {}
    if part.exists() and tag.exists() and (version := tag.read_text()):
        headers["Range"] = f"bytes={part.stat().st_size}-"
        headers["If-Range"] = version  # of another one the server sends the whole
    async with session.get(url, headers=headers) as response:
        if response.status == 416:  # it was whole already, or another file
            part.unlink()
            await download(session, url, path)
            return
        response.raise_for_status()
        print(f"{response.status}, {response.content_length} bytes to come")
        tag.write_text(response.headers.get("ETag", ""))
        with part.open("ab" if response.status == 206 else "wb") as file:
            async for piece in response.content.iter_chunked(65536):
                file.write(piece)
    part.replace(path)
    tag.unlink()


def new_builder(url: str) -> SessionBuilder:
    return (
        SessionBuilder.standard(url, timeout=aiohttp.ClientTimeout(sock_read=30.0))
        .decorator(ResumingClient.new_decorator())
        .response_timeout(None)  # as long as it takes
    )


# From here on: a server, and somebody who presses Ctrl-C.

FILE = bytes(range(256)) * 4000


async def send_file(request: web.Request) -> web.StreamResponse:
    start = request.http_range.start or 0
    response = web.StreamResponse(headers={"ETag": '"v1"'})
    response.content_length = len(FILE) - start
    if start:
        response.set_status(206)
        span = f"bytes {start}-{len(FILE) - 1}/{len(FILE)}"
        response.headers["Content-Range"] = span
    await response.prepare(request)
    await response.write(FILE[start : start + 300_000])
    if not start:
        await asyncio.sleep(3600)  # it has fallen asleep
    if start + 300_000 < len(FILE) and request.transport is not None:
        request.transport.close()  # a bad line
    return response


async def main() -> None:
    application = web.Application()
    application.router.add_get("/backup.bin", send_file)
    runner = web.AppRunner(application, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "backup.bin"
        async with new_builder(f"http://{host}:{port}").build() as session:
            program = asyncio.create_task(download(session, "/backup.bin", path))
            await asyncio.sleep(0.5)
            program.cancel()  # what Ctrl-C does
        await asyncio.wait([program])
        async with new_builder(f"http://{host}:{port}").build() as session:
            await download(session, "/backup.bin", path)
        print(f"all of it: {path.read_bytes() == FILE}")
    await runner.cleanup()


asyncio.run(main())
