"""Groups of scripted servers: who is asked, who is out, and whose health is told."""

import asyncio
import itertools

from chains import chain, now
from yarl import URL

from aioretry_smithy import (
    EndpointGroup,
    EndpointSelectionStrategy,
    HttpRequest,
    RequestLog,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport

IN_ORDER = EndpointSelectionStrategy.in_order()
ROUND_ROBIN = EndpointSelectionStrategy.round_robin()


def url_of(name):
    """Return the URL of a server."""
    return f"http://{name}.example"


def group_of(names="abc", **settings):
    """Make a group of servers, which are asked in order unless told otherwise."""
    settings.setdefault("selection", IN_ORDER)
    return EndpointGroup.of(*map(url_of, names), **settings)


def name_of(endpoint):
    """Return the name of the server that an endpoint is."""
    return None if endpoint is None else str(endpoint).partition(".")[0]


class Fleet:
    """Servers that answer by their names: with 200 unless told otherwise.

    An answer is one of a :class:`ScriptedTransport`, or a list of these, of which the
    last one stays.
    """

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []
        self.times = []
        self.transport = ScriptedTransport(itertools.repeat(self._answer))

    def _answer(self, ctx, request):
        name = request.url.raw_host.removesuffix(".example")
        self.asked.append(name)
        self.times.append((now(), name))
        answer = self.answers.get(name, 200)
        if isinstance(answer, list):
            answer = answer.pop(0) if answer[1:] else answer[0]
        if isinstance(answer, BaseException):
            # Each failure is one of its own, as a real one is.
            answer = type(answer)(*answer.args)
        return answer

    @property
    def text(self):
        """The names of those that were asked, in order."""
        return "".join(self.asked)

    def session(self, group, *decorators, **settings):
        """Build a session of a group, through decorators, inner ones first."""
        return chain(self.transport, *decorators, base_url=group, **settings).build()


async def call(client, url="/orders", *, method="GET", **options):
    """Make a call; return its status, or the failure, and its log."""
    try:
        async with client.request(method, url, **options) as response:
            return response.status, RequestLog.of(response)
    except Exception as error:
        return error, RequestLog.of(error)


def state_of(group, name):
    """Return what a group knows of a server."""
    return next(state for each, state in group.states.items() if name_of(each) == name)


def out(group):
    """Return the names of those that are out, and why."""
    return {
        str(name_of(each)): str(state.reason)
        for each, state in group.states.items()
        if state.ejected_until is not None
    }


async def at(moment):
    """Wait until a moment of the loop's clock."""
    await asyncio.sleep(moment - now())


async def outcomes(fleet, group, number, *decorators):
    """Make calls one after another, and return who is out then."""
    async with fleet.session(group, *decorators) as client:
        for _ in range(number):
            await call(client)
        return out(group)


async def asked(fleet, group, number, *decorators):
    """Make calls one after another, and return who was asked."""
    async with fleet.session(group, *decorators) as client:
        for _ in range(number):
            await call(client)
    return fleet.text


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
