"""Read the error code from a response, such as ``SlowDown``."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from .._bodies.response_content import read_head_within
from .._call.outcome import headers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import aiohttp

_MAX_BYTES = 64 * 1024
_MAX_SECONDS = 1.0
_MEDIA_TYPE = re.compile(
    r"(?:application|text)/(?:[\w.-]+\+)?(?P<kind>json|xml)"
    r"|application/x-amz-json-[\d.]+",
    re.ASCII,
)
# Fit for messages and logs: no spaces, no control characters, not too long.
_CODE = re.compile(r"[!-~]{1,128}")
_MEMBER = re.compile(r'\s*[{,]\s*"(?P<name>(?:[^"\\]|\\.)*)"\s*:\s*')


async def read_error_code(
    response: aiohttp.ClientResponse, *, seconds: float = math.inf
) -> str | None:
    """Return the error code that a response carries.

    The code is in the first of these places, without a ``namespace#`` before it and a
    ``:url`` after it:

    1. the header ``x-amzn-errortype``; then the body is not read;
    2. in JSON the members ``__type`` and ``code``, and ``code`` inside ``error``, names
       in any case;
    3. in XML the first element ``<Code>``.

    Only statuses from 400 are looked at, and only bodies whose ``Content-Type`` is JSON
    or XML; of those at most 64 KiB, and only the part that arrives within *seconds*,
    one at most. The caller can still read them, and gets the error of one that fails.

    Returns:
        At most 128 printable ASCII characters without a space; None without such a
        code.

    Source: the restJson1, awsJson, restXml, awsQuery and ec2Query protocols of Smithy.

    >>> async def code_of(body):
    ...     headers = {"Content-Type": "application/x-amz-json-1.0"}
    ...     request = HttpRequest("POST", "http://localhost/")
    ...     response = new_response(request, 400, headers=headers, body=body)
    ...     return await read_error_code(response)
    >>> asyncio.run(code_of(b'{"__type": "com.example#SlowDown"}'))
    'SlowDown'
    """
    if response.status < 400:
        return None
    headers = headers_of(response)
    header = _bare(headers.get("x-amzn-errortype"))
    if header is not None:
        return header
    media_type = headers.get("Content-Type", "").partition(";")[0]
    match = _MEDIA_TYPE.fullmatch(media_type.strip().lower())
    if match is None:
        return None
    look = _in_xml if match["kind"] == "xml" else _in_json
    head = await read_head_within(
        response,
        _MAX_BYTES,
        seconds=min(_MAX_SECONDS, seconds),
        # The first code in the body wins: later bytes cannot change it.
        enough=lambda head: _bare(next(iter(look(head)), None)) is not None,
    )
    return next(filter(None, map(_bare, look(head))), None)


def _bare(code: object) -> str | None:
    if not isinstance(code, str):
        return None
    code, _, url = code.partition(":")
    if url.startswith("//"):
        return None
    name = code.rpartition("#")[2].strip()
    return name if _CODE.fullmatch(name) else None


def _in_json(body: bytes) -> Iterable[object]:
    members = dict(_members(body.decode("utf-8-sig", "replace")))
    error = members.get("error")
    inner = error.items() if isinstance(error, dict) else ()
    nested = (value for name, value in inner if name.lower() == "code")
    return chain([members.get("__type"), members.get("code")], nested)


def _members(text: str) -> Iterator[tuple[str, object]]:
    """Yield the members of a JSON object that may be cut, with names in lower case."""
    # Python refuses integers of thousands of digits.
    decode = json.JSONDecoder(parse_int=float).raw_decode
    end = 0
    while member := _MEMBER.match(text, end):
        try:
            value, end = decode(text, member.end())
        except (ValueError, RecursionError):
            return
        yield member["name"].lower(), value


def _in_xml(body: bytes) -> Iterable[str]:
    # Few services answer in XML.
    from xml.parsers import expat  # noqa: PLC0415

    codes: list[str] = []
    text: list[str] = []
    # Ignore the declared encoding: codec lookups are only for trusted documents.
    parser = expat.ParserCreate("utf-8")

    def start(name: str, attributes: dict[str, str]) -> None:
        if _is_code(name):
            parser.CharacterDataHandler = text.append

    def end(name: str) -> None:
        if _is_code(name):
            parser.CharacterDataHandler = None
            codes.append("".join(text))
            text.clear()

    def refuse(*doctype: object) -> None:
        # Without one there are no entities to expand.
        raise ValueError

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    # The codes before the end of a cut or broken document count.
    with suppress(expat.ExpatError, ValueError):
        parser.Parse(body, False)
    return codes


def _is_code(element: str) -> bool:
    return element.rpartition(":")[2] == "Code"
