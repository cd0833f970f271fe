"""Every kind of request that aiohttp takes, and how one went in full."""

import contextlib
import inspect
import re
import warnings

import aiohttp
import body_kinds
from aiohttp.client_reqrep import Fingerprint
from request_bodies import BODIES, JSON
from request_heads import AUTHS, COOKIES, ERRORS, HEADERS, PARAMS, TARGETS
from request_kind import (
    AUTH,
    ELSEWHERE,
    FILE,
    PROXY,
    TLS_URL,
    TRUST,
    Call,
    Fresh,
    RefusedError,
    as_json,
    as_text,
    chunks,
    fresh,
    get,
    kind,
    made,
    post,
    read_from_error,
    refused_afterwards,
    streamed,
    twice,
    unread,
    ws,
)
from yarl import URL

from aioretry_smithy import capture_logs


async def refuse(response):
    """Refuse every response."""
    raise RefusedError(response)


async def accept(response):
    """Refuse no response."""


def traces(scene):
    """Note the events of tracing, with the context of the request."""
    config = aiohttp.TraceConfig()
    for name in (
        "request_start",
        "request_end",
        "request_exception",
        "request_redirect",
        "request_headers_sent",
        "request_chunk_sent",
        "response_chunk_received",
        "connection_create_start",
        "connection_create_end",
        "connection_reuseconn",
    ):

        async def note(session, context, params, name=name):
            given = context.trace_request_ctx
            method = getattr(params, "method", None)
            scene.seen.append((name, given, method, getattr(params, "url", None)))

        getattr(config, f"on_{name}").append(note)
    return [config]


def middleware(name):
    """Make a middleware that notes that it was run, and adds a header."""

    def make(scene):
        async def run(request, handler):
            scene.seen.append((name, request.method, request.url))
            request.headers[f"X-{name}"] = "1"
            response = await handler(request)
            scene.seen.append((name, response.status))
            return response

        return (run,)

    return Fresh(make)


async def asks_twice(request, handler):
    """Send a request two times from a middleware."""
    response = await handler(request)
    response.release()
    return await handler(request)


async def asks_nobody(request, handler):
    """Send a request, and another one to a port where nobody listens."""
    response = await handler(request)
    response.release()
    request.url = URL("http://127.0.0.1:1/")
    return await handler(request)


async def looks_at_body(request, handler):
    """Sign the body in a middleware."""
    body = request.body
    content = await body.as_bytes() if isinstance(body, aiohttp.Payload) else body
    request.headers["X-Length"] = str(len(content))
    return await handler(request)


async def fails(request, handler):
    """Fail in a middleware."""
    raise LookupError("middleware")


REDIRECTS = {
    **{
        f"{method} redirected by {status}": kind(
            method, f"/redirect/{status}/2", data=body
        )
        for method, body in (("GET", None), ("POST", b"abc"), ("PUT", b"abc"))
        for status in (301, 302, 303, 307, 308)
    },
    "HEAD redirected by 303": kind("HEAD", "/redirect/303/1"),
    "file redirected by 307": post("/redirect/307/1", data=FILE),
    "file redirected by 303": post("/redirect/303/1", data=FILE),
    "form redirected by 308": post(
        "/redirect/308/1", data=fresh(lambda: body_kinds.form("text"))
    ),
    "json redirected by 307": post("/redirect/307/1", json={"a": 1}),
    "generator redirected by 307": post(
        "/redirect/307/1", data=fresh(lambda: chunks(b"abc", b"de")), again=False
    ),
    "generator of PUT redirected by 307": kind(
        "PUT", "/redirect/307/1", data=fresh(lambda: chunks(b"abc")), again=False
    ),
    "async iterable of PUT redirected by 307": kind(
        "PUT",
        "/redirect/307/1",
        data=Fresh(lambda scene: body_kinds.Iterable(scene.content)),
        again=False,
    ),
    "generator redirected by 303": post(
        "/redirect/303/1", data=fresh(lambda: chunks(b"abc")), again=False
    ),
    "params are not added to a redirect": get("/redirect/302/1", params={"a": "1"}),
    "Authorization on a redirect": get(
        "/redirect/302/1", headers={"Authorization": "Basic eA=="}
    ),
    "cookies on a redirect": get("/redirect/302/1", cookies={"a": "1"}),
    "allow_redirects=False": get("/redirect/302/1", allow_redirects=False),
    "allow_redirects=None": get("/redirect/302/1", allow_redirects=None),
    "max_redirects": get("/redirect/302/5", max_redirects=2),
    "max_redirects=0": get("/redirect/302/3", max_redirects=0),
    "max_redirects, just enough": get("/redirect/302/2", max_redirects=3),
    "too many redirects": get("/redirect/302/11"),
    "too many redirects of a POST": post("/redirect/307/11", data=b"abc"),
    "redirect to ftp": get("/to-ftp"),
    "redirect to nonsense": get("/to-nonsense"),
    "redirect without a location": get("/to-nowhere"),
    "redirect not requoted": get(
        "/redirect/302/1", session={"requote_redirect_url": False}
    ),
}

