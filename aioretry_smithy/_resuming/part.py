"""Take a part of a body, piece by piece, and refuse parts of another version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp
from aiohttp.connector import Connection

from .._bodies.response_content import TruncatedBody
from .._context.recording import use_call_deadline_for_body
from .._failures.hints import timestamp

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from aiohttp.client_proto import ResponseHandler
    from multidict import MultiMapping

    from .._call.call import Call
    from .._call.outcome import Outcome


_STRONG_TAG: Final = re.compile(r'"[\x21\x23-\x7e\x80-\uffff]*"')
_CONTENT_RANGE: Final = re.compile(
    r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII | re.IGNORECASE
)
_UNSATISFIED: Final = re.compile(r"bytes \*/(\d{1,18})", re.ASCII | re.IGNORECASE)
_DIGITS: Final = re.compile(r"\d{1,18}", re.ASCII)

_OPEN_RANGE: Final = re.compile(r"bytes=(\d{1,18})-", re.ASCII | re.IGNORECASE)

_WHOLE, _PARTIAL, _NO_MORE = 200, 206, 416
_OTHERWISE: Final = {
    _WHOLE: "the server has another version by now, or sends no parts (200)"
}

_APART: Final = 60.0
"""Seconds after which nothing can have changed twice: a time is a strong validator."""

_NAMED_ALIKE: Final = ("ETag", "Last-Modified", "Content-Type")
"""Headers whose values must be equal in all parts of a version."""


class OpenRange(NamedTuple):
    """The range of a caller who has the beginning of a body: all from a byte on."""

    start: int
    """The position of the first byte that is wanted."""

    validator: str | None
    """The value of ``If-Range``; None without one."""

    @classmethod
    def of(cls, headers: MultiMapping[str]) -> OpenRange | None:
        """Return the range that the headers of a request ask for.

        None where they ask for none, or for one with an end, or for several.
        """
        ranges = headers.getall("Range", [])
        match = _OPEN_RANGE.fullmatch(ranges[0].strip()) if len(ranges) == 1 else None
        if match is None:
            return None
        return cls(int(match[1]), headers.get("If-Range"))


class Mismatch(Exception):  # noqa: N818
    """Says in words why a part is not of the version."""


class Version:
    """The version of a downloaded body, identified by its validators."""

    start: int
    """The position of the first byte of the first answer."""

    total: int | None
    """The length of the whole body, once known from an answer."""

    validator: str
    """The value for ``If-Range``."""

    def __init__(
        self,
        headers: MultiMapping[str],
        validator: str,
        total: int | None,
        start: int = 0,
    ) -> None:
        self.start = start
        self.validator = validator
        self.total = total
        self._known = {name: headers.get(name) for name in _NAMED_ALIKE}
        self._tag_is_needed = validator == self._known["ETag"]

    @classmethod
    def of(
        cls,
        response: aiohttp.ClientResponse,
        now: float,
        asked: OpenRange | None = None,
    ) -> Version | None:
        """Return the version of a body; None where the rest of it cannot be asked for.

        Args:
            response: The first answer.
            now: The time of day.
            asked: The range that the caller has asked for; None for all.
        """
        headers = response.headers
        unit = headers.get("Accept-Ranges", "bytes").strip().lower()
        if _is_encoded(headers) or unit == "none":
            return None
        validator = _validator_of(headers, now)
        if response.status == _WHOLE:
            start, total = 0, _length_of(headers)
        elif response.status == _PARTIAL and asked is not None:
            match = _matched(_CONTENT_RANGE, headers)
            if match is None or int(match[1]) != asked.start:
                return None
            start, total = asked.start, None if match[3] == "*" else int(match[3])
            if _has_held(asked.validator, headers, now):
                # Later answers need not repeat it.
                validator = asked.validator
        else:
            return None
        return None if validator is None else cls(headers, validator, total, start)

    def may_be_part(self, response: aiohttp.ClientResponse) -> bool:
        """Say whether the status answers a range request: 206 or 416."""
        return response.status in {_PARTIAL, _NO_MORE}

    def check(
        self, response: aiohttp.ClientResponse, start: int, *, after_break: bool = False
    ) -> int | None:
        """Return where a part ends; None if the body ended before that.

        That is the position after the last byte, as the answer says.

        Args:
            response: The answer to a request for all from *start* on.
            start: The position of the first byte that is wanted.
            after_break: Whether the part before was cut off there.

        Raises:
            Mismatch: It brings no part of this version from there.
        """
        status, headers = response.status, response.headers
        if status == _PARTIAL:
            return self._end_of_part(headers, start)
        if status != _NO_MORE:
            raise Mismatch(_OTHERWISE.get(status, f"the server answers with {status}"))
        self._check_end(headers, start, after_break=after_break)
        return None

    def _end_of_part(self, headers: MultiMapping[str], start: int) -> int:
        self._check_names(headers)
        if self._tag_is_needed and "ETag" not in headers:
            raise Mismatch("the part has no ETag")
        if _is_encoded(headers):
            raise Mismatch("the part is encoded")
        match = _matched(_CONTENT_RANGE, headers)
        if match is None:
            raise Mismatch("the part does not say its range")
        end = int(match[2]) + 1
        if int(match[1]) != start or end <= start:
            raise Mismatch("the part is of another range")
        length = _length_of(headers)
        if length is not None and length != end - start:
            raise Mismatch("the part has another length than its range")
        if match[3] != "*":
            self._learn_total(int(match[3]))
        if self.total is not None and end > self.total:
            raise Mismatch("the range of the part goes beyond the end")
        return end

    def _check_end(
        self, headers: MultiMapping[str], start: int, *, after_break: bool
    ) -> None:
        """Take a 416 for the end."""
        tag = headers.get("ETag")
        if tag is not None and self._known["ETag"] not in {tag, None}:
            raise Mismatch("the server has another version by now (ETag)")
        # Of a body that was cut off nobody else has said that it might end there.
        if "Content-Range" in headers or (self.total is None and after_break):
            match = _matched(_UNSATISFIED, headers)
            if match is None:
                raise Mismatch("there is no telling whether it was the end (416)")
            self._learn_total(int(match[1]))
        if self.total not in {start, None}:
            raise Mismatch("the server has no more, but it is not the end (416)")

    def _learn_total(self, total: int) -> None:
        if self.total not in {total, None}:
            raise Mismatch("the server has a body of another length by now")
        self.total = total

    def _check_names(self, headers: MultiMapping[str]) -> None:
        for name, known in self._known.items():
            values = {*headers.getall(name, ())}
            if len(values) > 1:
                raise Mismatch(f"the part has several values of {name}")
            for value in values:
                if known is None:
                    self._known[name] = value
                elif value != known:
                    raise Mismatch(f"the server has another version by now ({name})")


def check_stream(response: aiohttp.ClientResponse) -> None:
    """Refuse an answer that a decorator has made without a stream.

    Raises:
        Mismatch: It is such a one.
    """
    content: object = response.content
    if not isinstance(content, aiohttp.StreamReader):
        raise Mismatch("the part is no stream")


def _validator_of(headers: MultiMapping[str], now: float) -> str | None:
    """Return what a part of the same version can be asked for by; None for nothing.

    That is a strong ETag. A Last-Modified is as good if it was long before the answer:
    also beside a weak ETag, where RFC 9110, 13.1.5 forbids it, and browsers do it.
    """
    tags, times = headers.getall("ETag", []), headers.getall("Last-Modified", [])
    if len(tags) > 1 or len(times) > 1:
        return None
    if tags and _STRONG_TAG.fullmatch(tags[0]):
        return tags[0]
    changed = timestamp(times[0], now) if times else None
    answered = timestamp(headers.get("Date", ""), now)
    if changed is None or answered is None or answered - changed < _APART:
        return None
    return times[0]


def _has_held(validator: str | None, headers: MultiMapping[str], now: float) -> bool:
    """Say whether a 206 is of the version that an ``If-Range`` has named.

    A server may look at none. A weak tag may be that of other bytes, too.
    """
    if validator is None:
        return False
    if _STRONG_TAG.fullmatch(validator):
        return headers.get("ETag", validator) == validator
    is_time = timestamp(validator, now) is not None
    return is_time and headers.get("Last-Modified", validator) == validator


def _length_of(headers: MultiMapping[str]) -> int | None:
    """Return the length of a body, if it has one: a chunked one has none."""
    if "Transfer-Encoding" in headers:
        return None
    match = _DIGITS.fullmatch(headers.get("Content-Length", ""))
    return None if match is None else int(match[0])


def _is_encoded(headers: MultiMapping[str]) -> bool:
    return headers.get("Content-Encoding", "identity").strip().lower() != "identity"


def _matched(form: re.Pattern[str], headers: MultiMapping[str]) -> re.Match[str] | None:
    """Return the match of the only ``Content-Range`` header; None if malformed."""
    values = headers.getall("Content-Range", [])
    return form.fullmatch(values[0].strip()) if len(values) == 1 else None


class DownloadConnection(Connection):
    """A proxy for the connection of a download's current part.

    Callbacks are added to it by those who hold a place, or count a request, to the end
    of the stream: of aiohttp's response there may be nothing left by then.

    Args:
        first: The connection of the first part.
        let_go: Called when the response lets go of it.
    """

    current: Connection
    """The connection of the part that is under way, or was the last."""

    def __init__(self, first: Connection, let_go: Callable[[], None]) -> None:
        # It has nothing itself that could be left open: no protocol.
        self._protocol = None
        self._callbacks = []
        self.current = first
        self._let_go: Callable[[], None] | None = let_go

    def __getattr__(self, name: str) -> object:
        # What aiohttp has beside this is that of the present connection.
        return getattr(self.current, name)

    @property
    def protocol(self) -> ResponseHandler | None:
        """The protocol of the present connection."""
        return self.current.protocol

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport of the present connection."""
        return self.current.transport

    @property
    def closed(self) -> bool:
        """Whether the present connection is closed."""
        return self.current.closed

    def close(self) -> None:
        """Close the present connection: the caller has closed the response."""
        self.current.close()
        self.release()

    def release(self) -> None:
        """Release the download, because the response was released or collected."""
        if self._let_go is not None:
            self._let_go()

    def end(self) -> None:
        """Release the current connection at the end of the download."""
        if self._let_go is not None:
            self._let_go = None
            self.current.release()
            self._notify_release()


