"""Kinds of requests by their target, parameters, headers, cookies and credentials."""

import collections
import decimal
import http.cookies
import types

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy, MultiDict, istr
from request_kind import (
    AUTH,
    BASE,
    ELSEWHERE,
    JAR,
    PROXY,
    TLS_URL,
    TRUST,
    Fresh,
    Text,
    awaited,
    by_verb,
    cookie_jar,
    fresh,
    get,
    kind,
    post,
    side_by_side,
    to_closed,
    twice,
    without_url,
)
from yarl import URL


class Mapping(collections.UserDict):
    """A mapping that is no dict."""


def simple_cookie():
    """Make a cookie with attributes."""
    cookie = http.cookies.SimpleCookie()
    cookie["a"] = "1 2"
    cookie["a"]["path"] = "/"
    cookie["b"] = "2"
    return cookie


TARGETS = {
    **{
        f"{verb}, by its own method": kind(verb, send=by_verb)
        for verb in ("GET", "OPTIONS", "HEAD", "POST", "PUT", "PATCH", "DELETE")
    },
    **{
        f"{verb}, by request()": kind(verb)
        for verb in ("get", "HEAD", "Delete", "TRACE", "PROPFIND", "x-own")
    },
    "HEAD with a redirect": kind("HEAD", "/redirect/302/1", send=by_verb),
    "method, subclass of str": kind(Text("patch")),
    "await": get(send=awaited),
    "the same twice": post(send=twice, data=b"abc"),
    "three for one connection": get(
        send=side_by_side,
        session={"connector": fresh(lambda: aiohttp.TCPConnector(limit=1))},
    ),
    "connector that closes": get(
        send=twice,
        session={"connector": fresh(lambda: aiohttp.TCPConnector(force_close=True))},
    ),
    "str": get("/a b?c=d e&ü=%20#fragment"),
    "str, subclass": get(url=Fresh(lambda scene: Text(scene.server.url))),
    "URL": get(url=Fresh(lambda scene: scene.server.url / "ü" % {"a": "b c"})),
    "URL, encoded": get(
        url=Fresh(lambda scene: URL(f"{scene.server.url}/%7Ea%2fb", encoded=True))
    ),
    "user in the URL": get(url=Fresh(lambda scene: scene.server.url.with_user("me"))),
    "user and password in the URL": get(
        url=Fresh(lambda scene: scene.server.url.with_user("m").with_password("p:w"))
    ),
    "base, relative": get(url="orders/7?x=1", session=BASE),
    "base, relative URL": get(url=URL("orders"), session=BASE),
    "base, rooted": get(url="/orders", session=BASE),
    "base, absolute": get("/absolute", session=BASE),
    "base, nothing": get(url="", session=BASE),
    "base, query": get(url="?a=1", session=BASE),
    "base, up": get(url="../up", session=BASE),
    "base as str": get(
        url="x", session={"base_url": Fresh(lambda scene: f"{scene.server.url}/v1/")}
    ),
    "upper-case scheme": get(
        url=Fresh(lambda scene: str(scene.server.url).replace("http", "HTTP"))
    ),
}

PARAMS = {
    f"params: {name}": get("/path?z=0", params=value)
    for name, value in {
        "None": None,
        "dict": {"a": "1", "b": "ü &=+"},
        "empty dict": {},
        "str": "a=1&b=2%20",
        "empty str": "",
        "pairs": [("a", "1"), ("a", "2")],
        "tuple of pairs": (("a", "1"), ("b", "2")),
        "MultiDict": MultiDict([("a", "1"), ("a", "2")]),
        "numbers": {"a": 1, "b": 2.5},
        "list value": {"a": ["1", "2"], "b": (3, 4)},
        "proxy": types.MappingProxyType({"a": "1"}),
        "subclass of str": {Text("a"): Text("b")},
        "items": fresh({"a": "1"}.items),
        "iterator": fresh(lambda: iter([("a", "1")])),
        "generator": fresh(lambda: (pair for pair in [("a", "1")])),
        "bool": {"a": True},
        "None in it": {"a": None},
        "nan": {"a": float("nan")},
        "number": 5,
        "bytes": b"a=1",
        "Decimal": {"a": decimal.Decimal(1)},
        "triples": [("a", "b", "c")],
    }.items()
}

