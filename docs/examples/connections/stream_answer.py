import asyncio
from collections.abc import AsyncIterator, Iterator

import aiohttp
from aiohttp import web

from aioretry_smithy import RequestLog, RetryRuleWithContent, SessionBuilder

STRATEGY = RetryRuleWithContent(
    methods=["POST"],
    statuses=[429, 500, 502, 503],
    exceptions=[aiohttp.ClientError],
    # The first byte is read within the attempt, so its loss is a failed attempt.
    on_content=lambda content: False,
    max_content_length=1,
)


async def tokens(session: aiohttp.ClientSession, prompt: str) -> AsyncIterator[str]:
    silence = aiohttp.ClientTimeout(sock_read=30.0)  # between two pieces
    question = {"prompt": prompt, "stream": True}
    async with session.post(
        "/answers", json=question, timeout=silence, raise_for_status=True
    ) as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                yield line.removeprefix(b"data: ").decode().strip()
        print(RequestLog.of(response).render())


def new_builder(url: str) -> SessionBuilder:
    return SessionBuilder.standard(
        url,
        strategy=STRATEGY,
        attempt_timeout=None,  # an attempt lasts to the end of its body
        response_timeout=None,  # and so does the call
    )


# From here on: a model that is busy, then breaks off, then answers.


def new_model() -> web.Application:
    answers: Iterator[str] = iter(["busy", "broken", "words"])

    async def answer(request: web.Request) -> web.StreamResponse:
        kind = next(answers)
        if kind == "busy":
            return web.Response(status=503)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if kind == "broken" and request.transport is not None:
            request.transport.abort()
            return response
        for word in ("Tea", "is", "ready."):
            await response.write(f"data: {word}\n\n".encode())
        return response

    app = web.Application()
    app.router.add_post("/answers", answer)
    return app


async def main() -> None:
    runner = web.AppRunner(new_model())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with new_builder(f"http://{host}:{port}").build() as session:
        print(*[token async for token in tokens(session, "Is there tea?")])
    await runner.cleanup()


asyncio.run(main())
