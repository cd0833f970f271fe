"""Write calls as an HTTP Archive (HAR 1.2), or as ``curl`` commands.

A call is a page, and each of its attempts an entry. What HAR has no place for is in
fields that begin with an underscore, named as in :meth:`.RequestLog.to_dict`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import Final, TextIO, TypeAlias
from urllib.parse import parse_qsl, quote, unquote

from .._request.arguments import is_header_name
from .._text.printable import one_word
from .saved_log import SavedLog, moment_of

Json: TypeAlias = "dict[str, object]"

_UNKNOWN: Final = -1
"""Stands in HAR for a size that is not known, or a time that was not spent."""

_PROTOCOL: Final = "HTTP/1.1"
"""The version of aiohttp's requests; the log has not that of the answer."""

_CONNECTION: Final = {"blocked": "queued", "dns": "dns", "connect": "connect"}
"""The times before a request is sent: their names in HAR, and in the log."""

_BESIDE: Final = (
    "id name endpoint response_cause_type delay_source stop_reason limiter"
    " retry_error attempt total_attempts delay response_timeout duration total_duration"
    " is_success sent injected is_hedge superseded is_complete no_retries"
).split()
"""What HAR has no place for."""

_STOP: Final = "stop_reason", "limiter", "retry_error"

_NOT_WHOLE: Final = "only the beginning, credentials hidden"


def _entry(log: SavedLog, page: str, call: SavedLog, started: datetime) -> Json:
    """Describe an attempt as an HAR entry; without retries, the call itself."""
    timings = _timings(log)
    taken = sum(time for time in timings.values() if time > 0)
    entry: Json = {
        "pageref": page,
        "startedDateTime": started.isoformat(),
        "time": _milliseconds(taken),
        "request": _request(log, call),
        "response": _response(log),
        "cache": {},
        "timings": {name: _milliseconds(time) for name, time in timings.items()},
    }
    return entry | _beside(log)


def _request(log: SavedLog, call: SavedLog) -> Json:
    url = log.sent_url or log.request_url or _url(call)
    # Without its fragment, and as one word even if it is no URL.
    url = one_word(url.partition("#")[0])
    headers = log.request_headers or {}
    length, sent = log.request_length, log.request_content_preview
    request: Json = {
        "method": log.sent_method or log.request_method or _method(call),
        "url": url,
        "httpVersion": _PROTOCOL,
        # What is in them is secret, so none of it is shown.
        "cookies": [],
        "headers": _pairs(headers.items()),
        "queryString": _query(url),
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN if length is None else length,
    }
    if sent is not None:
        request["postData"] = {
            "mimeType": _header(headers, "content-type"),
            "text": sent,
            "comment": _NOT_WHOLE,
        }
    return request


def _response(log: SavedLog) -> Json:
    status = log.response_status or 0
    headers = log.response_headers or {}
    length = log.response_length
    received = log.response_content_preview
    content: Json = {
        "size": _UNKNOWN if length is None else length,
        "mimeType": _header(headers, "content-type") or "x-unknown",
    }
    if received is not None:
        content |= {"text": received, "comment": _NOT_WHOLE}
    response: Json = {
        # As browsers do it where there was no answer.
        "status": status if status < 1000 else 0,
        "statusText": log.response_reason or "",
        "httpVersion": _PROTOCOL,
        "cookies": [],
        "headers": _pairs(headers.items()),
        "content": content,
        "redirectURL": _header(headers, "location") if 300 <= status < 400 else "",
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN,
    }
    # Where browsers have it.
    return response | _free({"error": log.values.get("response_cause")})


def _timings(log: SavedLog) -> dict[str, int]:
    """Divide the time of an attempt, in microseconds.

    Only times of connecting may be unknown. What they leave of the time to the headers
    or to the failure is spent on sending the body, and on waiting.
    """
    left = total = max(0, _microseconds(log, "duration"))
    connection = log.connection
    timings = {}
    for name, key in _CONNECTION.items():
        timings[name] = min(_micro(getattr(connection, key, None)), left)
        left -= max(0, timings[name])
    sending = _microseconds(log, "request_duration") - (total - left)
    timings["send"] = max(0, min(sending, left))
    left -= timings["send"]
    if log.values.get("sent") is False:
        # No server had it, so none was waited for.
        timings["blocked"] = max(0, timings["blocked"]) + left
        left = 0
    timings["wait"] = left
    ended = _microseconds(log, "total_duration")
    timings["receive"] = max(0, ended - total)
    return timings


