"""Where values of secret members end, in texts of all kinds."""

from __future__ import annotations

import time

import pytest

from aioretry_smithy._mask import DEFAULT_MASK, Mask


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
        # XML and HTML
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
     "\"token\": '\"", 'a,"', "</", "x\r"],
)  # fmt: skip
def test_hostile_text_takes_linear_time(unit):
    """Four times the text takes about four times as long, not sixteen."""

    def seconds(length):
        text = unit * (length // len(unit))
        started = time.process_time()
        DEFAULT_MASK.content(text)
        return time.process_time() - started

    short = min(seconds(1 << 16) for _ in range(3))

    assert seconds(1 << 18) < 10 * short + 0.1


def test_values_inside_of_values_come_to_an_end():
    """Beyond reason all the rest is hidden."""
    text = '{"token":' * 100 + '"S3CR3T"' + "}" * 100 + ', "a": 1'

    assert '{"token":****' == DEFAULT_MASK.content(text)
