"""Refuse a request in the place of a context."""

from __future__ import annotations

from typing import NoReturn

from .._errors import bad_argument
from .._failures.kept_cause import CallBound


class NoContext(CallBound):
    """A request, which has nothing that a context has.

    Mostly a decorator has swapped the arguments of its delegate.
    """

    __slots__ = ()

    @property
    def call(self) -> NoReturn:
        raise bad_argument("ctx", self, "a ClientRequestContext, before the request")

    record = call
