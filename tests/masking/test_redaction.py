"""Where values of secret members end, in texts of all kinds."""

from __future__ import annotations

import time

import pytest

from aioretry_smithy._masking.mask import DEFAULT_MASK, Mask


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # JSON
        ('{"password": "x", "a": 1}', '{"password": ****, "a": 1}'),
        ('{"password":"x\\"y","a":1}', '{"password":****,"a":1}'),
        ('{"password":"x\\\\","a":1}', '{"password":****,"a":1}'),
        ('{"token": 12, "a": 1}', '{"token": ****, "a": 1}'),
        ('{"token": -1.5e+3}', '{"token": ****}'),
        ('{"token":null,"a":1}', '{"token":****,"a":1}'),
        ('{"tokens":["a","]b",["c"]],"a":1}', '{"tokens":****,"a":1}'),
        ('{"a":{"secret":{"b":"}"}},"c":1}', '{"a":{"secret":****},"c":1}'),
        ('{"api key":"x","a":1}', '{"api key":****,"a":1}'),
        ('{"password, old":"x","a":1}', '{"password, old":****,"a":1}'),
        ('{"a\\"password":"x","a":1}', '{"a\\"password":****,"a":1}'),
        ('{"password"\n:\n"x","a":1}', '{"password"\n:\n****,"a":1}'),
        ('{"p\\u0061ssword":"x"}', '{"p\\u0061ssword":****}'),
        ('{"authorization":"x","Cookie":"y"}', '{"authorization":****,"Cookie":****}'),
        ('{"key":"x","monkey":"y"}', '{"key":****,"monkey":"y"}'),
        # JSON in a string of JSON, and in a string of that
        ('{"a":"{\\"token\\": \\"x\\"}","b":1}', '{"a":"{\\"token\\": ****}","b":1}'),
        (
            '"{\\"a\\":\\"{\\\\\\"token\\\\\\":\\\\\\"x\\\\\\"}\\"}"',
            '"{\\"a\\":\\"{\\\\\\"token\\\\\\":****}\\"}"',
        ),
        # Sentences in JSON
        (
            '{"error":"SyntaxError: Unexpected token: < in JSON","code":7}',
            '{"error":"SyntaxError: Unexpected token: ****","code":7}',
        ),
        (
            '{"title":"No credit","detail":"Session: expired at \\"noon\\".","a":"b"}',
            '{"title":"No credit","detail":"Session: ****","a":"b"}',
        ),
        (
            '{"error":{"message":"Incorrect API key provided: sk-a. See","code":null}}',
            '{"error":{"message":"Incorrect API key provided: ****","code":null}}',
        ),
        ('["Token: a b","c"]', '["Token: ****","c"]'),
        ('"Token: a\n b" c', '"Token: ****" c'),
        ('[a]\nb = "c"\ntoken: d"e\nf: g', '[a]\nb = "c"\ntoken: ****\nf: g'),
        ('<a>Token: b "c" d</a>\n<e/>', "<a>Token: ****\n<e/>"),
        # Cut
        ('{"token":"abc', '{"token":****'),
        ('{"token": 12', '{"token": ****'),
        ('{"tokens":["a"', '{"tokens":****'),
        ('{"token":"a\\', '{"token":****'),
        ('{"token', '{"token'),
        ('{"token":', '{"token":'),
        # Forms
        ("password=x&b=1", "password=****&b=1"),
        ("a=1&password=x", "a=1&password=****"),
        ("user%5Bpassword%5D=x&b=1", "user%5Bpassword%5D=****&b=1"),
        ("user[password]=x&b=1", "user[password]=****&b=1"),
        ("password=&b=1", "password=&b=1"),
        ('password=a"b&b=1', "password=****&b=1"),
        ("password=1,x&b=1", "password=****&b=1"),
        ('password="a",x&b=1', "password=****&b=1"),
        ("password=[a],x&b=1", "password=****&b=1"),
        ("A=1 2\nPASSWORD=1,x\nB=1", "A=1 2\nPASSWORD=****\nB=1"),
        ("p=%7B%22token%22%3A%22x%22%7D&b=1", "p=****&b=1"),
        ("p=%7B%22monkey%22%3A%22x%22%7D&b=1", "p=%7B%22monkey%22%3A%22x%22%7D&b=1"),
        ("u=https%3A%2F%2Fh%2F%3Ftoken%3Dx&b=c+d", "u=****&b=c+d"),
        ("u=https:%5C/%5C/h%5C/&b=1", "u=https:%5C/%5C/h%5C/&b=1"),
        ("u=https%3A%2F%2Fa%3Ab%40h", "u=****"),
        ("u=https%3A%2F%2Fa%3Ab", "u=****"),
        ("a=b%3Dc%253De", "a=b%3Dc%253De"),
        ("a=b%3Dtoken%253Dx&c=d", "a=****&c=d"),
        ("a=b%3Dc%253Dtoken%25253De", "a=****"),
        # XML and HTML
        (
            "<a b='{&quot;token&quot;:&quot;x&quot;,&#34;c&#x22;:1}'/>",
            "<a b='{&quot;token&quot;:&quot****,&#34;c&#x22;:1}'/>",
        ),
        ('{"password":"a&quot;,x","b":1}', '{"password":****,"b":1}'),
        ("<a><Password>x</Password>y</a>", "<a><Password>****</Password>y</a>"),
        ('<a:Token>x</a:Token><b c="y"/>', '<a:Token>****</a:Token><b c="y"/>'),
        ("<Password>x", "<Password>****"),
        ("<token/>y", "<token/>y"),
        ("<a token='x' b='y'>", "<a token=**** b='y'>"),
        # YAML, headers, settings, code
        ("password: x\nb: y", "password: ****\nb: y"),
        ("password: |\n  x\n\n  y\nb: y", "password: ****\nb: y"),
        ("tokens:\n- x\n- y\nb: y", "tokens:\n****\nb: y"),
        ("- token: x\n- token: y", "- token: ****\n- token: ****"),
        ("Authorization: Bearer x\r\nB: y", "Authorization: ****\r\nB: y"),
        ("password = x y\nb = y", "password = ****\nb = y"),
        ('password = """\nx\n"""\nb = 1', "password = ****\nb = 1"),
        ("token: 'it''s', b: y", "token: ****, b: y"),
        ("'token' => 'x', 'b' => 1", "'token' => ****, 'b' => 1"),
        ('token := "x"y z\nb', "token := ****\nb"),
        ("login(token: (x), b: 1)", "login(token: ****, b: 1)"),
        # URLs
        ('{"u":"https://a:b@h/","m":"a@b.c"}', '{"u":"https://****@h/","m":"a@b.c"}'),
        ('{"u":"https:\\/\\/a:b@h"}', '{"u":"https://****@h"}'),
        ('{"u":"http://h?token=x","b":1}', '{"u":"http://h?token=****","b":1}'),
        ('{"u":"http://h?a=1\\u0026sig=x"}', '{"u":"http://h?a=1\\u0026sig=****"}'),
        ('{"u":"http://h?token\\u003dx\\u0026b"}', '{"u":"http://h?token\\u003d****"}'),
        ('{"a":"token\\u003A x","b":1}', '{"a":"token\\u003A ****","b":1}'),
        ("see https://a:x", "see https://****"),
        ('{"u":"postgres://app:x/y', '{"u":"postgres://****'),
        ('{"u":"https://h:80/","v":"//a:x', '{"u":"https://h:80/","v":"//****'),
        ("see http://h/?a=b@c…", "see http://h/?a=b@c…"),
        ("see https://a:12…", "see https://****…"),
        ("see https://a…", "see https://****…"),
        ("u=https%3A%2F%2Fa…", "u=****…"),
        ("u=https%3A%2F%2Fa&b=1…", "u=https%3A%2F%2Fa&b=1…"),
        # Keys
        (
            "a\n-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----\nb",
            "a\n-----BEGIN RSA PRIVATE KEY-----****-----END RSA PRIVATE KEY-----\nb",
        ),
        (
            '{"a":"-----BEGIN PRIVATE KEY-----\\nx',
            '{"a":"-----BEGIN PRIVATE KEY-----****',
        ),
        ("see http://a:b@h/ or //c:d@h", "see http://****@h/ or //****@h"),
    ],
)
def test_value_is_hidden_and_nothing_else(text, shown):
    """The name stays, and so does what stands behind the value."""
    assert shown == DEFAULT_MASK.content(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain: text, with = signs & more",
        '{"monkey": 1, "passenger": {"tokyo": [1, 2]}}',
        "<a><b c='d'>e</b></a>",
        "password",
        '{"u":"https://h","m":"a@b.c"}',
        "see https://localhost:8080",
        "see https://localhost:8080/a:b",
        "see http://[::1]:80/a",
        '{"u":"https://h:80',
        "{'u':'https://h:80','b':1}",
        "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
        "the password is not looked for in prose",
    ],
)
def test_what_is_no_secret_is_shown(text):
    """A preview that hides everything helps nobody."""
    assert text == DEFAULT_MASK.content(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"Customer": "S3CR3T"}',
        "customer=S3CR3T&a=1",
        "order[customer]=S3CR3T",
        "order%5BCUSTOMER%5D=S3CR3T",
        "X-Shop: S3CR3T",
        '{"x-shop": "S3CR3T"}',
        "order.customer: S3CR3T",
    ],
)
def test_names_of_the_chain_are_secret_too(text):
    """What is hidden in headers and queries is hidden in bodies, in any case."""
    mask = Mask(headers=["X-Shop"], query_parameters=["customer"])

    assert "S3CR3T" in DEFAULT_MASK.content(text)
    assert "S3CR3T" not in mask.content(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "token: [", "password": "x] S3CR3T"}',
        '{"a": "token: b","password":\n"S3CR3T"}',
        '{"a": "token: \'", "password": "b\' S3CR3T"}',
        '<a token="\\" password="S3CR3T">',
        "a: token: b\n  password:\nS3CR3T",
    ],
)
def test_value_that_was_misread_hides_no_name(text):
    """What looks like a long value may hold the name of the next one."""
    assert "S3CR3T" not in DEFAULT_MASK.content(text)