HEADERS = {
    **{
        f"headers: {name}": get(headers=value)
        for name, value in {
            "None": None,
            "dict": {"X-A": "1", "accept": "a/b"},
            "empty dict": {},
            "mixed case": {"x-A": "1", "X-a": "2", "uSER-aGENT": "me"},
            "CIMultiDict": CIMultiDict([("X-A", "1"), ("x-a", "2")]),
            "MultiDict": MultiDict([("X-A", "1"), ("x-a", "2"), ("X-B", "3")]),
            "CIMultiDictProxy": CIMultiDictProxy(CIMultiDict(a="1")),
            "pairs": [("X-A", "1"), ("X-B", "2"), ("X-A", "3")],
            "tuple of pairs": (("X-A", "1"), ("X-A", "3")),
            "iterator": fresh(lambda: iter([("X-A", "1"), ("X-B", "2")])),
            "generator": fresh(lambda: (pair for pair in [("X-A", "1")])),
            "items": fresh({"X-A": "1"}.items),
            "UserDict": Mapping({"X-A": "1"}),
            "proxy": types.MappingProxyType({"X-A": "1"}),
            "istr": {istr("X-A"): "1"},
            "subclass of str": {Text("X-A"): Text("1")},
            "not ASCII": {"X-A": "ü"},
            "Host": {"Host": "other.test"},
            "Accept-Encoding": {"Accept-Encoding": "identity"},
            "Authorization": {"Authorization": "Basic eA=="},
            "Cookie": {"Cookie": "a=1; b=2"},
            "Connection": {"Connection": "close"},
            "empty value": {"X-A": ""},
            "number": {"X-A": 5},
            "None value": {"X-A": None},
            "bytes": {"X-A": b"1"},
            "bytes name": {b"X-A": "1"},
            "line break": {"X-A": "1\r\nX-B: 2"},
            "line break in a name": {"X-A\r\n": "1"},
            "NUL": {"X-A": "\0"},
            "lone surrogate": {"X-A": "\udcff"},
            "a number of them": 5,
            "str": "X-A: 1",
            "triples": [("a", "b", "c")],
        }.items()
    },
    "headers: Content-Type": post(headers={"Content-Type": "a/b"}, data=b"abc"),
    "headers: Content-Length": post(headers={"Content-Length": "3"}, data=b"abc"),
    "headers over defaults": get(
        headers=[("X-A", "own"), ("X-A", "own too")],
        session={"headers": [("x-a", "default"), ("X-B", "b"), ("X-B", "c")]},
    ),
    "skip_auto_headers": post(
        skip_auto_headers=["User-Agent", "content-type"], data=b"abc"
    ),
    "skip_auto_headers: set": get(skip_auto_headers={"user-agent"}),
    "skip_auto_headers: str": get(skip_auto_headers="User-Agent"),
    "skip_auto_headers: iterator": get(
        skip_auto_headers=fresh(lambda: iter(["User-Agent", "Accept"]))
    ),
    "skip_auto_headers: number": get(skip_auto_headers=5),
    "skip_auto_headers of the session": get(
        session={"skip_auto_headers": ["Accept"]}, skip_auto_headers=["User-Agent"]
    ),
}

COOKIES = {
    **{
        f"cookies: {name}": get(cookies=value)
        for name, value in {
            "dict": {"a": "1", "b": "2 3"},
            "empty dict": {},
            "pairs": [("a", "1"), ("b", "2")],
            "iterator": fresh(lambda: iter([("a", "1")])),
            "generator": fresh(lambda: (pair for pair in [("a", "1")])),
            "items": fresh({"a": "1"}.items),
            "SimpleCookie": fresh(simple_cookie),
            "Morsel": fresh(lambda: {"a": simple_cookie()["a"]}),
            "proxy": types.MappingProxyType({"a": "1"}),
            "subclass of str": {Text("a"): Text("1")},
            "bad name": {"a b": "1"},
            "number": {"a": 1},
            "no cookies": 5,
        }.items()
    },
    "cookies of the session": get(session={**JAR, "cookies": {"s": "1"}}),
    "cookies over those of the session": get(
        session={**JAR, "cookies": {"s": "1", "a": "0"}}, cookies={"a": "1"}
    ),
    "cookies that are kept": get("/cookies", session=JAR, send=twice),
    "cookies that are not kept": get("/cookies", send=twice),
    "cookies of a redirect": get("/cookies-then", session=JAR),
    "cookies unquoted": get(
        session={"cookie_jar": cookie_jar(quote_cookie=False)}, cookies={"a": "1 2"}
    ),
    "cookies: DummyCookieJar": get(
        "/cookies", session={"cookie_jar": fresh(aiohttp.DummyCookieJar)}, send=twice
    ),
}

AUTHS = {
    "auth": get(auth=AUTH),
    "auth of the session": get(session={"auth": AUTH}),
    "auth of the session, elsewhere": get(
        url=ELSEWHERE, session={"auth": AUTH}, proxy=PROXY
    ),
    "auth of the session, base": get(url="x", session={**BASE, "auth": AUTH}),
    "auth as a tuple": get(auth=("user", "password")),
    "auth as a str": get(auth="user"),
    "auth and Authorization": get(auth=AUTH, headers={"Authorization": "Basic eA=="}),
    "auth and user in the URL": get(
        url=Fresh(lambda scene: scene.server.url.with_user("me")), auth=AUTH
    ),
}


def closed_connector():
    """Make a connector that cannot be used."""
    connector = aiohttp.TCPConnector()
    connector._closed = True
    return connector


ERRORS = {
    "method None": kind(None),
    "method, a number": kind(5),
    "method, bytes": kind(b"GET"),
    "method, empty": kind(""),
    "method, bad": kind("BAD METHOD"),
    "method with a line break": kind("GET\r\nX: 1"),
    **{
        f"URL {name}": get(url=url)
        for name, url in {
            "None": fresh(lambda: None),
            "bytes": b"http://a/",
            "number": 5,
            "empty": "",
            "without a host": "http://",
            "relative": "/path",
            "without a scheme": "example.com/path",
            "with a bad host": "http://[::1",
            "with a bad port": "http://127.0.0.1:port/",
            "with a port too large": "http://127.0.0.1:99999/",
            "with a host too long": f"http://{'a' * 70}.test/",
            "of ftp": "ftp://127.0.0.1/",
            "of no kind": "nonsense",
        }.items()
    },
    "URL with a lone surrogate": get("/\udcff?\udcff"),
    "URL with a line break": get("/\r\nX: 1"),
    "no URL": get(send=without_url),
    "unknown argument": get(nonsense=1),
    "no argument of that verb": get(send=by_verb, nonsense=1),
    "session closed": get(send=to_closed),
    "session closed, bad URL": get(url="http://[", send=to_closed),
    "connector closed": get(
        session={"connector": fresh(closed_connector)}, again=False
    ),
    "max_redirects, a str": get("/redirect/302/1", max_redirects="x"),
    "server_hostname, a number": get(url=TLS_URL, ssl=TRUST, server_hostname=5),
}
