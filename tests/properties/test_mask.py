"""No secret gets through a mask, whatever stands around it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from aioretry_smithy._text.mask import DEFAULT_MASK, Mask

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


@given(
    name=spellings(
        st.sampled_from(
            ["authorization", "proxy-authorization", "cookie", "set-cookie"]
        )
    ),
    value=secrets,
    other=plain,
)
def test_a_header_shows_no_secret(name, value, other):
    """The case of the name does not matter, nor does the value; the rest is shown."""
    shown = DEFAULT_MASK.headers({name: value, "X-Other": other})

    assert {name: "****", "X-Other": other} == shown


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
