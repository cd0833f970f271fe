"""Endpoints whose health is what a test says."""

from __future__ import annotations

import asyncio

from chains import now
from yarl import URL

from aioretry_smithy import HttpRequest, new_response


class Health:
    """What checks are answered with, by host: a status, an exception, or after a time.

    Where that is all, seconds stand for a good answer after so long.
    """

    def __init__(self):
        self.answers = {}
        self.takes = 0.0
        self.asked = []
        self.options = []
        self.sessions = []

    async def __call__(self, session, method, url, **options):
        if session.closed:
            raise RuntimeError("Session is closed")
        self.asked.append((now(), method, str(url)))
        self.options.append(options)
        self.sessions.append(session)
        answer = self.answers.get(url.host, 200)
        async with asyncio.timeout(options["timeout"].total):
            await asyncio.sleep(answer if isinstance(answer, float) else self.takes)
        if isinstance(answer, Exception):
            raise answer
        status = 200 if isinstance(answer, float) else answer
        return new_response(HttpRequest(method, url), status)

    def times(self, host):
        return [at for at, _, url in self.asked if URL(url).host == host]
