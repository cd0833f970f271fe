"""Texts of errors that quote what Python says of objects show no secret of them."""

import time
from http.cookies import SimpleCookie

import aiohttp
import pytest
from chains import log_of, session
from multidict import CIMultiDict

from aioretry_smithy import LoggingClient

SECRET = "hunter2"


async def shown(text, **names):
    """Return what a log shows of an error with this text."""
    logging_ = LoggingClient.new_decorator(**names)
    log = await log_of(session([ValueError(text)], logging_))
    return log.to_dict()["response_cause"].removeprefix("ValueError: ")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        # Arguments
        ("Box(token='a', n=1)", "Box(token=****, n=1)"),
        ('Box(token="it\'s", n=1)', "Box(token=****, n=1)"),
        ("Box(token='a\"it\\'s', n=1)", "Box(token=****, n=1)"),
        ("Box(token=URL('a'), n=1)", "Box(token=****, n=1)"),
        ("Box(token=['a', ')'], n=1)", "Box(token=****, n=1)"),
        ("Box(token=<A 'a' at 1>, n=1)", "Box(token=****, n=1)"),
        ("Box(token=<a->b> c)", "Box(token=**** c)"),
        ("Box(token=[1 > 0], n=1)", "Box(token=****, n=1)"),
        ("Box(n=1, token=7)", "Box(n=1, token=****)"),
        ("<Box token=a b=1>", "<Box token=**** b=1>"),
        ("password = 'a c'.", "password = ****."),
        ("password == 'a'", "password == ****"),
        ("password='it's'.", "password=****."),
        ("cookies={'a': 'b'}", "cookies=****"),
        ("self.api_key='a'", "self.api_key=****"),
        # Members
        ("{'token': 'a', 'n': 1}", "{'token': ****, 'n': 1}"),
        ("{'n': 1, 'token': {'a': [1, '}']}}", "{'n': 1, 'token': ****}"),
        ("{b'Set-Cookie': 1, 'n': 2}", "{b'****': ****, 'n': 2}"),
        ('failed: {"token": "a\\"b", "n": 1}', 'failed: {"token": ****, "n": 1}'),
        ("'token' => 'a', 'n' => 1", "'token' => ****, 'n' => 1"),
        ("{'user name token': 'a'}", "{'user name token': ****}"),
        # Pairs
        ("[('Cookie', 'a'), ('n', 1)]", "[('Cookie', ****), ('n', 1)]"),
        ("[['X-Api-Key', 'a'], ['n', 1]]", "[['X-Api-Key', ****], ['n', 1]]"),
        ("[('token', 12)]", "[('token', ****)]"),
        ("[('token', ('a', 'b'))]", "[('token', ****)]"),
        ("Header(name='Cookie', value='a')", "Header(name='Cookie', value=****)"),
        (
            "{'name': 'Cookie', 'value': 'a', 'n': 1}",
            "{'name': 'Cookie', 'value': ****, 'n': 1}",
        ),
        # Headers
        ("GET /\r\nCookie: a b\r\nHost: h", "GET /\r\nCookie: ****\r\nHost: h"),
        ("Authorization: Bearer a, b", "Authorization: ****"),
        ("['-H', 'X-Api-Key: a d', 'c']", "['-H', 'X-Api-Key: ****', 'c']"),
        ("dpop: a", "dpop: ****"),
        ("{'Name': 'token', 'Value': 'a'}", "{'Name': 'token', 'Value': ****}"),
        # Sentences
        ("got Bearer a1b2c3d4, no", "got Bearer ****, no"),
        ("Basic dXNlcjphMQ== failed", "Basic **** failed"),
        ("Authorization=Bearer abc", "Authorization=****"),
        ("AUTHORIZATION : Bearer abc12345", "AUTHORIZATION : Bearer ****"),
        ("invalid token: hunter2.", "invalid token: ****"),
        ("x_api_key: 'hunter'", "x_api_key: ****"),
        ("run --password=a -v", "run --password=**** -v"),
        # Objects
        ("BasicAuth(login='a', password='b')", "BasicAuth(****)"),
        ("auth=BasicAuth('a'), n=1", "auth=****, n=1"),
        ("APIKey('a'), 1", "APIKey(****), 1"),
        ("Credentials(user='a', id='b') of c", "Credentials(****) of c"),
        ("BasicAuth(", "BasicAuth("),
        # Cut, or in doubt
        ("{'token': 'a", "{'token': ****"),
        ("{'token': ['a', ", "{'token': ****"),
        ("('token', 'a'", "('token', ****"),
        ("Box(token='a\\\\', n='b')", "Box(token=****"),
        # Quoted again
        (
            "['{\\'token\\': \\'a\\', \\'n\\': 1}']",
            "['{\\'token\\': ****, \\'n\\': 1}']",
        ),
        ("\"{'token': 'a', 'n': 1}\"", "\"{'token': ****, 'n': 1}\""),
    ],
)
async def test_secret_of_a_repr_is_hidden(text, masked):
    """What else it says is shown."""
    assert masked == await shown(text)
    assert masked == await shown(masked)


