"""Ask a circuit breaker before each call of a function, and report the outcome."""

from __future__ import annotations

from .._breaker.client import GuardedCalls
from .._context.client import RpcClient


class CircuitBreakerRpcClient(GuardedCalls[RpcClient]):
    """Refuses calls of a function while the circuit is open.

    It is :class:`CircuitBreakerClient` for the functions of :func:`rpc`. A function
    that returns is a success, unless a strategy of your own judges otherwise. After
    Armeria's ``CircuitBreakerRpcClient``.

    >>> decorator = CircuitBreakerRpcClient.new_decorator(CircuitBreaker("reports"))
    """

    _serves = "functions"
    _counterpart = "CircuitBreakerClient"
