"""Change settings for the calls in a block of code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from .._context.context import UNSET, OptionsBlock, RequestOptions, Unset
from .._errors import bad_argument, is_finite
from .._meant import call_it
from .._request.endpoint import endpoint_of
from .._retry.config import RetryConfig

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from aiohttp.typedefs import StrOrURL

    from .._request.endpoint import Endpoint


def request_options(
    *,
    retry: RetryConfig | None = None,
    response_timeout: float | Literal[Unset.UNSET] | None = UNSET,
    idempotent: bool | None = None,
    attributes: Mapping[Any, Any] | None = None,
    endpoint: StrOrURL | Endpoint | None = None,
) -> AbstractContextManager[None]:
    """Change settings for the calls in a block.

    The settings hold for calls in tasks that are started in the block, but not in other
    tasks. Blocks can be nested: the inner one wins for each argument that it has. One
    object may be entered several times, also by several tasks or threads at once.

    Args:
        retry: The settings that replace those of the retrying client. Without a
            retrying client a session does not retry.
        response_timeout: Seconds that a call may take, finite and > 0; None for no
            limit. It has precedence over the ``timeout=`` of a request.
        idempotent: Whether the server may see a request twice, with any method:
            for :meth:`RetryStrategy.failsafe`, for :func:`smithy.only_idempotent`, and
            for a :class:`HedgingClient`, which sends it once more while it is late.
        attributes: Added to ``ctx.attributes`` of each call.
        endpoint: One endpoint of an :class:`EndpointGroup`, or its URL; one behind a
            name may be named by its address, such as ``http://10.0.0.3:8080``. The
            calls of sessions with a group go to it, retries too, though it may be out;
            a call of one whose group does not have it is a ValueError, and one that has
            left since an :class:`EndpointGroupError`. Other sessions ignore it.

    Raises:
        ValueError: An argument is not as described.

    >>> with request_options(retry=RetryConfig.no_retry(), response_timeout=2.0):
    ...     pass  # for example: await session.get("/health")
    """
    if retry is not None and not isinstance(retry, RetryConfig):
        expected = f"a RetryConfig or None{call_it(retry, RetryConfig)}"
        raise bad_argument("retry", retry, expected)
    seconds = response_timeout
    if not (
        seconds is None or seconds is UNSET or (is_finite(seconds) and seconds > 0)
    ):
        raise bad_argument("response_timeout", seconds, "finite and > 0, or None")
    if idempotent is not None and not isinstance(idempotent, bool):
        raise bad_argument("idempotent", idempotent, "True, False or None")
    if not (attributes is None or isinstance(attributes, Mapping)):
        raise bad_argument("attributes", attributes, "a mapping or None")
    given = dict(attributes or {})
    pin = None if endpoint is None else endpoint_of("endpoint", endpoint)
    return OptionsBlock(RequestOptions(retry, seconds, idempotent, given, pin))
