"""The decorator that sends a request again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Unpack, cast

from .._client import DecoratingClient
from .._errors import bad_argument, raised_from
from .._response import discard, observe
from .config import RetryConfig
from .smithy_bridge import TokenSession
from .stop_reason import RetryStopReason
from .strategy_session import StrategySession

if TYPE_CHECKING:
    import aiohttp

    from .._client import Decorator, HttpClient
    from .._context import ClientRequestContext
    from .._request import HttpRequest
    from .config import RetrySettings, Strategy
    from .session import RetrySession, Wait


class RetryingClient(DecoratingClient):
    """Sends a request again for as long as its strategy wants another attempt.

    Each attempt gets a context, a log and a timeout of its own. When it stops, the
    caller gets the last response as it is or the last exception as it is; the log of
    the call says why it stopped. After Armeria's ``RetryingClient``.

    Args:
        delegate: The next client inwards.
        config: How to retry.
    """

    config: RetryConfig
    """How to retry."""

    def __init__(self, delegate: HttpClient, config: RetryConfig) -> None:
        super().__init__(delegate)
        self.config = config

    @classmethod
    def new_decorator(
        cls,
        strategy: Strategy | RetryConfig,
        **settings: Unpack[RetrySettings],
    ) -> Decorator:
        """Make a decorator for a session builder.

        Args:
            strategy: Decides after each attempt; or a whole :class:`RetryConfig`.
            settings: The keyword arguments of :class:`RetryConfig`.

        Raises:
            ValueError: An argument is out of range, or there are settings beside a
                whole configuration.

        >>> decorator = RetryingClient.new_decorator(
        ...     RetryStrategy.failsafe(), max_total_attempts=3, attempt_timeout=2.0
        ... )
        """
        if not isinstance(strategy, RetryConfig):
            config = RetryConfig(strategy, **settings)
        elif settings:
            raise bad_argument("settings", settings, "none beside a RetryConfig")
        else:
            config = strategy

        def decorator(delegate: HttpClient) -> HttpClient:
            return cls(delegate, config)

        return decorator

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request* until the strategy or a limit says stop."""
        new_session = TokenSession if self.config.uses_tokens else StrategySession
        session: RetrySession = new_session(self.config, ctx, request)
        try:
            if isinstance(session, TokenSession):
                await self._wait(session, await session.open())
            while session.may_begin():
                await self._send(session)
                wanted = await session.ask()
                if not session.may_go_on(wanted):
                    break
                wait = session.fit(await session.next_delay())
                if wait is None:
                    break
                await self._wait(session, wait)
        except BaseException as error:
            _abandon(session, error)
            raise
        return _finish(session)

    async def _send(self, session: RetrySession) -> None:
        attempt = session.new_attempt()
        try:
            response = await self.delegate.execute(attempt, attempt.request)
        except Exception as cause:
            attempt.log.record_failure(cause)
            session.cause = cause
        else:
            observe(attempt.log, response)
            session.response = response

    async def _wait(self, session: RetrySession, wait: Wait | None) -> None:
        if wait is None:
            return
        log = session.attempt.log
        if session.response is not None:
            await discard(session.response)
            session.response = None
        started = asyncio.get_running_loop().time()
        log.delay, log.delay_source = wait
        try:
            await asyncio.sleep(wait.delay)
            if waited := await session.admit():
                log.delay, log.delay_source = wait.delay + waited, "rate_limit"
        except BaseException:
            log.delay = asyncio.get_running_loop().time() - started
            raise

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        settings = ", ".join(
            f"{setting.name}={getattr(self.config, setting.name)!r}"
            for setting in fields(self.config)
            if setting.repr
        )
        return f"{type(self).__name__}({settings})"


def _finish(session: RetrySession) -> aiohttp.ClientResponse:
    last = session.attempt.log
    log = last.root
    log.stop_reason = session.stop_reason
    log.record_answer(last)
    if session.cause is not None:
        log.record_failure(session.cause)
        raise session.cause
    return cast("aiohttp.ClientResponse", session.response)


def _abandon(session: RetrySession, error: BaseException) -> None:
    """Leave nothing behind when *error* breaks into a call."""
    log, cause = session.attempt.log, session.cause
    is_open = log.root.duration is None  # else another pass has answered meanwhile
    if log.duration is None:
        log.record_failure(error)
    if session.response is not None:
        session.response.close()
    raised = isinstance(error, Exception)
    if is_open:
        log.root.stop_reason = (
            session.stop_reason or RetryStopReason.ERROR
            if raised
            else RetryStopReason.CANCELLED
        )
    if raised and all(link is not error for link in raised_from(cause)):
        # An exception of somebody's own may refuse to be written on.
        with suppress(Exception):
            error.__context__ = error.__context__ or cause
