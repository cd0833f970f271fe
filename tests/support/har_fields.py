"""Check an HTTP Archive against the fields that the specification of HAR 1.2 lists."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

FIELDS = {
    "archive": "log:log",
    "log": "version:text creator:creator browser?:creator pages?:page* entries:entry*",
    "creator": "name:text version:text",
    "page": "startedDateTime:time id:text title:text pageTimings:pageTimings",
    "pageTimings": "onContentLoad?:optional onLoad?:optional",
    "entry": (
        "pageref?:text startedDateTime:time time:duration request:request"
        " response:response cache:cache timings:timings serverIPAddress?:text"
        " connection?:text"
    ),
    "request": (
        "method:text url:text httpVersion:text cookies:cookie* headers:pair*"
        " queryString:pair* postData?:postData headersSize:size bodySize:size"
    ),
    "response": (
        "status:status statusText:text httpVersion:text cookies:cookie* headers:pair*"
        " content:content redirectURL:text headersSize:size bodySize:size"
    ),
    "cookie": "name:text value:text",
    "pair": "name:text value:text",
    "postData": "mimeType:text text:text",
    "content": "size:size compression?:size mimeType:text text?:text encoding?:text",
    "cache": "",
    "timings": (
        "blocked?:optional dns?:optional connect?:optional send:duration wait:duration"
        " receive:duration ssl?:optional"
    ),
}
"""The fields of each object: ``?`` stands behind optional ones, ``*`` behind lists."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def check(archive: Any) -> Any:
    """Check an archive, a text or an object, and return its ``log``."""
    if isinstance(archive, str):
        archive = json.loads(archive, parse_constant=_fail)
    _check_object("archive", archive)
    log = archive["log"]
    assert "1.2" == log["version"]
    ids = [page["id"] for page in log["pages"]]
    assert len({*ids}) == len(ids)
    for entry in log["entries"]:
        assert entry["pageref"] in ids
        timings = entry["timings"].values()
        known = sum(time for time in timings if time != -1)
        assert round(known, 3) == round(entry["time"], 3)
    return log


def _check_object(kind: str, value: Any) -> None:
    fields = dict(field.split(":") for field in FIELDS[kind].split())
    allowed = {name.rstrip("?") for name in fields} | {"comment"}
    assert {name for name in value if not name.startswith("_")} <= allowed, kind
    for name, what in fields.items():
        if name.rstrip("?") in value:
            _check(what, value[name.rstrip("?")])
        else:
            assert name.endswith("?"), f"{kind} without {name}"


def _check(what: str, value: Any) -> None:
    if what.endswith("*"):
        assert isinstance(value, list)
        for each in value:
            _check(what[:-1], each)
    elif what in FIELDS:
        assert isinstance(value, dict)
        _check_object(what, value)
    else:
        assert _PLAIN[what](value), f"{value!r} is no {what}"


def _is_text(value: Any) -> bool:
    # Readers in other languages refuse lone surrogates.
    return isinstance(value, str) and bool(value.encode() or True)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: Any) -> bool:
    return bool(_TIME.fullmatch(value) and datetime.fromisoformat(value))


_PLAIN = {
    "text": _is_text,
    "time": _is_time,
    "duration": lambda value: _is_number(value) and value >= 0,
    "optional": lambda value: _is_number(value) and (value >= 0 or value == -1),
    "size": lambda value: isinstance(value, int) and value >= -1,
    "status": lambda value: isinstance(value, int) and 0 <= value < 1000,
}


def _fail(constant: str) -> None:
    raise AssertionError(constant)
