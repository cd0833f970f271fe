"""Log each call of a function: a request line and a response line."""

from __future__ import annotations

from .._context.client import RpcClient
from .._logging.client import LoggedCalls


class LoggingRpcClient(LoggedCalls[RpcClient]):
    """Writes a line for the request and a line for the response of each call.

    It is :class:`LoggingClient` for the functions of :func:`rpc`: the lines have the
    name of the call in place of its URL, neither its arguments nor what it returns. A
    success is a function that returned. After Armeria's ``LoggingRpcClient``.

    >>> decorator = LoggingRpcClient.new_decorator()
    """

    _serves = "functions"
    _counterpart = "LoggingClient"
