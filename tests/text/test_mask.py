"""Logs hide credentials in URLs, headers and the messages of errors."""

import time
from urllib.parse import quote

import pytest
from multidict import CIMultiDict
from pairs import each_value
from yarl import URL

from aioretry_smithy._text.mask import DEFAULT_MASK, Mask


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://u:p@example.com/", "https://****@example.com/"),
        ("https://token@example.com/", "https://****@example.com/"),
        ("https://:p@example.com:1/", "https://****@example.com:1/"),
        ("//u:p@example.com/", "//****@example.com/"),
        ("http://u:p@a/ or http://v:q@b/", "http://****@a/ or http://****@b/"),
        ("http://u:p@q@example.com/", "http://****@example.com/"),
        # Not URLs: the caller forgot to quote the password.
        ("http://u:p/q@example.com/", "http://****@example.com/"),
        ("http://u:p?q@example.com/", "http://****@example.com/"),
        ("http://u:1#q@example.com/", "http://u:1#q@example.com/"),
        ("http://u:p#q@example.com/", "http://****@example.com/"),
        ("http:///u:p@example.com/", "http:///****@example.com/"),
        ("http:////u:p@example.com/", "http:////****@example.com/"),
        # Nor with a blank, which no word of a text has.
        ("http://u v:p@example.com/ b", "http://****@example.com/ b"),
        ("http://u:p q@example.com/ b", "http://****@example.com/ b"),
        ("http://u v:p@example.com:x/", "http://****@example.com:x/"),
        ("a //u v:p@b, //w x:q@c", "a //****@b, //****@c"),
    ],
)
def test_user_and_password_are_hidden(text, shown):
    """The part before the ``@`` of a URL does not appear."""
    assert shown == DEFAULT_MASK.text(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:4873/@scope/package",
        "http://[::1]:8080/@scope",
        "http://example.com/?mail=a@example.com",
        "write to http://example.com: a@example.com",
        "write to http://example.com:80 not to a:b@example.com",
        "see http://a said\nb:c@d",
        "// a:b@c",
        "a@example.com // b@example.com",
        "GET /?page=2&sort=name#top",
        "/?monkey=1&tokyo=2&keyboard=3&signal=4&passenger=5",
        "no URL at all",
        "",
    ],
)
def test_what_is_no_secret_is_shown(text):
    """A log that hides everything helps nobody."""
    assert text == DEFAULT_MASK.text(text)


@each_value(
    before=["?", "?a=1&", "#", "?a=b;", "?next=/login?"],
    name=[
        "token",
        "access_token",
        "id-token",
        "X-Amz-Security-Token",
        "X-Amz-Signature",
        "X-Amz-Credential",
        "AWSAccessKeyId",
        "key",
        "KEY",
        "api_key",
        "apiKey",
        "x-functions-key",
        "subscription-key",
        "subscriptionKey",
        "client_secret",
        "password",
        "passwd",
        "pwd",
        "pass",
        "sig",
        "signature",
        "jwt",
        "auth",
        "authorization",
        "sid",
        "sessionid",
        "sessid",
        "PHPSESSID",
        "csrf",
        "xsrf",
        "client_assertion",
        "to%6Ben",
        "access%5Ftoken",
    ],
)
def test_secret_parameters_are_hidden(name, before):
    """The usual names are known in any spelling, also where URLs are nested."""
    shown = DEFAULT_MASK.text(
        f"http://example.com/{before}{name}=S3CR3T?;=/@S3CR3T&b=2"
    )

    assert f"http://example.com/{before}{name}=****&b=2" == shown


def test_a_message_around_a_url_stays():
    """Of an error's text only the secret goes."""
    text = "502, message='Bad', url='http://u:p@h/?key=k' (tried twice)"

    assert (
        "502, message='Bad', url='http://****@h/?key=**** (tried twice)"
        == DEFAULT_MASK.text(text)
    )


def test_masking_twice_changes_nothing():
    """A value that is hidden already stays as it is."""
    once = DEFAULT_MASK.text("http://u:p@h/?key=k&a=1")

    assert once == DEFAULT_MASK.text(once)


