"""The decorator that sends a request again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, Unpack

from .._client import DecoratingClient
from .._errors import bad_argument, raised_from
from .._options import UNSET, Unset
from .._response import discard
from .config import RetryConfig
from .config_mapping import RetryConfigMapping
from .limiter_calls import report
from .smithy_bridge import TokenSession
from .stop_reason import RetryStopReason
from .strategy_session import StrategySession

if TYPE_CHECKING:
    import aiohttp

    from .._client import Decorator, HttpClient
    from .._context import ClientRequestContext
    from .._request import HttpRequest
    from .config import FurtherSettings, Strategy
    from .session import RetrySession, Wait


class RetryingClient(DecoratingClient):
    """Sends a request again for as long as its strategy wants another attempt.

    Each attempt gets a context, a log and a timeout of its own. When it stops, the
    caller gets the last response as it is or the last exception as it is; the log of
    the call says why it stopped. After Armeria's ``RetryingClient``.

    Args:
        delegate: The next client inwards.
        config: How to retry; or how to retry which call.
    """

    config: RetryConfig | RetryConfigMapping
    """How to retry."""

    def __init__(
        self, delegate: HttpClient, config: RetryConfig | RetryConfigMapping
    ) -> None:
        super().__init__(delegate)
        self.config = config

    @classmethod
    def new_decorator(
        cls,
        strategy: Strategy | RetryConfig,
        max_total_attempts: int | Literal[Unset.UNSET] = UNSET,
        attempt_timeout: float | Literal[Unset.UNSET] | None = UNSET,
        **settings: Unpack[FurtherSettings],
    ) -> Decorator:
        """Make a decorator for a session builder.

        Args:
            strategy: Decides after each attempt; or a whole :class:`RetryConfig`.
            max_total_attempts: As for :class:`RetryConfig`.
            attempt_timeout: As for :class:`RetryConfig`.
            settings: The other arguments of :class:`RetryConfig`, by name.

        Raises:
            ValueError: An argument is out of range, or there are settings beside a
                whole configuration.

        >>> decorator = RetryingClient.new_decorator(
        ...     RetryStrategy.failsafe(), max_total_attempts=3, attempt_timeout=2.0
        ... )
        >>> decorator = RetryingClient.new_decorator(RetryStrategy.failsafe(), 3, 2.0)
        """
        given: dict[str, Any] = {**settings}
        if max_total_attempts is not UNSET:
            given["max_total_attempts"] = max_total_attempts
        if attempt_timeout is not UNSET:
            given["attempt_timeout"] = attempt_timeout
        if not isinstance(strategy, RetryConfig):
            config = RetryConfig(strategy, **given)
        elif given:
            raise bad_argument("settings", given, "none beside a RetryConfig")
        else:
            config = strategy
        return cls._decorator(config)

    @classmethod
    def new_mapped_decorator(cls, mapping: RetryConfigMapping) -> Decorator:
        """Make a decorator that retries each call by the settings for its key.

        Args:
            mapping: Says which. It is asked once per call.

        Raises:
            ValueError: *mapping* is none.

        >>> decorator = RetryingClient.new_mapped_decorator(
        ...     RetryConfigMapping.per_method(
        ...         lambda method: RetryConfig(
        ...             RetryStrategy.failsafe(),
        ...             max_total_attempts=5 if method == "GET" else 2,
        ...         )
        ...     )
        ... )
        """
        if not isinstance(mapping, RetryConfigMapping):
            raise bad_argument("mapping", mapping, "a RetryConfigMapping")
        return cls._decorator(mapping)

    @classmethod
    def _decorator(cls, config: RetryConfig | RetryConfigMapping) -> Decorator:
        def decorator(delegate: HttpClient) -> HttpClient:
            return cls(delegate, config)

        return decorator

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request* until the strategy or a limit says stop."""
        session = self._new_session(ctx, request)
        try:
            # An empty open() of the others would cost each call a coroutine.
            if type(session) is TokenSession:
                await _wait(session, await session.open())
            while (attempt := session.new_attempt()) is not None:
                try:
                    # Not in a variable, which would keep it alive through a wait.
                    session.response = await self.delegate.execute(
                        attempt, attempt.request
                    )
                except Exception as cause:
                    session.fail(cause)
                attempt.log._is_settled = True
                wanted = await session.ask()
                if session.limiter is not None:
                    await report(session.limiter, attempt, session.cause, wanted=wanted)
                    if session.leave is not None:
                        await session.end_retry()
                if not session.may_go_on(wanted):
                    break
                await _wait_for_next(session)
            if session.planned:
                await session.drop()
        except BaseException as error:
            _abandon(ctx, session, error)
            await (session.drop() if session.planned else session.end_retry())
            raise
        return _finish(ctx, session)

    def _new_session(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> RetrySession:
        options, config = ctx.options, self.config
        if options is not None and options.retry is not None:
            config = options.retry
        elif not isinstance(config, RetryConfig):
            try:
                config = config.config_for(ctx, request)
            except Exception as cause:
                ctx.root.log.stop_reason = RetryStopReason.ERROR
                ctx.log._record_failure(cause)
                raise
        if config.uses_tokens:
            return TokenSession(config, ctx, request)
        return StrategySession(config, ctx, request)

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        config = self.config
        if not isinstance(config, RetryConfig):
            return f"{type(self).__name__}(mapping={config!r})"
        shown = {
            setting.name: repr(getattr(config, setting.name))
            for setting in fields(config)
            if setting.repr
        }
        if config.uses_tokens:
            shown["classifiers"] = f"({', '.join(map(_name, config.classifiers))})"
            shown["raise_retry_error"] = repr(config.raise_retry_error)
            if config.token_scope is not None:
                shown["token_scope"] = _name(config.token_scope)
        settings = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"{type(self).__name__}({settings})"


def _name(setting: object) -> str:
    name: str = getattr(setting, "__name__", repr(setting))
    return name


async def _wait_for_next(session: RetrySession) -> None:
    """Wait for the next attempt, or note the reason why there is none."""
    wait = session.fit(await session.next_delay())
    if wait is not None and await session.ask_limiter(wait):
        await _wait(session, wait)


async def _wait(session: RetrySession, wait: Wait | None) -> None:
    if wait is None:
        return
    log = session.log
    clock = asyncio.get_running_loop().time
    started = clock()
    log.delay, log.delay_source = wait
    try:
        delay = wait.delay
        if session.response is not None:
            await discard(session.response, seconds=delay)
            delay -= clock() - started
        session.forget_outcome()
        await asyncio.sleep(delay)
        if waited := await session.admit():
            log.delay, log.delay_source = wait.delay + waited, "rate_limit"
    except BaseException:
        log.delay = clock() - started
        raise


def _finish(ctx: ClientRequestContext, session: RetrySession) -> aiohttp.ClientResponse:
    log = ctx.log.root
    # Unless a decorator has answered without waiting for this.
    if not log._is_settled:
        log.stop_reason = session.stop_reason
        log._retry_error = session.refusal
        log._record_answer(session.attempt.log)
    response = session.response
    if response is not None:
        return response
    cause: Any = session.cause
    session.end()
    log._record_failure(cause)
    try:
        raise cause
    finally:
        # It has this frame, which must not have it.
        del cause


def _abandon(
    ctx: ClientRequestContext, session: RetrySession, error: BaseException
) -> None:
    """Leave nothing behind when *error* breaks into a call."""
    log, cause = session.attempt.log, session.cause
    # Otherwise another pass has answered meanwhile.
    is_open = not log.root._is_settled and (
        log.root.duration is None or session.attempt is ctx
    )
    if session.response is not None:
        session.response.close()
    raised = isinstance(error, Exception)
    if is_open:
        log.root._record_failure(error)
        log.root.stop_reason = (
            session.stop_reason or RetryStopReason.ERROR
            if raised
            else RetryStopReason.CANCELLED
        )
    if raised and all(link is not error for link in raised_from(cause)):
        # An exception of somebody's own may refuse to be written on.
        with suppress(Exception):
            error.__context__ = error.__context__ or cause
    session.end()