class Piece(NamedTuple):
    """Some bytes of a body."""

    data: bytes

    ends_chunk: bool = False
    """Whether an HTTP chunk ends with them."""


class Part:
    """The body of one answer, a part of the whole."""

    began_at: int
    """The position of its first byte in the whole."""

    end: int | None
    """The position after its last byte; None of the first part."""

    content: aiohttp.StreamReader
    """The stream of the part, possibly cut by an injected fault."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        began_at: int = 0,
        end: int | None = None,
    ) -> None:
        self._headers = response.headers
        # The first one is the caller's, who may drop it.
        self._response = None if end is None else response
        self.began_at = began_at
        self.end = end
        self.content = content = response.content
        self._in_chunks = is_chunked(response)
        # As the server sends it.
        self._sent = content.whole if isinstance(content, TruncatedBody) else content

    @property
    def is_cut(self) -> bool:
        """Whether an injected fault ends the part before all that has arrived."""
        return self._sent is not self.content

    @property
    def has_arrived(self) -> bool:
        """Whether the part was received whole, read or not."""
        return self._sent.is_eof()

    @property
    def received(self) -> int:
        """The number of bytes received so far."""
        return self._sent.total_bytes

    @property
    def is_at_end(self) -> bool:
        """Whether all of it was taken."""
        return self.content.at_eof() and not self.content._http_chunk_splits

    def use_call_deadline(self, call: Call, response: aiohttp.ClientResponse) -> None:
        """Let the call's deadline, not the attempt's, limit the reading of the body."""
        use_call_deadline_for_body(call, response, self._sent)

    def at_end(self, before: Callable[[], None], then: Callable[[], None]) -> None:
        """Call a function when all has arrived, in place of another one."""
        callbacks = self._sent._eof_callbacks
        callbacks[:] = [then if each == before else each for each in callbacks]

    def outcome_in(self, call: Call) -> Outcome | None:
        """Return the recorded outcome of the part's request."""
        outcomes = (each.outcome for each in reversed(call.sent))
        return next((each for each in outcomes if each.headers is self._headers), None)

    async def next_piece(self) -> Piece | None:
        """Return the next piece, waiting for it if necessary; None at the end.

        What has arrived before a failure comes before that.

        Raises:
            Exception: The body has failed.
        """
        content = self.content
        here = None if content.exception() is None else self.piece_at_hand()
        if here is not None:
            return here
        if not self._in_chunks:
            data = await content.readany()
            return Piece(data) if data else None
        piece = Piece(*await content.readchunk())
        return piece if piece.data or piece.ends_chunk else None

    def piece_at_hand(self) -> Piece | None:
        """Return bytes that have arrived, also before a failure; None for none.

        aiohttp refuses what it has in its buffer once the body has failed.
        """
        content = self.content
        start, ends = content._cursor, content._http_chunk_splits
        if ends:
            end = ends[0]
            del ends[0]
            data = content._read_nowait(end - start) if end > start else b""
            return Piece(data, ends_chunk=True)
        return Piece(content._read_nowait(-1)) if content._buffer else None

    def close(self, connection: DownloadConnection | None) -> None:
        """Close the connection: a full pool may have no second connection.

        That of the first part is under the *connection* of the download; its response
        stays open, since that is the one that the caller has.
        """
        sent = self._sent
        if sent.exception() is None and not sent.is_eof():
            # A reader may be waiting.
            sent.set_exception(aiohttp.ClientConnectionError("Connection closed"))
        if self._response is not None:
            self._response.close()
        elif connection is not None:
            connection.current.close()


def is_chunked(response: aiohttp.ClientResponse) -> bool:
    """Say whether a body comes in HTTP chunks."""
    return "chunked" in response.headers.get("Transfer-Encoding", "").lower()


class PartsToCome:
    """Keeps what the requests for further parts need, which a call gives up at its end.

    Args:
        call: The call, before its end.
    """

    __slots__ = ("_call", "_session")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._session = call.session

    def begin(self) -> None:
        """Begin a part: tries count from here."""
        call = self._call
        for last in call.sent[-1:]:
            call.tries_before = last.number
            call.switches = 0
            call.waits_at_circuits = None
            call.stays_at = None if last.route is None else last.route.endpoint
        call.session = self._session

    def end(self) -> None:
        """Release the session again, if the call is over."""
        call = self._call
        if call.is_over:
            call.session = call.resources = None

    def let_go(self) -> None:
        """Release what further parts would need: none is asked for any more."""
        self._session = None
