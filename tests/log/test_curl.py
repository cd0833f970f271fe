"""The command that sends a request again."""

import shlex
import shutil
import subprocess
from itertools import pairwise

import pytest
from calls import begin, end, end_call, function, http
from chains import bad_argument
from hypothesis import example, given
from hypothesis import strategies as st

from aioretry_smithy import HttpRequest
from aioretry_smithy._log import exports
from aioretry_smithy._log.saved_log import SavedLog

NO_BODY = "# Its body is not in the log. Give it with: --data-binary @FILE"
HOSTILE = st.text(st.characters(codec="utf-8"))
bash = pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")


def to_curl(values):
    """Return the command of a line."""
    return exports.to_curl(SavedLog(values))


def words(command):
    """Return the words of a command as a shell sees them, without comments."""
    return shlex.split(command.replace("\\\n", ""), comments=True)


def words_of_bash(command):
    """Return them as Bash sees them, byte for byte."""
    script = command.replace("curl", "printf '%s\\0'", 1)
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    return done.stdout.split(b"\0")[:-1]


def command(method="GET", url="http://example.com/", headers=None, **values):
    request = {"request_method": method, "request_url": url}
    return to_curl({**request, "request_headers": headers or {}, **values})


def headers_of(command):
    pairs = pairwise(words(command))
    return [header for option, header in pairs if option == "-H"]


async def test_get_is_a_url_and_headers():
    """Each header is in a line of its own, and ``GET`` need not be said."""
    ctx = http("http://example.com/a?b=1", default_headers={"X-A": "b c"})
    end(ctx, 200)

    assert ctx.log.to_curl() == ("curl 'http://example.com/a?b=1' \\\n  -H 'X-A: b c'")


async def test_call_is_its_first_request():
    """Its URL and its headers belong together; each attempt has its own command."""
    ctx = begin(HttpRequest("GET", "http://group/a"))
    first = ctx.derive(HttpRequest("GET", "http://one.example.com/a"))
    end(first, 503)
    second = ctx.derive(HttpRequest("GET", "http://two.example.com/a"))
    end(second, 200)
    end_call(ctx, second)
    values = ctx.log.to_dict()

    assert "curl http://one.example.com/a" == to_curl(values).split(" \\\n")[0]
    assert ["curl http://one.example.com/a", "curl http://two.example.com/a"] == [
        to_curl(child).split(" \\\n")[0] for child in values["children"]
    ]


def test_what_was_sent_goes_before_what_was_asked_for():
    """A decorator further in may have changed the method and the URL."""
    sent = {"sent_method": "PUT", "sent_url": "http://example.com/b"}

    assert "curl -X PUT http://example.com/b" == command(**sent)


def test_attempt_without_a_url_has_that_of_the_call():
    """A line may leave out what its call has."""
    child = {"request_headers": {"A": "b"}}

    assert ["curl", "-X", "PUT", "http://example.com/", "-H", "A: b"] == words(
        command("PUT", children=[child])
    )


async def test_secrets_are_masked():
    """The command goes to tickets and chats, as all views do."""
    headers = {"Authorization": "Bearer S3CR3T", "Cookie": "a=S3CR3T"}
    url = "http://user:S3CR3T@example.com/?token=S3CR3T"
    ctx = http(url, default_headers=headers)
    end(ctx, 200)

    assert [
        "curl",
        "http://****@example.com/?token=****",
        "-H",
        "Authorization: ****",
        "-H",
        "Cookie: ****",
    ] == words(ctx.log.to_curl())


async def test_function_has_no_command():
    """Its arguments are in no log."""
    log = function("fetch").log

    with bad_argument("log", log, "the log of an HTTP call"):
        log.to_curl()


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("GET", []),
        ("HEAD", ["--head"]),
        ("DELETE", ["-X", "DELETE"]),
        ("A\r\nB: c", ["-X", "A B: c"]),
        ("", ["-X", ""]),
    ],
)
def test_method(method, options):
    """HEAD has an option of its own: with ``-X`` curl would wait for a body."""
    sent = to_curl({"name": "x", "request_method": method, "request_url": "http://a/"})

    assert ["curl", *options, "http://a/"] == words(sent)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
@pytest.mark.parametrize(
    "body",
    [
        {"request_length": 7},
        {"request_content_preview": "a"},
        {"headers": {"Content-Length": "7"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
    ],
)
def test_method_of_a_request_with_a_body(method, body):
    """With the body that is given curl would make a POST of a GET."""
    sent = command(method, **body)

    assert ["curl", "-X", method, "http://example.com/"] == words(sent)
    assert sent.endswith(NO_BODY)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("http://a/b", []),
        ("http://a/../b", ["--path-as-is"]),
        ("http://a/./b", ["--path-as-is"]),
        ("http://a/b/%2E%2e", ["--path-as-is"]),
        ("http://a/b?c=/../d", []),
        ("http://a/..b/.c", []),
        ("http://[::1]:80/", ["--globoff"]),
        ("http://a/?b[]=c", ["--globoff"]),
        ("http://a/{b}/..", ["--path-as-is", "--globoff"]),
        ("-o/etc/passwd", ["--url"]),
        ("/orders", ["--url"]),
    ],
)
def test_url_is_taken_as_it_is(url, options):
    """Some paths would be cut short, others expanded or taken for options."""
    assert ["curl", *options, url] == words(command(url=url))