def _microseconds(log: SavedLog, key: str) -> int:
    return _micro(log.values.get(key))


def _micro(seconds: float | None) -> int:
    return _UNKNOWN if seconds is None else round(seconds * 1e6)


def _milliseconds(microseconds: int) -> float:
    return _UNKNOWN if microseconds == _UNKNOWN else microseconds / 1000


def _beside(log: SavedLog) -> Json:
    """Return what HAR has no place for, named as in the log and in seconds."""
    return _free(
        {
            # By which browsers tell calls of programs from pages and pictures.
            "resourceType": "fetch",
            "error": log.values.get("response_cause"),
            "connection_reused": log.connection and log.connection.reused,
            **{key: log.values.get(key) for key in _BESIDE},
        }
    )


def _free(facts: Json) -> Json:
    """Give the names that everybody is free to use to those facts that are known."""
    return {f"_{key}": value for key, value in facts.items() if value is not None}


def _method(call: SavedLog) -> str:
    return call.request_method or call.name or ""


def _url(call: SavedLog) -> str:
    return call.request_url or ""


def _pairs(values: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values]


def _header(headers: Mapping[str, str], name: str) -> str:
    """Return the value of a header, whose name is in lower case."""
    values = (value for given, value in headers.items() if given.lower() == name)
    return next(values, "")


def _query(url: str) -> list[dict[str, str]]:
    """Return the parameters of a URL, or of what is none."""
    query = url.partition("?")[2]
    return _pairs(parse_qsl(query, keep_blank_values=True))


_IN_MEMORY: Final = 1 << 20
"""How many characters of an archive are kept before they go to a temporary file."""

_encode: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def to_har(call: SavedLog) -> Json:
    """Convert a call to an HTTP archive."""
    pages = [*filter(None, map(_page, _http_calls(call), count(1)))]
    entries = [entry for _, entries in pages for entry in entries]
    return {
        "log": {**_head(), "pages": [page for page, _ in pages], "entries": entries}
    }


def _http_calls(log: SavedLog) -> Iterator[SavedLog]:
    """Yield the HTTP calls in order: the call itself, or all inside a function."""
    if log.request_method or log.request_url:
        yield log
        return
    for part in (log, *log.children):
        for call in part.calls:
            yield from _http_calls(call)


class HarArchive:
    """Gathers calls for an archive, of which few are in memory.

    It skips HTTP calls of which nobody knows when they began.

    >>> import io, json
    >>> from contextlib import closing
    >>> call = {"request_url": "/", "request_started_at": "2026-11-26T12:00:00+00:00"}
    >>> file = io.StringIO()
    >>> with closing(HarArchive()) as archive:
    ...     archive.add(SavedLog(call))
    ...     archive.write(file)
    >>> sorted(json.loads(file.getvalue())["log"])
    ['creator', 'entries', 'pages', 'version']
    """

    skipped: int
    """How many calls were left out."""

    def __init__(self) -> None:
        # Closed by close(), after many calls.
        self._entries = SpooledTemporaryFile(_IN_MEMORY, "w+")  # noqa: SIM115
        self._pages = SpooledTemporaryFile(_IN_MEMORY, "w+")  # noqa: SIM115
        self._added = self.skipped = 0

    def add(self, call: SavedLog) -> None:
        """Add a call; of a function, all HTTP calls inside."""
        for log in _http_calls(call):
            described = _page(log, self._added + 1)
            if described is None:
                self.skipped += 1
                continue
            page, entries = described
            separator = ",\n" if self._added else "\n"
            self._entries.write(separator + ",\n".join(map(_encode, entries)))
            self._pages.write(separator + _encode(page))
            self._added += 1

    def write(self, file: TextIO) -> None:
        """Write all into a file, in ASCII."""
        file.write(_encode({"log": _head()})[:-2])
        for name, values in (("entries", self._entries), ("pages", self._pages)):
            file.write(f',"{name}":[')
            values.seek(0)
            copyfileobj(values, file)
            file.write("\n]")
        file.write("}}\n")

    def close(self) -> None:
        """Forget the calls."""
        self._entries.close()
        self._pages.close()


