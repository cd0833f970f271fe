"""Convert a request to an equivalent ``curl`` command."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from .saved_log import PlainLog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_URL: Final = re.compile(r"(?i)(?:https?|wss?)://([^/?#]*)([^?#]*)")
_WEBSOCKET: Final = re.compile(r"(?i)\Aws")
_GLOB: Final = frozenset("[]{}")
_ODD: Final = re.compile(r"[^!-~]")
_LINE_BREAK: Final = re.compile(r"[\r\n\0]+")

_BLANKS: Final = " \t"

_OF_BODY: Final = frozenset({"content-length", "transfer-encoding"})
_OF_CURL: Final = "Accept", "User-Agent"
"""Headers that both curl and aiohttp send by default."""

_BODY: Final = "# Its body is not in the log. Give it with: --data-binary @FILE"


def to_curl(call: Mapping[str, object]) -> str:
    r"""Return the command for a request: the first one of a call.

    Args:
        call: Values of :meth:`.RequestLog.to_dict`, of an HTTP call.

    >>> values = {"request_method": "PUT", "request_url": "http://[::1]/a b"}
    >>> print(to_curl({**values, "request_headers": {"X-Empty": ""}}))
    curl -X PUT --globoff 'http://[::1]/a%20b' \
      -H 'X-Empty;'
    """
    whole = PlainLog(call)
    log = (*whole.attempts, whole)[0]
    method = log.text("sent_method") or _of_either(log, whole, "request_method")
    url = log.text("sent_url") or _of_either(log, whole, "request_url")
    headers = log.headers("request_headers")
    sent = {name.lower(): value.strip(_BLANKS) for name, value in headers.items()}
    has_body = _had_body(log, sent)
    words = ["curl", *_method(method, has_body=has_body), *_url(url)]
    if sent.get("accept-encoding") not in {None, "", "identity"}:
        words.insert(1, "--compressed")
    lines = [" ".join(words)]
    lines += (f"  -H {_quoted(header)}" for header in _headers(headers, url))
    command = " \\\n".join(lines)
    return f"{command}\n{_BODY}" if has_body else command


def _of_either(log: PlainLog, whole: PlainLog, key: str) -> str:
    return log.text(key) or whole.text(key) or ""


def _method(method: str, *, has_body: bool) -> Iterator[str]:
    if method == "HEAD" and not has_body:
        yield "--head"
    elif method != "GET" or has_body:
        # With a body it would be a POST, and to --head it is one option too many.
        yield "-X"
        yield _quoted(_one_line(method))


def _url(url: str) -> Iterator[str]:
    """Yield the options that a URL needs, and the URL."""
    # Control characters and blanks are in a URL only if it is none.
    quoted = _ODD.sub(lambda odd: quote(odd[0]), url)
    match = _URL.match(quoted)
    if match is None:
        # It could be taken for an option.
        yield "--url"
    else:
        _, path = match.groups()
        if not {".", ".."}.isdisjoint(unquote(path).split("/")):
            yield "--path-as-is"
        # A websocket begins as a request.
        quoted = _WEBSOCKET.sub("http", quoted)
    if not _GLOB.isdisjoint(quoted):
        yield "--globoff"
    yield _quoted(quoted)


def _headers(headers: Mapping[str, str], url: str) -> Iterator[str]:
    """Yield headers in the format of curl's ``-H`` option."""
    match = _URL.match(url)
    host = "" if match is None else match[1].rpartition("@")[2]
    names = {name.lower() for name in headers}
    for name, value in headers.items():
        text = _one_line(value).strip(_BLANKS)
        is_said = name.lower() == "host" and text == host
        if not is_said and name.lower() not in _OF_BODY:
            # No name begins with an "@", which would make a file of it.
            yield f"{name}: {text}" if text else f"{name};"
    if "host" in names:
        # These are all that were sent.
        yield from (f"{name}:" for name in _OF_CURL if name.lower() not in names)


def _had_body(log: PlainLog, sent: Mapping[str, str]) -> bool:
    return (
        bool(log.number("request_length"))
        or log.preview("request_content_preview") is not None
        or "transfer-encoding" in sent
        or sent.get("content-length", "0") != "0"
    )


def _one_line(text: str) -> str:
    """Replace line breaks, so that a header stays a single header."""
    return _LINE_BREAK.sub(" ", text)


def _quoted(text: str) -> str:
    """Quote a word for a shell.

    Characters that cannot be seen are escaped byte by byte, as Bash and Zsh know it.
    """
    if text.isprintable():
        return shlex.quote(text)
    return "$'" + "".join(map(_escaped, text)) + "'"


def _escaped(character: str) -> str:
    if character.isprintable():
        return f"\\{character}" if character in "'\\" else character
    return "".join(f"\\x{byte:02x}" for byte in character.encode())