@pytest.mark.parametrize(
    ("url", "quoted"),
    [
        ("http://a/b c", "http://a/b%20c"),
        ("http://a/\x1b[2J\n", "http://a/%1B[2J%0A"),
        ("http://a/é", "http://a/%C3%A9"),
        ("ws://a/b", "http://a/b"),
        ("wss://a/b", "https://a/b"),
    ],
)
def test_url_that_curl_would_refuse(url, quoted):
    """What stands in no URL is quoted; a websocket begins with a request."""
    assert quoted == words(command(url=url))[-1]


def test_lengths_of_the_body_are_left_out():
    """There is no body that they would be of."""
    headers = {"content-length": "3", "Transfer-Encoding": "chunked", "A": "b"}

    assert ["A: b"] == headers_of(command("POST", headers=headers))


@pytest.mark.parametrize(
    "values", [{"request_length": 0}, {"headers": {"Content-Length": "0"}}, {}]
)
def test_request_without_a_body_has_no_comment(values):
    """Nothing is missing."""
    assert "#" not in command("POST", **values)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("X-Empty", "", ["X-Empty;"]),
        ("X-Blank", " \t", ["X-Blank;"]),
        ("X-At", "@/etc/passwd", ["X-At: @/etc/passwd"]),
        ("@/etc/passwd", "a", []),
        ("a: b", "c", []),
        ("a b", "c", []),
        ("", "c", []),
        ("X-Lines", "a\r\nHost: evil\0", ["X-Lines: a Host: evil"]),
        ("X-Quote", 'it\'s "$HOME" `id` !!', ['X-Quote: it\'s "$HOME" `id` !!']),
        ("host", "other.example.com", ["host: other.example.com"]),
    ],
)
def test_header(name, value, shown):
    """Empty ones end in a semicolon; no name is a file, and no value two headers."""
    agent = {"Accept": "x", "User-Agent": "y"}
    given_headers = headers_of(command(headers={name: value, **agent}))

    assert [*shown, "Accept: x", "User-Agent: y"] == given_headers


@pytest.mark.parametrize("url", ["http://a:80/", "http://****@a:80/?b", "ws://a:80"])
def test_host_that_curl_sends_anyway(url):
    """It is that of the URL."""
    headers = {"Host": "a:80", "Accept": "x", "user-agent": "y"}

    assert ["Accept: x", "user-agent: y"] == headers_of(
        command(url=url, headers=headers)
    )


def test_curl_does_not_add_what_was_not_sent():
    """Where the log has all that was sent, Host too, curl sends no more."""
    assert ["Accept:", "User-Agent:"] == headers_of(
        command(headers={"Host": "example.com"})
    )


@pytest.mark.parametrize(
    ("value", "options"),
    [("gzip, deflate", ["--compressed"]), ("identity", []), ("", [])],
)
def test_answer_is_decompressed(value, options):
    """Else a terminal would show bytes; an empty header asks for none."""
    shown = command(headers={"accept-encoding": value})

    assert ["curl", *options, "http://example.com/"] == words(shown)[: 2 + len(options)]


@bash
@pytest.mark.parametrize(
    "value", ["\x1b[2J'\\", "a\u202eb", "\x7f9", "caf\xe9\xa0", "\U0001d4b3\u2028"]
)
def test_what_cannot_be_seen_is_escaped(value):
    """A terminal shows the command as it is, and a shell takes the bytes meant."""
    shown = command(headers={"X-A": value})
    sent = value.encode()

    assert shown.replace("\\\n", "").isprintable()
    assert b"X-A: " + sent == words_of_bash(shown)[-1]


@bash
@given(HOSTILE, HOSTILE, st.dictionaries(HOSTILE, HOSTILE))
@example("", "--url", {"0": ""})
@example("", "", {"Transfer-Encoding": ""})
def test_any_text_is_one_word(method, url, headers):
    """Whatever the log holds, each word is an option, the URL or a header."""
    shown = command(method, url, headers)
    found = words_of_bash(shown)
    first, *lines = shown.removesuffix(f"\n{NO_BODY}").split(" \\\n")
    url_at = len(found) - 2 * len(lines) - 1
    options, pairs = found[:url_at], found[url_at + 1 :]
    if b"-X" in options:
        at = options.index(b"-X")
        del options[at : at + 2]

    assert "".join([first, *lines]).isprintable()
    assert set(options) <= {
        *(b"--compressed", b"--head"),
        *(b"--url", b"--path-as-is", b"--globoff"),
    }
    assert [b"-H"] * len(lines) == pairs[::2]
    assert not any(header.startswith((b"@", b":")) for header in pairs[1::2])
