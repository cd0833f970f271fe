import asyncio

import aiohttp
from aiohttp import web

from aioretry_smithy import RequestLog, ResumingClient, SessionBuilder

FILE = bytes(range(256)) * 4000


async def send_file(request: web.Request) -> web.StreamResponse:
    start = request.http_range.start or 0
    response = web.StreamResponse(headers={"ETag": '"v1"'})
    response.content_length = len(FILE) - start
    if "Range" in request.headers:
        response.set_status(206)
        span = f"bytes {start}-{len(FILE) - 1}/{len(FILE)}"
        response.headers["Content-Range"] = span
    await response.prepare(request)
    await response.write(FILE[start : start + 400_000])
    if start + 400_000 < len(FILE) and request.transport is not None:
        request.transport.close()  # a bad line
    return response


async def serve() -> tuple[web.AppRunner, str]:
    application = web.Application()
    application.router.add_get("/files/backup.bin", send_file)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}"


async def main() -> None:
    runner, url = await serve()
    builder = (
        SessionBuilder.standard(url)
        .decorator(ResumingClient.new_decorator())
        .response_timeout(None)  # as long as it takes
    )
    silence = aiohttp.ClientTimeout(sock_read=30.0)
    async with builder.build() as session:
        async with session.get("/files/backup.bin", timeout=silence) as response:
            body = b""
            async for piece in response.content.iter_chunked(65536):
                body += piece
            print(f"{len(body)} bytes, all of them: {body == FILE}")
            log = RequestLog.of(response)
            for part in log.children:
                print(part.attempt, part.response_status, part.response_length)
            print(f"in {log.total_attempts} parts, {log.stop_reason=}")
    await runner.cleanup()


asyncio.run(main())
