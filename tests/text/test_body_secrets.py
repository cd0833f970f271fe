"""Previews of bodies hide secrets: in JSON, cut or not, forms, and any text."""

import time

import pytest

from aioretry_smithy._text.mask import DEFAULT_MASK, Mask


@pytest.mark.parametrize(
    ("text", "shown"),
    [
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
        ('{"token":1}\n{"token":2,"a":1}', '{"token":****}\n{"token":****,"a":1}'),
        # Cut
        ('{"token":"abc', '{"token":****'),
        ('{"token":"abc…', '{"token":****…'),
        ('{"token": 12…', '{"token": ****…'),
        ('{"token": tru…', '{"token": ****…'),
        ('{"tokens":["a"…', '{"tokens":****…'),
        ('{"token":"a\\', '{"token":****'),
        ('{"token', '{"token'),
        ('{"token":', '{"token":'),
    ],
)
def test_value_of_a_secret_member_is_hidden(text, shown):
    """In JSON the name stays, and so does what stands behind the value."""
    assert shown == DEFAULT_MASK.content(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '[{"name":"password","value":"x"},{"name":"a","value":"b"}]',
            '[{"name":"password","value":****},{"name":"a","value":"b"}]',
        ),
        (
            '{"name": "DB_PASSWORD" , "Value" : {"b": "}"}, "a": 1}',
            '{"name": "DB_PASSWORD" , "Value" : ****, "a": 1}',
        ),
        (
            '{"key":"Authorization","value":"Bearer x","a":1}',
            '{"key":****,"value":****,"a":1}',
        ),
        ('{"key":"color","value":"red"}', '{"key":****,"value":"red"}'),
        ('{"key":["token"],"value":"red"}', '{"key":****,"value":"red"}'),
        (
            '{"headers":[["Cookie","x"],[ "Accept" , "y"]]}',
            '{"headers":[["Cookie",****],[ "Accept" , "y"]]}',
        ),
        ('{"a":[ "token" , 12 ],"b":1}', '{"a":[ "token" , **** ],"b":1}'),
        ('["session",-1]', '["session",****]'),
        # No pair
        ('["token",{"a":1}]', '["token",{"a":1}]'),
        ('["password","name","id"]', '["password","name","id"]'),
        ('["name","password","id"]', '["name","password","id"]'),
        ('{"name":"token","values":"x"}', '{"name":"token","values":"x"}'),
        # Cut
        ('[["Cookie","x', '[["Cookie",****'),
        ('[["Cookie",', '[["Cookie",'),
        ('{"name":"token","value":"x…', '{"name":"token","value":****…'),
        ('{"name":"token","value":', '{"name":"token","value":'),
    ],
)
def test_value_of_a_name_that_is_a_value_is_hidden(text, shown):
    """Forms, variables and headers are often written so."""
    assert shown == DEFAULT_MASK.content(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            '{"error":"SyntaxError: Unexpected token: < in JSON","code":7}',
            '{"error":"SyntaxError: Unexpected token: ****","code":7}',
        ),
        (
            '{"error":{"message":"Incorrect API key provided: sk-a. See","code":null}}',
            '{"error":{"message":"Incorrect API key provided: ****","code":null}}',
        ),
        ('["Token: a b","c"]', '["Token: ****","c"]'),
        # Structured itself
        ('{"a":"{\\"token\\": \\"x\\"}","b":1}', '{"a":"{\\"token\\": ****","b":1}'),
        (
            '{"a":"{\\"b\\":\\"{\\\\\\"token\\\\\\":1}\\"}","c":1}',
            '{"a":"{\\"b\\":\\"{\\\\\\"token\\\\\\":****","c":1}',
        ),
        ('{"a":"b\\nkey: x","c":1}', '{"a":"b****","c":1}'),
        ('{"a":"token\\u003A x","b":1}', '{"a":"token****","b":1}'),
        ('{"a":"<Token>x</Token>","b":1}', '{"a":"<Token>****","b":1}'),
        ('{"a":"-----BEGIN PRIVATE KEY-----\\nx","b":1}', '{"a":"-----****","b":1}'),
        # URLs
        ('{"u":"https://a:b@h/","m":"a@b.c"}', '{"u":"https://****","m":"a@b.c"}'),
        ('{"u":"https:\\/\\/a:b@h","b":1}', '{"u":"https:****","b":1}'),
        ('{"u":"http://h?token=x","b":1}', '{"u":"http://h?token=****","b":1}'),
        ('{"u":"http://h?a=1\\u0026sig=x"}', '{"u":"http://h?a=1****"}'),
        (
            '{"next":"https://h/?cb=https%253A%252F%252Fu%253AS3CR3T%2540me","a":1}',
            '{"next":"https://h/?cb=https****","a":1}',
        ),
        ('{"https://a:b@h/":1}', '{"https://****":1}'),
    ],
)
def test_rest_of_a_string_behind_a_secret_is_hidden(text, shown):
    """The whole string is hidden; the rest of the document is shown."""
    assert shown == DEFAULT_MASK.content(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=x&b=1", "password=****&b=1"),
        ("a=1&password=x", "a=1&password=****"),
        ("user%5Bpassword%5D=x&b=1", "user%5Bpassword%5D=****&b=1"),
        ("user[password]=x&b=1", "user[password]=****&b=1"),
        ("password=&b=1", "password=&b=1"),
        ('password=a"b&b=1', "password=****&b=1"),
        ("password=1,x&b=1…", "password=****&b=1…"),
        ("p=%7B%22token%22%3A%22x%22%7D&b=1", "p=****&b=1"),
        ("p=%7B%22monkey%22%3A%22x%22%7D&b=1", "p=%7B%22monkey%22%3A%22x%22%7D&b=1"),
        ("u=https%3A%2F%2Fh%2F%3Ftoken%3Dx&b=c+d", "u=https****&b=c+d"),
        ("u=https:%5C/%5C/h%5C/&b=1", "u=https:%5C/%5C/h%5C/&b=1"),
        ("u=https%3A%2F%2Fa%3Ab%40h&b=1", "u=https****&b=1"),
        ("u=https%3A%2F%2Fa%3Ab", "u=https****"),
        ("u=https%3A%2F%2Fa…", "u=https****…"),
        ("u=https%3A%2F%2Fa&b=1…", "u=https%3A%2F%2Fa&b=1…"),
        ("a=-----BEGIN+PRIVATE+KEY-----%0Ax&b=1", "a=-----****&b=1"),
        ("a=b%3Dc%253De", "a=b%3Dc%253De"),
        ("a=b%3Dtoken%253Dx&c=d", "a=b****&c=d"),
        (f"a=%{'25' * 4}41&b=1", f"a=%{'25' * 4}41&b=1"),
        (f"a=%{'25' * 5}41&b=1", "a=****&b=1"),
    ],
)
def test_rest_of_a_field_behind_a_secret_is_hidden(text, shown):
    """In a form, however it is quoted; what is quoted too often is in doubt."""
    assert shown == DEFAULT_MASK.content(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # What is no JSON, though it begins like that
        ("{'token': 'x', 'a': 1}", "{'token': ****"),
        ('{token: "x", "a": 1}', "{token: ****"),
        ('{"token": "x" "y", "a": 1}', '{"token": ****'),
        ('{"token": "x" + "y", "a": 1}', '{"token": ****'),
        ('"Token: a\n b" c', '"Token: ****'),
        # XML and HTML
        ("<a><Password>x</Password>y</a>", "<a><Password>****"),
        ("<a token='x' b='y'>", "<a token=****"),
        ("<a b='{&quot;token&quot;:&quot;x'/>", "<a b='{&quot;token&quot;:****"),
        # YAML, headers, settings, code
        ("a: b\npassword: x\nc: d…", "a: b\npassword: ****…"),
        ("tokens:\n- x\n- y\nb: y", "tokens:\n****"),
        ("A: b\r\nAuthorization: Bearer x\r\nB: y", "A: b\r\nAuthorization: ****"),
        ("A=1 2\nPASSWORD=1,x\nB=1", "A=1 2\nPASSWORD=****"),
        ("token := x\nb", "token := ****"),
        ("'token' => 'x', 'b' => 1", "'token' => ****"),
        ("login(token: (x), b: 1)", "login(token: ****"),
        ("data: {}\\u0026sig=x", "data: {}****"),
        # Credentials without a name
        ("see https://a:b@h/ there", "see https://****"),
        ("see https://a:b", "see https://****"),
        ("see https://a b:c@h/ there", "see https://****"),
        ("see https://a:12…", "see https://****…"),
        ("see https://a…", "see https://****…"),
        ("see http://h/?a=b@c…", "see http://h/?a=b@c…"),
        ("postgres://app:x/y", "postgres://****"),
        ("a\n-----BEGIN RSA PRIVATE KEY-----\nx", "a\n-----****"),
    ],
)
def test_rest_of_any_other_text_behind_a_secret_is_hidden(text, shown):
    """A value has no sure end in it."""
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
        "see https://localhost:8080.",
        "see https://localhost:8080/a:b",
        "see https://localhost: write to a@b.c",
        "see https://localhost said: write to a@b.c",
        "see http://[::1]:80/a",
        '{"u":"https://h:80',
        "{'u':'https://h:80','b':1}",
        "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
        "the password is not looked for in prose",
        "id,password",
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
    """A name that is secret in headers and queries is secret in bodies, in any case."""
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
def test_secret_behind_what_looks_like_another_is_hidden(text):
    """A text that looks like the value of one name may hold the next one."""
    assert "S3CR3T" not in DEFAULT_MASK.content(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ['"', "\\", '\\"', "{", "[", '"a":', ":", "password:", "password=", 'password="',
     "password:[", '"token":"a",', "<password>", "<password", "\n", " ", "token:\n",
     "token: [\n", "?a=", "\\u0061", "//a@", "token:1 ", "token: a\n ", "-token: a\n",
     "\"token\": '\"", "//u", "\\\\u0041", "-----BEGIN A", 'a,"',
     "</", "x\r", '\\\\":', 'a\\\\":', ',\\\\"=', "//a:b",
     "//a:b'", "//1", 'token: a"', '"token: a', "&quot;token:", "\\u003d", "a=%25",
     "&a=%253D", "=", "-----BEGIN PRIVATE KEY-----",
     "-----BEGIN PRIVATE KEY----------END", "-----BEGIN PRIVATE", '"a" ', "1 ",
     "//a b:c", "//a b:c@", "//a ",
     "{}", '["token",', '["token","', '{"name":"token","value":', '{"key":"token",'],
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