def test_very_many_parameters_take_no_time():
    """A hostile ``Location`` header neither recurses nor stalls."""
    text = "?a=" * 20_000 + "?token=S3CR3T"

    assert "?a=" * 20_000 + "?token=****" == DEFAULT_MASK.text(text)


def quoted(text, times=1):
    """Return *text* as it stands in a parameter of a URL, or deeper."""
    for _ in range(times):
        text = quote(text, safe="")
    return text


@pytest.mark.parametrize("times", range(1, 6))
@pytest.mark.parametrize(
    "inner",
    [
        "https://me/hook?token=S3CR3T&a=1",
        "https://me/?a=1#access_token=S3CR3T",
        "https://u:S3CR3T@example.com/",
        "//S3CR3T@example.com/",
        "https://u:S3CR 3T@example.com/",
        "/login?password=S3 CR3T&a=1",
        "token=S3CR3T&a=1",
        "to%6Ben=S3CR3T",
        '{"user": "u", "token": "S3CR3T", "n": 1}',
        '{"token":"S3CR3T&b=c}{","n":1}',
        '[{"a": {"password": ["S3CR3T"]}}]',
        '{"p\\u0061ssword": "S3CR3T"}',
        '{"back": "https://me/?token=S3CR3T"}',
    ],
)
def test_quoted_secret_hides_the_value_that_it_stands_in(times, inner):
    """A URL or JSON in a parameter of a URL shows nothing; the rest is shown."""
    url = f"https://example.com/?back={quoted(inner, times)}&page=2"

    assert "https://example.com/?back=****&page=2" == DEFAULT_MASK.text(url)


@pytest.mark.parametrize("times", range(1, 6))
@pytest.mark.parametrize(
    "inner",
    [
        "https://me/?page=2&mail=a@example.com",
        "100% of Größe, 2+2=4",
        '{"page": 2, "sort": ["name"]}',
    ],
)
def test_quoted_value_without_a_secret_is_shown(times, inner):
    """Up to five times; what is quoted deeper is in doubt."""
    url = f"https://example.com/?back={quoted(inner, times)}&page=2"

    assert url == DEFAULT_MASK.text(url)


def test_json_that_is_not_quoted_hides_the_rest():
    """A secret in it has no sure end."""
    assert '/?q={"token":****' == DEFAULT_MASK.text('/?q={"token":"S3CR3T"} or not')
    assert '/?q={"page":2} or not' == DEFAULT_MASK.text('/?q={"page":2} or not')


def test_json_that_yarl_quoted_is_looked_into():
    """It leaves colons as they are and makes a blank a plus."""
    url = URL("https://h/").with_query(variables='{"password": "S3CR3T", "n": 1}')

    assert "https://h/?variables=****" == DEFAULT_MASK.text(str(url))


@pytest.mark.parametrize("name", ["Set-Cookie2", "Cookie2", "DPoP"])
def test_headers_that_are_credentials_are_hidden(name):
    """Some have no word in their name that tells."""
    assert {name: "****"} == DEFAULT_MASK.headers({name: "S3CR3T"})


@pytest.mark.parametrize("times", [6, 7, 20])
def test_what_is_quoted_deeper_is_hidden(times):
    """It counts as a secret."""
    inner = quoted("https://me/?token=S3CR3T", times)

    assert "/?back=****&page=2" == DEFAULT_MASK.text(f"/?back={inner}&page=2")
    assert "/?****&page=2" == DEFAULT_MASK.text(f"/?{inner}&page=2")
    assert "**** of 3" == DEFAULT_MASK.text(f"{inner} of 3")


@pytest.mark.parametrize(
    "name",
    """
    X-Api-Key X-Auth-Token X-Amz-Security-Token X-Goog-Api-Key X-Vault-Token
    X-CSRF-Token X-Hub-Signature-256 Ocp-Apim-Subscription-Key
    CF-Access-Client-Secret X-Session-Id apikey PRIVATE-TOKEN X-RateLimit-Token
    Idempotency-Key-Secret admin_tokens tokens
    """.split(),
)
def test_headers_with_secret_names_are_hidden(name):
    """The names of headers are judged as those of query parameters are."""
    assert {name: "****"} == DEFAULT_MASK.headers({name: "S3CR3T"})
    assert f"?{name}=****" == DEFAULT_MASK.text(f"?{name}=S3CR3T")


