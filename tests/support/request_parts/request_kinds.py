"""Every kind of request that aiohttp takes, and how one went in full."""

import contextlib
import inspect
import re
import warnings

import aiohttp
from request_answers import ANSWERS, PEERS, REDIRECTS, TIMEOUTS, WATCHED
from request_bodies import BODIES, JSON
from request_heads import AUTHS, COOKIES, ERRORS, HEADERS, PARAMS, TARGETS
from request_kind import Call, made

from aioretry_smithy import capture_logs


def _is_known(one):
    """Say whether the arguments that are newer than the oldest aiohttp exist."""
    known = {
        *inspect.signature(aiohttp.ClientSession).parameters,
        *inspect.signature(aiohttp.ClientSession._request).parameters,
    }
    newer = {"json_serialize_bytes", "max_headers", "upload_tracker"}
    return newer.isdisjoint({*one.options, *one.session} - known)


KINDS = {
    name: one
    for group in (
        TARGETS,
        PARAMS,
        HEADERS,
        COOKIES,
        BODIES,
        JSON,
        AUTHS,
        REDIRECTS,
        ANSWERS,
        TIMEOUTS,
        PEERS,
        WATCHED,
        ERRORS,
    )
    for name, one in group.items()
    if _is_known(one)
}
"""By name."""


ADDRESS = re.compile("0x[0-9a-f]+")


async def outcome(scene, kind, new_session):
    """Send a request and one more after it; describe the outcome in full."""
    scene.seen.clear()
    with (
        warnings.catch_warnings(record=True) as caught,
        capture_logs() as logs,
    ):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)
        async with opened(scene, kind, new_session) as session:
            result = await told(scene, kind, session)
            after = None if session.closed else await one_more(scene, session)
            jar = sorted(str(cookie) for cookie in session.cookie_jar)
    return {
        "result": result,
        "after": after,
        "wire": await scene.wire.take(),
        "jar": jar,
        "seen": list(scene.seen),
        "warnings": [(each.category, str(each.message)) for each in caught],
        "attempts": {log.total_attempts for log in logs} or {1},
    }


async def requests_sent(scene, kind, new_session, *, failures):
    """Send a request that is answered 503 so often; return what came."""
    scene.wire.failures = failures
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        async with opened(scene, kind, new_session) as session:
            await told(scene, kind, session)
    return [request for _, request in await scene.wire.take()]


@contextlib.asynccontextmanager
async def opened(scene, kind, new_session):
    """Open a session as the kind asks for."""
    settings = {name: made(value, scene) for name, value in kind.session.items()}
    with scene.content.stack:
        async with new_session(**settings) as session:
            yield session


async def told(scene, kind, session):
    """Send a request, and tell what came of it."""
    url = made(kind.url, scene)
    options = {name: made(value, scene) for name, value in kind.options.items()}
    try:
        return await kind.send(Call(session, kind.method, url, options))
    except Exception as error:
        return failure(error)


def failure(error):
    """Tell what an exception says, but not where in memory."""
    cause = error.__cause__
    return {
        "class": type(error),
        "text": ADDRESS.sub("0x", str(error)),
        "arguments": len(error.args),
        "status": getattr(error, "status", None),
        "headers": str(getattr(error, "headers", None)),
        "history": [hop.status for hop in getattr(error, "history", ())],
        "cause": (type(cause), ADDRESS.sub("0x", str(cause))),
    }


async def one_more(scene, session):
    """Show which connection is free, and which cookies are kept."""
    try:
        async with session.get(scene.server.url / "after") as response:
            return response.status, await response.read()
    except Exception as error:
        return failure(error)