@pytest.mark.parametrize(
    "unit",
    ['"', "\\", '\\"', "{", "[", '"a":', ":", "password:", "password=", 'password="',
     "password:[", '"token":"a",', "<password>", "<password", "\n", " ", "token:\n",
     "token: [\n", "?a=", "\\u0061", "//a@", "token:1 ", "token: a\n ", "-token: a\n",
     "\"token\": '\"", 'a,"', "</", "x\r", '\\\\":', 'a\\\\":', ',\\\\"=', "//a:b",
     "//a:b'", "//1", 'token: a"', '"token: a', "&quot;token:", "\\u003d", "a=%25",
     "&a=%253D", "=", "-----BEGIN PRIVATE KEY-----",
     "-----BEGIN PRIVATE KEY----------END"],
)  # fmt: skip
def test_hostile_text_takes_linear_time(unit):
    """Four times the text takes about four times as long, not sixteen."""

    def seconds(length):
        text = unit * (length // len(unit))
        started = time.process_time()
        DEFAULT_MASK.content(text)
        return time.process_time() - started

    short = min(seconds(1 << 14) for _ in range(3))

    assert seconds(1 << 16) < 10 * short + 0.1


def test_names_inside_of_names_come_to_an_end():
    """Beyond reason all the rest is hidden."""
    text = '\\\\":' * 100 + ' S3CR3T, "a": 1'

    assert DEFAULT_MASK.content(text).endswith('\\\\":****')


def test_values_inside_of_values_come_to_an_end():
    """Beyond reason all the rest is hidden."""
    text = '{"token":' * 100 + '"S3CR3T"' + "}" * 100 + ', "a": 1'

    assert '{"token":****' == DEFAULT_MASK.content(text)