ANSWERS = {
    **{f"status {status}": get(f"/status/{status}") for status in (204, 304, 404)},
    # Of a POST: what is idempotent would go out again.
    "status 503": post("/status/503"),
    "status 404, asked for": get("/status/404", raise_for_status=True),
    "status 404, asked for afterwards": get("/status/404", send=refused_afterwards),
    "status 404, asked for by the session": get(
        "/status/404", session={"raise_for_status": True}
    ),
    "status 404, not asked for": get(
        "/status/404", session={"raise_for_status": True}, raise_for_status=False
    ),
    "status 404, refused": get("/status/404", raise_for_status=refuse),
    "status 404, refused, and read": get(
        "/status/404", raise_for_status=refuse, send=read_from_error
    ),
    "status 404, refused by the session": get(
        "/status/404", session={"raise_for_status": refuse}
    ),
    "status 404, accepted": get("/status/404", raise_for_status=accept),
    "status 200, asked for": get(raise_for_status=True),
    "raise_for_status, a number": get("/status/404", raise_for_status=5),
    "status 404 after a redirect": get(
        "/redirect/302/1", raise_for_status=True, allow_redirects=False
    ),
    "json answer": get("/json", send=as_json),
    "json answer of another type": get("/large", send=as_json),
    "answer in Latin-1": get("/latin", send=as_text),
    "answer in an own charset": get(
        send=as_text,
        session={"fallback_charset_resolver": lambda response, body: "utf-16-le"},
    ),
    "chunked answer": get("/chunked"),
    "large answer": get("/large"),
    "large answer, streamed": get("/large", send=streamed),
    "large answer, unread": get("/large", send=unread),
    "small answer, unread": get(send=unread, data=b"abc"),
    "answer to the end": get("/eof"),
    "answer to the end, not read until there": get("/eof", read_until_eof=False),
    "last answer": get("/closing"),
    "answer of HTTP/1.0": get("/ancient"),
    "gzipped answer": get("/gzip"),
    "gzipped answer, as it is": get("/gzip", auto_decompress=False),
    "gzipped answer, as it is, by the session": get(
        "/gzip", session={"auto_decompress": False}
    ),
    "gzipped answer, decompressed all the same": get(
        "/gzip", session={"auto_decompress": False}, auto_decompress=True
    ),
    "answer that is not gzipped": post("/bad-gzip"),
    "read_bufsize": get("/large", read_bufsize=1 << 10),
    "read_bufsize of the session": get("/large", session={"read_bufsize": 1 << 10}),
    "long header": post("/long-header"),
    "long header, allowed": get(
        "/long-header", max_line_size=10_000, max_field_size=10_000
    ),
    "long header, allowed by the session": get(
        "/long-header", session={"max_line_size": 10_000, "max_field_size": 10_000}
    ),
    "short line, forbidden": post(max_line_size=5, again=False),
    "many headers": post("/many-headers"),
    "many headers, allowed": get("/many-headers", max_headers=300),
    "truncated answer": post("/truncated"),
    "no answer": post("/drop"),
    "no HTTP": post("/garbage"),
    "no answer in time": post(
        "/hang", timeout=fresh(lambda: aiohttp.ClientTimeout(sock_read=0.02))
    ),
    "HTTP/1.0": post(session={"version": aiohttp.HttpVersion10}, data=b"abc"),
    "HTTP/1.0, twice": get(session={"version": aiohttp.HttpVersion10}, send=twice),
    "request class": get(
        session={"request_class": type("Own", (aiohttp.ClientRequest,), {})}
    ),
    "response class": get(
        session={"response_class": type("Own", (aiohttp.ClientResponse,), {})}
    ),
}

TIMEOUTS = {
    f"timeout: {name}": get(timeout=value)
    for name, value in {
        "None": None,
        "number": 5,
        "float": 5.5,
        "total": aiohttp.ClientTimeout(total=5),
        "no total": aiohttp.ClientTimeout(total=None),
        "zero": 0,
        "total zero": aiohttp.ClientTimeout(total=0),
        "all": aiohttp.ClientTimeout(5, 5, 5, 5, 1),
        "connect": aiohttp.ClientTimeout(connect=5),
        "str": "5",
        "total, a str": aiohttp.ClientTimeout(total="5"),
        "object": (),
    }.items()
}
TIMEOUTS["timeout of the session"] = get(
    session={"timeout": aiohttp.ClientTimeout(total=20, sock_read=3)}
)