@pytest.mark.parametrize(
    "text",
    [
        "Box(token=None, password='****')",
        "{'token': None, 'key': True}",
        "unexpected token: < in JSON",
        "missing: ['page', 'token', 'size']",
        "missing: ('token', 'page', 'size')",
        "got 'token', expected 'page'",
        "KeyError('token')",
        "InvalidTokenError('expired')",
        "fetch_token() gave nothing",
        "f() got an unexpected keyword argument 'token'",
        "Box(n=1, page='2', name=\"a\", monkey='b')",
        "{'page': 2, 'Retry-After': '3', 'Idempotency-Key': 'a'}",
        "Cannot connect to host a:443 ssl:default [Connect call failed ('::1', 443)]",
        'Bearer realm="a", error="invalid_token"',
        "max_tokens=7, usage={'total_tokens': 7}",
        "token=, password=)",
        "unexpected token: line 12; password: required",
        "cache key: user_12345, session: 1234567",
        'Bearer authentication, Basic realm="level2"',
        "Box(tokenizer='gpt2', primary_key='id', cache_key='a', token_type='b')",
        "{'tokens': 5, 'sessions': 12, 'token_count': 7, 'secretary': 'a'}",
        "Box(session=<aiohttp.client.ClientSession object at 0x7fA>)",
        "C:\\new\\cookbook: no such file",
        "Cannot connect to host auth-service:8080 ssl:default [Name not known]",
        "circuit breaker 'session-api.example.com:443' is open, next trial in 0.8 s",
        'no answer of "auth-service:8080"',
        "(auth-service:8080)",
        "auth-service:8080: not reached",
        "asked auth-service:65535.",
        "GET http://auth-service:8080/orders?page=2 failed",
        "ws://tokens:8080/orders/17",
        "http://token.example.com:8080?a=1",
        "http://****@tokens:8080/orders/17",
        "auth-service:8080",
        "",
    ],
)
async def test_repr_without_a_secret_is_shown(text):
    """A log that hides everything helps nobody."""
    assert text.replace("'****'", "****") == (await shown(text)).replace(
        "'****'", "****"
    ).replace("ValueError", "")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("X-Api-Token: 8080", "X-Api-Token: ****"),
        ("X-Api-Token:8080S3CR3T", "X-Api-Token:****"),
        ("X-Api-Token:123456", "X-Api-Token:****"),
        ("Set-Cookie:1; sid=S3CR3T", "Set-Cookie:****"),
        ("Cookie:8080", "Cookie:****"),
        ("auth-service:0", "auth-service:****"),
        ("Set-Cookie:8080", "Set-Cookie:****"),
        ("curl -H 'X-Api-Key:8080'", "curl -H 'X-Api-Key:****'"),
        ("X-Api-Key:42/S3CR3T", "X-Api-Key:****"),
        ("db.password:8080/S3CR3T", "db.password:****"),
        ("http://user-token:8080@h/", "http://****"),
        ("token:8080/S3CR3T", "token:****"),
    ],
)
async def test_a_port_is_a_short_number_behind_a_host(text, masked):
    """Whatever else stands behind a secret name is hidden."""
    assert masked == (await shown(text)).removeprefix("ValueError: ")


@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated")
async def test_reprs_of_aiohttp():
    """Its own classes are the ones that errors quote most."""
    auth = aiohttp.BasicAuth("me", SECRET)
    key = aiohttp.client_reqrep.ConnectionKey("h", 80, False, True, None, auth, None)
    headers = CIMultiDict({"Authorization": f"Bearer {SECRET}", "Accept": "*/*"})
    cookies = SimpleCookie(f"sid={SECRET}; user={SECRET}")
    request = aiohttp.RequestInfo("/", "GET", headers, "/")
    error = aiohttp.ClientResponseError(request, (), status=500, headers=headers)
    for each in auth, key, headers, cookies, cookies["user"], request, error:
        assert SECRET not in await shown(f"failed: {each!r}")
    assert "<CIMultiDict('Authorization': ****, 'Accept': '*/*')>" == await shown(
        repr(headers)
    )


async def test_names_of_ones_own_are_hidden_in_reprs():
    """Those of headers and those of query parameters, in any case."""
    names = {"sensitive_headers": ["X-Me"], "sensitive_query_parameters": ["code"]}
    text = "{'X-ME': 'a', 'n': 1} (Code='b') x-me: c"

    assert "{'X-ME': ****, 'n': 1} (Code=****) x-me: ****" == await shown(text, **names)
    assert text == await shown(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "'token': ",
        "token=[",
        "('token', [",
        "('token', 'a' ",
        "('token',-",
        "('token',x",
        "'a':",
        "token='a' ",
        "Auth(",
        "A",
        "'",
        "\\",
        "\\'",
        "='",
        "a.b-",
        "Cookie: a\\n",
        "<Morsel: ",
        "Key((",
        "a b:'",
        "'token':'\\\\\\'",
        "password='",
        "password:",
        "Bearer a",
        "a --b=",
        "token=\\\\'",
    ],
)
async def test_hostile_header_takes_no_time(unit):
    """A server that sends 200 kB of anything does not stop the event loop."""
    log = await log_of(session([(200, {"X-A": unit * (200_000 // len(unit))}, b"")]))
    started = time.process_time()
    log.to_dict()

    assert time.process_time() - started < 2.0
