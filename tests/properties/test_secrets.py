"""No secret gets through a mask: in texts, bodies and errors that quote it."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode
from xml.sax.saxutils import escape, quoteattr

import aiohttp
import pytest
from chains import NOW, in_virtual_time, log_of, raised_from, retrying, session
from hostile_answers import views_of
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import RetryStrategy
from aioretry_smithy._text.mask import DEFAULT_MASK, HIDDEN, Mask

MARK = "S3CR3T"
secrets = st.text(max_size=12).map(lambda text: f"{MARK}{text}{MARK}")
words = st.sampled_from(["token", "password", "secret", "signature", "api_key", "pwd"])
plain = st.text("abcxyz019/", max_size=8)


@st.composite
def spellings(draw, names):
    """Draw a name in any mixture of small and capital letters."""
    return "".join(draw(st.sampled_from([c.lower(), c.upper()])) for c in draw(names))


@given(
    user=secrets,
    password=secrets,
    path=plain,
    query=st.lists(st.tuples(spellings(words), secrets), max_size=3),
    fragment=st.none() | secrets.map(lambda text: text.replace("&", "")),
    # After a number sign the URL would be part of a fragment, and behind the beginning
    # of JSON part of a value; and hidden with these.
    around=st.tuples(st.text(st.characters(exclude_characters="#{[")), st.text()),
)
@example(
    user=MARK,
    password=f"{MARK}#{MARK}",
    path="",
    query=[],
    fragment=f"{MARK}@{MARK}",
    around=("", ""),
)
def test_a_url_shows_no_secret(user, password, path, query, fragment, around):
    """However the secret is written, yarl quotes it and the mask hides all of it."""
    url = URL.build(
        scheme="https",
        host="example.com",
        user=user,
        password=password,
        path=f"/{path}",
        query=query,
        fragment="" if fragment is None else f"access_token={fragment}",
    )
    before, after = around
    shown = DEFAULT_MASK.text(f"{before}{url} {after}")

    assert MARK not in shown
    assert "example.com" in shown


@given(
    user=secrets,
    name=spellings(words),
    value=secrets,
    fragment=secrets,
    outer=st.lists(st.sampled_from(["back", "next", "u"]), min_size=1, max_size=4),
)
def test_a_quoted_url_shows_no_secret(user, name, value, fragment, outer):
    """However often a URL is put into the query of another one."""
    url = URL.build(
        scheme="https",
        host="example.com",
        user=user,
        path="/",
        query={name: value},
        fragment=f"access_token={fragment.replace('&', '')}",
    )
    for parameter in outer:
        url = URL("https://example.com/").with_query({parameter: str(url), "page": "2"})
    shown = DEFAULT_MASK.text(f"see {url} there")

    assert MARK not in shown
    assert shown.startswith("see https://example.com/?")
    assert shown.endswith("&page=2 there")


@given(name=st.text("abcdefgh-_", min_size=1), value=secrets)
def test_a_parameter_that_was_named_shows_no_secret(name, value):
    """Names that the user adds are as good as the usual ones."""
    url = URL("http://example.com/").with_query({name: value, "page": "2"})
    shown = Mask(query_parameters=[name]).text(str(url))

    assert MARK not in shown
    assert shown.endswith("&page=2")


pieces = st.sampled_from([*"ab:/@?&#;=%key []\n1", "%3A", "%2F", "%40", "%3D", "%25"])


@given(text=st.lists(pieces, max_size=60).map("".join))
@example("//:@//:@")
@example("//a:b//c:d@")
@example("?key=?key=")
def test_masking_ends_and_is_stable(text):
    """Nonsense is no trouble, and what was masked stays masked."""
    once = DEFAULT_MASK.text(text)

    assert once == DEFAULT_MASK.text(once)


NAMES = ["password", "Access-Token", "api key", "clientSecret", "pwd", "x_signature"]
text = st.text(max_size=12) | st.text("\\\"'{}[]():=,&;<>/ \n\rab", max_size=12)
secret_texts = st.builds(lambda a, b: f"{MARK}{a}{MARK}{b}{MARK}", text, text)
names = st.sampled_from([*NAMES, *map(str.upper, NAMES)]) | st.builds(
    lambda before, after: f"{before} token {after}", text, text
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | text
letters = st.text("abc", max_size=3)
cuts = st.integers(min_value=0)


def nested(values, names=text):
    return st.recursive(
        values,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(names, inner, max_size=3)
            | st.builds(json.dumps, inner)
        ),
        max_leaves=6,
    )


members = st.dictionaries(names, nested(secret_texts), max_size=2)


def inner_dicts(inner):
    return st.dictionaries(text, inner, max_size=3)


documents = st.recursive(
    scalars | members,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(text, inner, max_size=3)
        | st.builds(
            lambda a, b, c: {**a, **b, **c}, members, inner_dicts(inner), members
        )
        | st.builds(json.dumps, inner, ensure_ascii=st.booleans())
    ),
    max_leaves=12,
)


def shown_of(body, cut):
    return DEFAULT_MASK.content(body[: cut % (len(body) + 1)])


@given(
    document=documents,
    indent=st.sampled_from([None, 0, 2]),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (",\n", "\n:\r\n")]),
    ensure_ascii=st.booleans(),
    cut=cuts,
)
def test_a_document_shows_no_secret(document, indent, separators, ensure_ascii, cut):
    """However it is nested, also as a string in a string."""
    body = json.dumps(
        document, indent=indent, separators=separators, ensure_ascii=ensure_ascii
    )

    assert MARK not in DEFAULT_MASK.content(body)
    assert MARK not in shown_of(body, cut)


@given(
    before=st.lists(st.tuples(text, text), max_size=3),
    name=names,
    secret=secret_texts,
    after=st.lists(st.tuples(text, text), max_size=3),
    cut=cuts,
)
def test_a_form_shows_no_secret(before, name, secret, after, cut):
    """The first field is hidden like any other, and no other with it."""
    body = urlencode([*before, (name, secret), *after])
    shown = DEFAULT_MASK.content(body)

    assert MARK not in shown
    assert body.count("&") == shown.count("&")
    assert MARK not in shown_of(body, cut)


@given(
    name=st.sampled_from(["Password", "wsse:Password", "SecretAccessKey", "token"]),
    attribute=text,
    secret=secret_texts,
    before=text,
    cut=cuts,
)
def test_an_element_shows_no_secret(name, attribute, secret, before, cut):
    """Neither as a text nor as the value of an attribute."""
    attribute = attribute.replace(">", "")
    body = (
        f"<a><b>{escape(before)}</b><{name} type={quoteattr(attribute)}>"
        f"{escape(secret)}</{name}><c token={quoteattr(secret)}/></a>"
    )

    assert MARK not in DEFAULT_MASK.content(body)
    assert MARK not in shown_of(body, cut)


def url_with(user, password):
    return str(URL.build(scheme="https", host="h", user=user, password=password))


@st.composite
def bodies_with_urls(draw, urls):
    """Draw a text of some kind with a URL in it."""
    before, url, after = draw(text), draw(urls), draw(text)
    return draw(
        st.sampled_from(
            [
                json.dumps({"a": before, "b": f"{before} {url}", "c": after}),
                json.dumps({"a": json.dumps({"b": url}), "c": after}),
                json.dumps([url], separators=(",", ":")),
                urlencode({"a": before, "b": url, "c": after}),
                urlencode({"a": urlencode({"b": url})}),
                f"<a b={quoteattr(url)}>{escape(before)} {escape(url)}</a>",
                f"see {url} {after}",
            ]
        )
    )


@given(body=bodies_with_urls(st.builds(url_with, secret_texts, secret_texts)), cut=cuts)
def test_a_url_that_is_cut_shows_no_user(body, cut):
    """Where the preview ends nobody knows whether a host or a user was meant."""
    shown = DEFAULT_MASK.content(f"{body[: cut % len(body)]}…")

    assert MARK not in shown
    assert shown.endswith("…")
    assert MARK not in DEFAULT_MASK.content(body)


@given(body=bodies_with_urls(st.builds(url_with, letters, secret_texts)), cut=cuts)
def test_a_url_that_has_not_come_whole_shows_no_password(body, cut):
    """Not even where nothing tells that more will come."""
    assert MARK not in shown_of(body, cut)


@given(
    before=st.lists(st.tuples(text, text), max_size=2),
    document=members | documents,
    after=st.lists(st.tuples(text, text), max_size=2),
    cut=cuts,
)
def test_json_in_a_form_shows_no_secret(before, document, after, cut):
    """Also where the form is in a form itself."""
    body = urlencode([*before, ("a", json.dumps(document)), *after])

    assert MARK not in DEFAULT_MASK.content(body)
    assert MARK not in DEFAULT_MASK.content(urlencode({"b": body}))
    assert MARK not in shown_of(body, cut)


@given(
    secret=nested(
        st.integers() | st.booleans() | st.none() | st.text('ab"\\[{'), letters
    ),
    tail=nested(st.integers() | st.text("ab \n"), letters),
)
def test_only_the_secret_is_hidden(secret, tail):
    """The text after a secret in a document is shown."""
    body = json.dumps({"token": secret, "tail": tail})
    hidden = json.dumps({"token": HIDDEN, "tail": tail}).replace(f'"{HIDDEN}"', HIDDEN)

    assert hidden == DEFAULT_MASK.content(body)


CANARY = "c4n4ry"
TWICE = retrying(RetryStrategy.failsafe(NOW), max_total_attempts=2)

inside = st.text(max_size=8) | st.text("'\"\\ ,)}]>=&\n", max_size=8)
quoted_secrets = inside.map(lambda text: f"{CANARY}{text}{CANARY}")
argument_names = st.sampled_from(
    "token accessToken X_Api_Key password cookies set_cookie auth client_secret".split()
)
other_values = st.one_of(
    st.none(), st.integers(), st.text("ac '\"\\({[=:,", max_size=6), st.binary()
)


@dataclasses.dataclass
class Box:
    """Describes itself as many classes of users do."""

    token: Any
    note: Any


Pair = collections.namedtuple("Pair", "note password")
BasicAuth = collections.namedtuple("BasicAuth", "login word")


def as_json(name, value):
    """Quote a value as JSON, in which it has the name of a secret."""
    return json.dumps({"a": 1, name: repr(value), "b": 2})


@st.composite
def holders(draw, values, beside):
    """Draw an object that has a value under the name of a secret, and others."""
    name, value, other = draw(argument_names), draw(values), draw(beside)
    return draw(
        st.sampled_from(
            [
                {"a": other, name: value, "b": other},
                {name.encode(): value, b"a": other},
                [("a", other), (name, value)],
                {"name": name, "value": value, "a": other},
                SimpleNamespace(a=other, **{name: value}),
                functools.partial(print, other, **{name: value}),
                CIMultiDict([("a", other), (name.replace("_", "-"), value)]),
                Box(value, other),
                Pair(other, value),
                BasicAuth(value, value),
                as_json(name, value),
            ]
        )
    )


def wrapped(inner):
    """Draw what has an object with a secret in it, somewhere."""
    return st.one_of(
        holders(quoted_secrets | inner, other_values | inner),
        st.tuples(other_values, inner),
        st.lists(inner, min_size=1, max_size=2),
        inner.map(lambda value: {"a": value}),
        inner.map(ValueError),
        inner.map(repr),
        inner.map(str),
        inner.map(lambda value: json.dumps({"a": repr(value)})),
    )


objects = st.recursive(
    holders(quoted_secrets | quoted_secrets.map(str.encode), other_values),
    wrapped,
    max_leaves=4,
)


@st.composite
def errors(draw):
    """Draw an exception that quotes such an object, as users write them."""
    value = draw(objects)
    kind = draw(
        st.sampled_from([OSError, aiohttp.ClientError, aiohttp.ServerDisconnectedError])
    )
    error = draw(
        st.sampled_from(
            [
                kind(value),
                kind(f"failed: {value!r}"),
                kind(f"{value} of 3, n={value!r}"),
            ]
        )
    )
    return raised_from(error, ValueError(value))


@given(first=errors(), last=errors())
def test_no_view_shows_a_secret_of_an_exception(first, last, tmp_path_factory):
    """Whatever class has it, and however often it was quoted."""
    pytest.importorskip("rich", reason="needs the extra cli")
    folder = tmp_path_factory.getbasetemp()

    async def call():
        return await log_of(session([first, last], TWICE))

    log = in_virtual_time(call())
    shown = {**views_of(log, folder), "notes": "\n".join(last.__notes__)}
    assert [] == [name for name, text in shown.items() if CANARY in text]
