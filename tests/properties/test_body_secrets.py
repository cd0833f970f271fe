"""No secret member of a body gets through, wherever the body is cut."""

from __future__ import annotations

import json
from urllib.parse import urlencode
from xml.sax.saxutils import escape, quoteattr

from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from aioretry_smithy._text.mask import DEFAULT_MASK, HIDDEN

MARK = "S3CR3T"
NAMES = ["password", "Access-Token", "api key", "clientSecret", "pwd", "x_signature"]
text = st.text(max_size=12) | st.text("\\\"'{}[]():=,&;<>/ \n\rab", max_size=12)
secret_texts = st.builds(lambda a, b: f"{MARK}{a}{MARK}{b}{MARK}", text, text)
names = st.sampled_from([*NAMES, *map(str.upper, NAMES)]) | st.builds(
    lambda before, after: f"{before} token {after}", text, text
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | text
plain = st.text("abc", max_size=3)
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


@given(body=bodies_with_urls(st.builds(url_with, plain, secret_texts)), cut=cuts)
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
        st.integers() | st.booleans() | st.none() | st.text('ab"\\[{'), plain
    ),
    tail=nested(st.integers() | st.text("ab \n"), plain),
)
def test_only_the_secret_is_hidden(secret, tail):
    """The text after a secret in a document is shown."""
    body = json.dumps({"token": secret, "tail": tail})
    hidden = json.dumps({"token": HIDDEN, "tail": tail}).replace(f'"{HIDDEN}"', HIDDEN)

    assert hidden == DEFAULT_MASK.content(body)