PEERS = {
    "proxy": get(url=ELSEWHERE, proxy=PROXY),
    "proxy as str": post(
        url=ELSEWHERE, proxy=Fresh(lambda scene: str(scene.server.url)), data=b"abc"
    ),
    "proxy of the session": get(url=ELSEWHERE, session={"proxy": PROXY}),
    "proxy with headers": get(
        url=ELSEWHERE, proxy=PROXY, proxy_headers={"X-Proxy": "1"}
    ),
    "proxy with auth": get(url=ELSEWHERE, proxy=PROXY, proxy_auth=AUTH),
    "proxy with auth of the session": get(
        url=ELSEWHERE, session={"proxy": PROXY, "proxy_auth": AUTH}
    ),
    "proxy with auth in its URL": get(
        url=ELSEWHERE, proxy=Fresh(lambda scene: scene.server.url.with_user("me"))
    ),
    "proxy to TLS": get(url=TLS_URL, proxy=PROXY, ssl=TRUST),
    "proxy auth as a tuple": get(url=ELSEWHERE, proxy=PROXY, proxy_auth=("a", "b")),
    "proxy as a number": get(url=ELSEWHERE, proxy=5),
    "proxy without a host": get(url=ELSEWHERE, proxy="http://["),
    "TLS": post(url=TLS_URL, ssl=TRUST, data=b"abc"),
    "TLS, unchecked": get(url=TLS_URL, ssl=False),
    "TLS, unknown": get(url=TLS_URL),
    "TLS, ssl=True": get(url=TLS_URL, ssl=True),
    "TLS, server_hostname": get(url=TLS_URL, ssl=TRUST, server_hostname="localhost"),
    "TLS, another server_hostname": get(
        url=TLS_URL, ssl=TRUST, server_hostname="elsewhere.test"
    ),
    "TLS, fingerprint": get(url=TLS_URL, ssl=fresh(lambda: Fingerprint(b"x" * 32))),
    "TLS, ssl_context": get(url=TLS_URL, ssl_context=TRUST),
    "TLS, verify_ssl": get(url=TLS_URL, verify_ssl=False),
    "TLS, ssl twice": get(url=TLS_URL, ssl=TRUST, verify_ssl=False),
    "TLS, trusted by the connector": get(
        url=TLS_URL,
        session={
            "connector": Fresh(lambda scene: aiohttp.TCPConnector(ssl=scene.trust))
        },
    ),
    "ssl as a str": get(url=TLS_URL, ssl="yes"),
    "ssl=False, without TLS": get(ssl=False),
    "trust_env": get(session={"trust_env": True}),
}

WATCHED = {
    "trace": post(session={"trace_configs": Fresh(traces)}, data=b"abc"),
    "trace with a context": get(
        session={"trace_configs": Fresh(traces)}, trace_request_ctx={"a": 1}
    ),
    "trace of a redirect": get(
        "/redirect/302/1", session={"trace_configs": Fresh(traces)}
    ),
    "trace of a failure": post("/drop", session={"trace_configs": Fresh(traces)}),
    "trace of a bad URL": get(url="ftp://x", session={"trace_configs": Fresh(traces)}),
    "middlewares": get(middlewares=middleware("own")),
    "middlewares of the session": get(session={"middlewares": middleware("all")}),
    "middlewares over those of the session": get(
        session={"middlewares": middleware("all")}, middlewares=middleware("own")
    ),
    "middlewares, none": get(
        session={"middlewares": middleware("all")}, middlewares=()
    ),
    "middlewares and a redirect": get("/redirect/302/1", middlewares=middleware("own")),
    "middleware that asks twice": post(
        middlewares=(asks_twice,), data=b"abc", again=False
    ),
    "middleware that asks twice for a file": post(
        middlewares=(asks_twice,), data=FILE, again=False
    ),
    "middleware that looks at a file": post(middlewares=(looks_at_body,), data=FILE),
    "middleware that looks at bytes": post(middlewares=(looks_at_body,), data=b"abc"),
    "middleware that looks at json": post(middlewares=(looks_at_body,), json=[1]),
    "middleware that asks twice, then nobody": post(
        middlewares=(asks_nobody,), data=b"abc", again=False
    ),
    "middleware that fails": post(middlewares=(fails,)),
    "middleware that is none": post(middlewares=(5,)),
    "websocket": get("/ws", send=ws),
    "websocket with headers": get(
        "/ws",
        send=ws,
        headers={"X-A": "1"},
        protocols=("chat",),
        origin="http://origin.test",
        params={"a": "1"},
    ),
    "websocket, compressed": get("/ws", send=ws, compress=15),
    "websocket, base": get(
        url="ws", send=ws, session={"base_url": Fresh(lambda scene: scene.server.url)}
    ),
    "websocket, by POST": post("/ws", send=ws),
    "websocket, no such": get("/status/404", send=ws),
    "websocket, not switched": get("/", send=ws),
    "websocket, redirected": get("/redirect/302/1", send=ws),
}


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
    with warnings.catch_warnings(record=True) as caught, capture_logs() as logs:
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
