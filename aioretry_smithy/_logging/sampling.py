"""Pick the calls that are logged: a share of them, or by a sampler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .._errors import bad_argument, is_finite, is_plain_function

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._log.request_log import RequestLog


class _Sampler(Protocol):
    """Picks the calls that are logged, as an object."""

    def is_sampled(self, log: RequestLog, /) -> bool: ...


Sampling: TypeAlias = "float | Callable[[RequestLog], bool] | _Sampler"
"""A rate from 0 to 1; or a plain function of the log, or an object with such a method
``is_sampled``, that says whether a call is logged."""


def sampler_of(
    name: str, sampling: Any, random: Callable[[], float]
) -> Callable[[RequestLog], bool]:
    """Return a function that says whether a call is logged.

    Args:
        name: The name of the setting.
        sampling: The rate or the sampler that was set.
        random: Returns numbers in [0, 1), for a rate.

    Raises:
        ValueError: *sampling* is neither.
    """
    if is_finite(sampling) and 0 <= sampling <= 1:
        return lambda log: random() < sampling
    function = getattr(sampling, "is_sampled", sampling)
    if isinstance(sampling, type) or not is_plain_function(function):
        expected = ">= 0 and <= 1, or a plain function of the log"
        raise bad_argument(name, sampling, expected)

    def is_sampled(log: RequestLog) -> bool:
        answer = function(log)
        if isinstance(answer, bool):
            return answer
        raise bad_argument(f"{name}()", answer, "True or False")

    return is_sampled
