"""The decorators of functions: retry them, ask a circuit breaker, log their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from .._breaker.client import CommonCircuitBreakerClient
from .._context.client import RpcClient
from .._context.context import UNSET, Unset
from .._errors import bad_argument
from .._logging.client import CommonLoggingClient
from .._retry.call_adapter import RPC
from .._retry.client import CommonRetryingClient
from .._retry.config import RetryConfig, RetryConfigMapping
from .decorate import attempted

if TYPE_CHECKING:
    from .._context.client import RpcDecorator
    from .._context.context import ClientRequestContext
    from .._request.request import RpcRequest
    from .._retry.config import SharedSettings, Strategy


class CircuitBreakerRpcClient(CommonCircuitBreakerClient[RpcClient]):
    """Refuses calls of a function while the circuit is open.

    It is :class:`CircuitBreakerClient` for the functions of :func:`rpc`. A function
    that returns is a success, unless a strategy of your own judges otherwise. After
    Armeria's ``CircuitBreakerRpcClient``.

    >>> decorator = CircuitBreakerRpcClient.new_decorator(CircuitBreaker("reports"))
    """

    _serves = "functions"
    _counterpart = "CircuitBreakerClient"


class LoggingRpcClient(CommonLoggingClient[RpcClient]):
    """Writes a line for the request and a line for the response of each call.

    It is :class:`LoggingClient` for the functions of :func:`rpc`: the lines have the
    name of the call in place of its URL, neither its arguments nor what it returns. A
    success is a function that returned. After Armeria's ``LoggingRpcClient``.

    >>> decorator = LoggingRpcClient.new_decorator()
    """

    _serves = "functions"
    _counterpart = "LoggingClient"


class RetryingRpcClient(CommonRetryingClient[RpcClient]):
    """Retries a function while its strategy asks for a further attempt.

    It is :class:`RetryingClient` for the functions of :func:`rpc`: the same loop and
    the same settings but those that concern HTTP. What a function returns is a success,
    unless a :class:`RetryStrategyWithContent`, which gets it as ``content``, wants
    another attempt. An attempt is cut at its timeout by cancelling the function; the
    next one starts when that has cleaned up. After Armeria's ``RetryingRpcClient``.

    A failure that a retrying client further in has given up on is not retried again,
    unless a rule names exactly its class, or a strategy of your own wants it.

    Args:
        delegate: The next client inwards.
        config: The settings of all calls, or a mapping that finds those of each.
    """

    _serves = "functions"
    _counterpart = "RetryingClient"
    _adapter = RPC

    def _attempt(self, ctx: ClientRequestContext, request: RpcRequest) -> Any:
        """Make an attempt with its deadline."""
        return attempted(self.delegate, ctx, request)

    @classmethod
    def _check_config(cls, name: str, config: object) -> None:
        """Refuse settings that concern HTTP alone."""
        super()._check_config(name, config)
        if isinstance(config, RetryConfigMapping):
            _check_key(name, config)
        elif isinstance(config, RetryConfig) and config.buffer_response:
            expected = "one without buffer_response, which is only for sessions"
            raise bad_argument(name, config, expected)

    @classmethod
    def new_decorator(
        cls,
        strategy: Strategy | RetryConfig | RetryConfigMapping,
        max_total_attempts: int | Literal[Unset.UNSET] = UNSET,
        attempt_timeout: float | Literal[Unset.UNSET] | None = UNSET,
        **settings: Unpack[SharedSettings],
    ) -> RpcDecorator:
        """Make a decorator for :func:`rpc`.

        Args:
            strategy: Decides after each attempt; or a whole :class:`RetryConfig`, or
                what :meth:`RetryConfigMapping.of` returns.
            max_total_attempts: As for :class:`RetryConfig`.
            attempt_timeout: Seconds that one attempt of the function may take, with the
                decorators further in.
            settings: The other arguments of :class:`RetryConfig`, by name, without
                ``buffer_response`` and ``retry_count_header``. By default the scope of
                a Smithy strategy is the name of the call.

        Raises:
            ValueError: An argument is out of range or concerns HTTP alone, there is
                none of that name, or there are settings beside a whole configuration or
                a mapping.

        >>> decorator = RetryingRpcClient.new_decorator(
        ...     RetryRule(exceptions=[ConnectionError], on_timeout=True),
        ...     max_total_attempts=3,
        ...     attempt_timeout=2.0,
        ... )
        """
        given: dict[str, object] = {**settings}
        for name in ("buffer_response", "retry_count_header"):
            if name in given:
                raise bad_argument(name, given[name], "only for sessions")
        if isinstance(strategy, RetryConfig | RetryConfigMapping):
            cls._check_config("strategy", strategy)
        return cls._new_decorator(
            strategy, max_total_attempts, attempt_timeout, settings
        )

    @classmethod
    def new_mapped_decorator(cls, mapping: RetryConfigMapping) -> RpcDecorator:
        """Make a decorator that retries each call by the settings for its key.

        Args:
            mapping: What :meth:`RetryConfigMapping.of` returns. It is asked once per
                call.

        Raises:
            ValueError: *mapping* is something else.

        >>> decorator = RetryingRpcClient.new_mapped_decorator(
        ...     RetryConfigMapping.of(
        ...         lambda ctx, request: str(request.args[0]),
        ...         lambda region: RetryConfig.standard(max_total_attempts=2),
        ...     )
        ... )
        """
        _check_key("mapping", mapping)
        return cls._decorator(mapping)


def _check_key(name: str, mapping: object) -> None:
    # The other keys are those of HTTP.
    if not isinstance(mapping, RetryConfigMapping) or mapping._name != "of":
        raise bad_argument(name, mapping, "what RetryConfigMapping.of returns")
