"""A server in a process of its own, which a test kills and starts again at its port.

Run by test_replicas.py. It waits for a line before it takes connections, and says
when it does.
"""

import asyncio
import sys

from aiohttp import web


async def answer(request):
    await asyncio.sleep(0.01)
    return web.Response(text=request.path)


async def main(port):
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(port), reuse_address=True).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.stdin.readline()
    asyncio.run(main(*sys.argv[1:]))