def _page(call: SavedLog, number: int) -> tuple[Json, list[Json]] | None:
    """Describe a call and its attempts; None if its start is unknown."""
    attempts = call.children or (call,)
    starts = [_started(log) for log in attempts]
    started = next(filter(None, [_started(call), *starts]), None)
    if started is None:
        return None
    # Ids are not in old lines, and a line may be there twice.
    name = f"page_{number}"
    title = f"{_method(call)} {_url(call)}"
    page: Json = {
        "startedDateTime": started.isoformat(),
        "id": name,
        "title": title if call.id is None else f"{title} ({call.id})",
        "pageTimings": {
            "onContentLoad": _milliseconds(_microseconds(call, "duration")),
            "onLoad": _milliseconds(_microseconds(call, "total_duration")),
        },
    }
    entries = [
        _entry(log, name, call, start or started)
        for log, start in zip(attempts, starts, strict=True)
    ]
    # Why there was no further attempt.
    entries[-1] |= _free({key: call.values.get(key) for key in _STOP})
    return page | _beside(call), entries


def _started(log: SavedLog) -> datetime | None:
    moment = moment_of(log.values.get("request_started_at"))
    try:
        return None if moment is None else moment.astimezone(UTC)
    except OverflowError:
        return None


def _head() -> Json:
    try:
        ours = version("aioretry-smithy")
    except PackageNotFoundError:
        # A copy of the package, which was not installed.
        ours = "unknown"
    return {"version": "1.2", "creator": {"name": "aioretry_smithy", "version": ours}}


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


def to_curl(whole: SavedLog) -> str:
    r"""Return the command for a request: the first one of a call.

    Args:
        whole: The log of an HTTP call.

    >>> values = {"request_method": "PUT", "request_url": "http://[::1]/a b"}
    >>> print(to_curl(SavedLog({**values, "request_headers": {"X-Empty": ""}})))
    curl -X PUT --globoff 'http://[::1]/a%20b' \
      -H 'X-Empty;'
    """
    log = (*whole.children, whole)[0]
    method = log.sent_method or log.request_method or whole.request_method or ""
    url = log.sent_url or log.request_url or whole.request_url or ""
    headers = log.request_headers or {}
    sent = {name.lower(): value.strip(_BLANKS) for name, value in headers.items()}
    has_body = _had_body(log, sent)
    words = ["curl", *_curl_method(method, has_body=has_body), *_curl_url(url)]
    if sent.get("accept-encoding") not in {None, "", "identity"}:
        words.insert(1, "--compressed")
    lines = [" ".join(words)]
    lines += (f"  -H {_quoted(header)}" for header in _headers(headers, url))
    command = " \\\n".join(lines)
    return f"{command}\n{_BODY}" if has_body else command


def _curl_method(method: str, *, has_body: bool) -> Iterator[str]:
    if method == "HEAD" and not has_body:
        yield "--head"
    elif method != "GET" or has_body:
        # With a body it would be a POST, and to --head it is one option too many.
        yield "-X"
        yield _quoted(_one_line(method))


def _curl_url(url: str) -> Iterator[str]:
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
        # curl would read a file in place of a header that begins with an "@".
        if is_header_name(name) and not is_said and name.lower() not in _OF_BODY:
            yield f"{name}: {text}" if text else f"{name};"
    if "host" in names:
        # These are all that were sent.
        yield from (f"{name}:" for name in _OF_CURL if name.lower() not in names)


def _had_body(log: SavedLog, sent: Mapping[str, str]) -> bool:
    return (
        bool(log.request_length)
        or log.request_content_preview is not None
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
