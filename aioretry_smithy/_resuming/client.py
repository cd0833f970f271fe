"""Continue interrupted downloads; the caller reads a single stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler

from .. import _checks as check
from .._call.outcome import content_of
from .._call.recorder import judge_attempt, record_failure
from .._context.chain import retrying_client
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._errors import bad_argument
from .._policies.conditions import checked_answer
from .._text.printable import name_of
from .download import Download
from .part import OpenRange, Part, Piece, Version, is_chunked

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


class _NoConnection(ResponseHandler):
    """The protocol of a stream without a connection: pausing does nothing."""

    def pause_reading(self) -> None:
        pass

    def resume_reading(self, resume_parser: bool = True) -> None:
        pass


class ResumedBody(aiohttp.StreamReader):
    """A response body that continues after a broken connection.

    It takes a piece of a part when somebody reads, so that aiohttp reads no faster than
    the caller does.
    """

    def __init__(
        self, download: Download, first: aiohttp.StreamReader, *, in_chunks: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        limit, _ = first.get_read_buffer_limits()
        super().__init__(_NoConnection(loop), limit, loop=loop)
        self._download = download
        self._is_waiting = False
        if in_chunks:
            self.begin_http_chunk_receiving()

    def __del__(self) -> None:
        """Close the download when the body is garbage collected."""
        self._download.give_up()

    async def _wait(self, func_name: str) -> None:
        """Wait for bytes when all that have arrived are read."""
        if self._is_waiting:
            raise RuntimeError(
                f"{func_name}() called while another coroutine is already waiting for"
                " incoming data"
            )
        self._is_waiting = True
        try:
            self._feed(await self._download.next_piece())
        except Exception as cause:
            if self._exception is None:
                self.set_exception(cause)
            raise
        finally:
            self._is_waiting = False

    def set_exception(self, exc: BaseException, *exc_cause: BaseException) -> None:
        """Fail: the caller has closed the response, or the download cannot go on."""
        super().set_exception(exc, *exc_cause)
        self._download.give_up()

    def read_nowait(self, n: int = -1) -> bytes:
        """Return what has arrived, without a wait."""
        while self._exception is None and not self._eof and not self._is_waiting:
            piece = self._download.piece_at_hand()
            if piece is None:
                break
            self._feed(piece)
        return super().read_nowait(n)

    async def wait_eof(self) -> None:
        """Wait for the end, but take no more of the body than fits into the buffer."""
        while not (self._eof or self._is_waiting or self._size > self._high_water):
            await self._wait("wait_eof")
        await super().wait_eof()

    def _feed(self, piece: Piece | None) -> None:
        if piece is not None:
            self.feed_data(piece.data)
            if piece.ends_chunk and self._http_chunk_splits is not None:
                self.end_http_chunk_receiving()
        if self._download.is_whole and not self._eof:
            self.feed_eof()


_OWN_HEADERS: Final = ("Upgrade", "Accept-Encoding")
_OWN_ARGUMENTS: Final = ("data", "json", "upload_tracker")


class ResumingClient(DecoratingClient[HttpClient]):
    """Continues a download from the byte at which the connection broke.

    The caller reads one stream, and notices nothing. The rest is asked for with
    ``Range`` and ``If-Range``; it is taken only where the headers say that it is of the
    same version and fits to the byte. Otherwise the stream ends with an
    :class:`aiohttp.ClientPayloadError`, and what came before is the beginning of the
    first version.

    - Eligible is a GET without a body, and without an ``Upgrade`` or an
      ``Accept-Encoding`` of the caller's or the session's own. It gets
      ``Accept-Encoding: identity``: a compressed body cannot be continued.
    - A caller who has the beginning of a file asks for ``Range: bytes=N-``, with its
      ``ETag`` as ``If-Range``: a 206 brings the rest, and is continued likewise; a 200
      brings a newer version whole. Any other ``Range`` is passed on as it is.
    - An answer can be continued if it has a strong ``ETag``, or a ``Last-Modified`` of
      a minute before its ``Date`` at least.
    - Each part is an attempt in the log, with the retries, limits and circuit breakers
      inside this client. After one that brought something the rest is asked for at
      once; no budget pays for that. None of them ends a download: what they refuse is
      a part that brings nothing.
    - An ``attempt_timeout`` ends at the headers; the deadline of the call holds for the
      whole stream. Give ``ClientTimeout(sock_read=...)`` against silence.

    >>> builder = SessionBuilder.standard("https://files.example.com").decorator(
    ...     ResumingClient.new_decorator()
    ... )
    """

    _serves = "sessions"
    _sends_again = _stays_outside = True

    def __init__(
        self,
        delegate: HttpClient,
        max_resumes_without_progress: int,
        request_filter: Callable[[HttpRequest], bool] | None,
    ) -> None:
        super().__init__(delegate)
        self._max_without_progress = max_resumes_without_progress
        self._filter = request_filter
        self._has_attempts = retrying_client(delegate) is not None

    @classmethod
    def new_decorator(
        cls,
        *,
        max_resumes_without_progress: int = 3,
        request_filter: Callable[[HttpRequest], bool] | None = None,
    ) -> Decorator:
        """Return a decorator for a session builder.

        Args:
            max_resumes_without_progress: How many parts in a row may bring no byte, an
                int >= 0: they break before, fail, are refused by something further in,
                or are answered by a 408, a 429 or a 5xx. Before the next one it waits
                as :meth:`Backoff.of_default` says, or as long as the server asks for.
                0: downloads are not continued.
            request_filter: A plain function ``(request) -> bool`` that says which
                requests are downloads. None: all that can be continued. Give one where
                an API answers on the same session, whose JSON is better compressed.

        Returns:
            The decorator. Put it outside of the retrying client.

        Raises:
            ValueError: An argument is not as described; or, when the session is built,
                the decorator stands inside a retrying or a hedging client, or one
                further in has ``buffer_response=True``.

        >>> decorator = ResumingClient.new_decorator(
        ...     request_filter=lambda request: "/files/" in str(request.url)
        ... )
        """
        name = "max_resumes_without_progress"
        check.integer(name, max_resumes_without_progress, 0)
        check.function("request_filter", request_filter, "the request")

        def decorator(delegate: HttpClient) -> HttpClient:
            config = getattr(retrying_client(delegate), "config", None)
            if getattr(config, "buffer_response", False):
                expected = f"False inside of {cls.__name__}"
                raise bad_argument("buffer_response", True, expected)
            return cls(delegate, max_resumes_without_progress, request_filter)

        return decorator

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request*; if its body breaks off, request the rest."""
        call = ctx.call
        if not self._takes_up(ctx, request):
            send = self._send if ctx.attempt is None else self.delegate.execute
            return await send(ctx, request)
        request = request.with_header("Accept-Encoding", "identity")
        response = await self._send(ctx, request)
        content = content_of(response)
        is_usual = issubclass(type(response), aiohttp.ClientResponse)
        if not is_usual or not isinstance(content, aiohttp.StreamReader):
            # A user's class promises only that it can be read.
            return response
        part = Part(response)
        if part.has_arrived and not part.is_cut:
            return response
        part.use_call_deadline(call, response)
        asked = OpenRange.of(request.merged_headers(call.default_headers))
        version = Version.of(response, call.wall_clock, asked)
        if version is not None:
            download = Download(
                self._send, ctx, request, response, version, self._max_without_progress
            )
            response.content = ResumedBody(
                download, content, in_chunks=is_chunked(response)
            )
        return response

    async def _send(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send a request, or that for a part, which gets a log in any case."""
        if self._has_attempts:
            return await self.delegate.execute(ctx, request)
        attempt = ctx.derive(request)
        call = ctx.call
        try:
            return await self.delegate.execute(attempt, request)
        except BaseException as cause:
            judge_attempt(attempt, cause)
            raise
        finally:
            # A request that was sent again has put another one there.
            record = attempt.record
            record.is_final = True
            if not call.is_final:
                call.outcome = record.outcome

    def _takes_up(self, ctx: ClientRequestContext, request: HttpRequest) -> bool:
        """Say whether a request is one whose answer may be continued."""
        call = ctx.call
        if not self._max_without_progress or not _is_download(call, request):
            return False
        if self._filter is None:
            return True
        try:
            return checked_answer("request_filter", self._filter(request))
        except Exception as cause:
            record_failure(ctx, cause)
            raise

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        settings = f"max_resumes_without_progress={self._max_without_progress}"
        if self._filter is not None:
            settings += f", request_filter={name_of(self._filter)}"
        return f"{type(self).__name__}({settings})"


def _is_download(call: Call, request: HttpRequest) -> bool:
    """Say whether a request is a plain download: GET without a range or conditions."""
    arguments = request.arguments
    if request.method != "GET" or any(
        arguments.get(name) is not None for name in _OWN_ARGUMENTS
    ):
        return False
    own = None if call.options is None else call.options.retry
    if own is not None and own.buffer_response:
        return False
    headers = request.merged_headers(call.default_headers)
    if "Range" in headers and OpenRange.of(headers) is None:
        return False
    return all(name not in headers for name in _OWN_HEADERS)
