"""Describe a call as a page, and its attempts as entries, of an HTTP Archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import parse_qsl

from .._text import one_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from .plain_log import PlainLog

Json: TypeAlias = "dict[str, object]"

_UNKNOWN: Final = -1
"""Stands in HAR for a size that is not known, or a time that was not spent."""

_PROTOCOL: Final = "HTTP/1.1"
"""The version of aiohttp's requests; the log has not that of the answer."""

_CONNECTION: Final = {"blocked": "queued", "dns": "dns", "connect": "connect"}
"""The times before a request is sent: their names in HAR, and in the log."""

_TEXTS: Final = (
    "id name endpoint response_cause_type delay_source stop_reason retry_error"
).split()
_NUMBERS: Final = "attempt total_attempts".split()
_SECONDS: Final = "delay response_timeout duration total_duration".split()
_FLAGS: Final = (
    "is_success sent injected is_hedge superseded is_complete no_retries"
).split()

_NOT_WHOLE: Final = "only the beginning, credentials hidden"


def page_of(call: PlainLog, name: str, started: datetime) -> Json:
    """Describe a call."""
    title = f"{_method(call)} {_url(call)}"
    load = {"onContentLoad": "duration", "onLoad": "total_duration"}
    page: Json = {
        "startedDateTime": started.isoformat(),
        "id": name,
        "title": title if call.text("id") is None else f"{title} ({call.text('id')})",
        "pageTimings": {
            moment: _milliseconds(_microseconds(call, key))
            for moment, key in load.items()
        },
    }
    return page | _beside(call)


def entry_of(log: PlainLog, page: str, call: PlainLog, started: datetime) -> Json:
    """Describe an attempt of a call; where nothing retries, the call itself."""
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


def stop_of(call: PlainLog) -> Json:
    """Say why a call made no further attempt, for the entry of its last one."""
    return _free({key: call.text(key) for key in ("stop_reason", "retry_error")})


def _request(log: PlainLog, call: PlainLog) -> Json:
    url = log.text("sent_url") or log.text("request_url") or _url(call)
    # Without its fragment, and as one word even if it is no URL.
    url = one_word(url.partition("#")[0])
    headers = log.headers("request_headers")
    length, sent = log.number("request_length"), log.preview("request_content_preview")
    request: Json = {
        "method": log.text("sent_method")
        or log.text("request_method")
        or _method(call),
        "url": url,
        "httpVersion": _PROTOCOL,
        # What is in them is secret, so nothing is told of it.
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


def _response(log: PlainLog) -> Json:
    status = log.number("response_status") or 0
    headers = log.headers("response_headers")
    length = log.number("response_length")
    received = log.preview("response_content_preview")
    content: Json = {
        "size": _UNKNOWN if length is None else length,
        "mimeType": _header(headers, "content-type") or "x-unknown",
    }
    if received is not None:
        content |= {"text": received, "comment": _NOT_WHOLE}
    response: Json = {
        # As browsers do it where there was no answer.
        "status": status if status < 1000 else 0,
        "statusText": log.text("response_reason") or "",
        "httpVersion": _PROTOCOL,
        "cookies": [],
        "headers": _pairs(headers.items()),
        "content": content,
        "redirectURL": _header(headers, "location") if 300 <= status < 400 else "",
        "headersSize": _UNKNOWN,
        "bodySize": _UNKNOWN,
    }
    # Where browsers have it.
    return response | _free({"error": log.text("response_cause")})


def _timings(log: PlainLog) -> dict[str, int]:
    """Divide the time of an attempt, in microseconds.

    Only times of connecting may be unknown. What they leave of the time to the headers
    or to the failure is spent on sending the body, and on waiting.
    """
    left = total = max(0, _microseconds(log, "duration"))
    connection = log.part("connection")
    timings = {}
    for name, key in _CONNECTION.items():
        timings[name] = min(_microseconds(connection, key), left)
        left -= max(0, timings[name])
    sending = _microseconds(log, "request_duration") - (total - left)
    timings["send"] = max(0, min(sending, left))
    left -= timings["send"]
    if log.flag("sent") is False:
        # No server had it, so none was waited for.
        timings["blocked"] = max(0, timings["blocked"]) + left
        left = 0
    timings["wait"] = left
    ended = _microseconds(log, "total_duration")
    timings["receive"] = max(0, ended - total)
    return timings


def _microseconds(log: PlainLog, key: str) -> int:
    seconds = log.seconds(key)
    return _UNKNOWN if seconds is None else round(seconds * 1e6)


def _milliseconds(microseconds: int) -> float:
    return _UNKNOWN if microseconds == _UNKNOWN else microseconds / 1000


def _beside(log: PlainLog) -> Json:
    """Return what HAR has no place for, named as in the log and in seconds."""
    connection = log.part("connection")
    return _free(
        {
            # By which browsers tell calls of programs from pages and pictures.
            "resourceType": "fetch",
            "error": log.text("response_cause"),
            "connection_reused": connection.flag("reused"),
            **{key: log.text(key) for key in _TEXTS},
            **{key: log.number(key) for key in _NUMBERS},
            **{key: log.seconds(key) for key in _SECONDS},
            **{key: log.flag(key) for key in _FLAGS},
        }
    )


def _free(facts: Json) -> Json:
    """Give the names that everybody is free to use to those facts that are known."""
    return {f"_{key}": value for key, value in facts.items() if value is not None}


def _method(call: PlainLog) -> str:
    return call.text("request_method") or call.text("name") or ""


def _url(call: PlainLog) -> str:
    return call.text("request_url") or ""


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