@pytest.mark.parametrize(
    "name",
    """
    Idempotency-Key idempotency_key X-Idempotency-Key armeria-retry-count
    amz-sdk-request amz-sdk-invocation-id Access-Control-Allow-Credentials
    Sec-WebSocket-Key X-RateLimit-Remaining-Tokens anthropic-ratelimit-tokens-reset
    max_tokens max_completion_tokens maxOutputTokens prompt_tokens total_tokens
    WWW-Authenticate Retry-After X-Amz-Request-Id ETag
    """.split(),
)
def test_headers_that_explain_a_retry_are_shown(name):
    """A header that sounds like a secret and is none helps readers of the log."""
    assert {name: "7"} == DEFAULT_MASK.headers({name: "7"})
    assert f"?{name}=7" == DEFAULT_MASK.text(f"?{name}=7")


def test_what_was_named_is_hidden_also_where_it_is_harmless():
    """A name that the user asks to hide is hidden."""
    mask = Mask(headers=["Idempotency-Key"], query_parameters=["idempotency_key"])

    assert {"idempotency-key": "****"} == mask.headers({"idempotency-key": "7"})
    assert "?idempotency_key=****" == mask.text("?idempotency_key=7")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Referer", "https://u:p@h/?key=k", "https://****@h/?key=****"),
        (
            "Link",
            '<https://h/?token=S3CR3T&page=2>; rel="next"',
            '<https://h/?token=****&page=2>; rel="next"',
        ),
        (
            "Location",
            "/login?back=https%3A%2F%2Fh%2F%3Ftoken%3DS3CR3T%26page%3D2",
            "/login?back=****",
        ),
    ],
)
def test_urls_that_headers_quote_are_looked_into(name, value, shown):
    """Headers that lead elsewhere are masked as any URL is."""
    assert {name: shown} == DEFAULT_MASK.headers({name: value})


def test_secret_headers_are_hidden():
    """The four headers of credentials are, in any case; others show their value."""
    headers = CIMultiDict(
        {
            "AUTHORIZATION": "Basic abc",
            "proxy-authorization": "Basic abc",
            "Cookie": "sid=1",
            "Set-Cookie": "sid=1",
            "Accept": "*/*",
        }
    )

    assert {
        "AUTHORIZATION": "****",
        "proxy-authorization": "****",
        "Cookie": "****",
        "Set-Cookie": "****",
        "Accept": "*/*",
    } == DEFAULT_MASK.headers(headers)


def test_repeated_headers_are_one_line():
    """Values are joined as HTTP does, and a hidden one is hidden once."""
    headers = CIMultiDict([("Via", "a"), ("Set-Cookie", "s=1")] * 2)

    assert {"Via": "a, a", "Set-Cookie": "****"} == DEFAULT_MASK.headers(headers)


def test_further_names():
    """One may name further headers and parameters, in any case."""
    mask = Mask(headers=["X-Api-KEY"], query_parameters=["Code"])

    assert {"x-api-key": "****"} == mask.headers({"x-api-key": "abc"})
    assert "?CODE=****&key=****" == mask.text("?CODE=abc&key=abc")


def test_masks_add_up():
    """Two masks hide what either hides, and neither is changed."""
    first, second = Mask(headers=["A"]), Mask(query_parameters=["b"])
    both = first | second

    assert {"a": "****"} == both.headers({"a": "1"})
    assert "?b=****" == both.text("?b=1")
    assert "?b=1" == first.text("?b=1")
    assert {"a": "1"} == second.headers({"a": "1"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "//a:b" * 40_000,
        "//a:b@" * 40_000,
        "?a=b&" * 40_000,
        f"%{'25' * 100_000}",
        "%2F%2Fa%3Ab" * 18_000,
        "%252F%252Fa%253Ab%2540" * 9_000,
        "%3Ftoken%3D%2526" * 12_000,
        "x" * 200_000 + "%25252525252525",
        "?a=%41" * 30_000,
        "//a:b" * 40_000 + " @",
        "?a={" * 50_000,
    ],
)
def test_masking_takes_time_in_proportion_to_the_text(text):
    """A server that sends such a header must not stop the event loop."""
    started = time.process_time()
    Mask().text(text)

    assert time.process_time() - started < 2.0
