"""Tokens that are fetched, and the sessions that send them."""

import asyncio

from chains import session

from aioretry_smithy import RefreshingClient

BASE = "http://localhost/"


class Tokens:
    """Gives out tokens, each a second after it was asked for, the newest valid."""

    def __init__(self, *failures, takes=1.0):
        self.failures = [*failures]
        self.asked = 0
        self.takes = takes

    async def fetch(self):
        self.asked += 1
        await asyncio.sleep(self.takes)
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return f"token-{self.asked}"

    def expire(self):
        self.asked += 1

    def answer(self, ctx, request):
        valid = f"Bearer token-{self.asked}"
        return 200 if request.headers.get("Authorization") == valid else 401

    def decorator(self, **settings):
        return RefreshingClient.new_decorator(self.fetch, **settings)


def refreshing_session(tokens, *outside, inside=(), answers=100, **settings):
    """Build a session with an origin, which refreshes its token."""
    transport = [tokens.answer] * answers if isinstance(answers, int) else answers
    settings = {"base_url": BASE, **settings}
    own = settings.pop("own", {})
    return session(transport, *inside, tokens.decorator(**own), *outside, **settings)


async def outcomes(opened, calls, **options):
    """Make calls at once; return their statuses, or the classes of their failures."""
    got = await asyncio.gather(
        *(opened.get("/", **options) for _ in range(calls)), return_exceptions=True
    )
    return [getattr(each, "status", type(each)) for each in got]


def sent(transport, header="Authorization"):
    return [each.headers.get(header) for each in transport.requests]
