"""Describe the call of a function, and copy it with changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from .._errors import checked_name
from .._text import printable
from .swapped import NoContext

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._masking.mask import Mask


class RpcRequest(NoContext):
    """The call of a function that :func:`rpc` decorates. Immutable by convention.

    To call the function with other arguments, pass on a changed copy: :meth:`replace`.
    No log keeps the arguments, and nothing shows them.

    Args:
        name: The name of the call.
        args: The arguments by position, with ``self`` of a method.
        kwargs: The arguments by name.

    >>> request = RpcRequest("fetch_report", ("2026-11-22",), {"page": 1})
    >>> request.replace(kwargs={"page": 2})
    <RpcRequest fetch_report>
    """

    __slots__ = ("_without_arguments", "args", "kwargs", "name")

    name: str
    """The qualified name of the function, or what was given in its place."""

    args: tuple[Any, ...]
    """The arguments by position, with ``self`` of a method."""

    kwargs: dict[str, Any]
    """The arguments by name; not to be changed."""

    # Attributes that the log, limiters and rules need of any request.
    _base_url: ClassVar[None] = None
    method: ClassVar[None] = None
    route: ClassVar[None] = None
    target: ClassVar[None] = None
    url: ClassVar[None] = None

    def __init__(
        self,
        name: str,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = checked_name(name)
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})
        self._without_arguments: RpcRequest | None = None

    def called_with(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Self:
        """Return the request of a call, where this one has the name alone."""
        request = self.__class__.__new__(self.__class__)
        request.name = self.name
        request.args = args
        request.kwargs = kwargs
        request._without_arguments = self
        return request

    def replace(self, **changes: Any) -> Self:
        """Return a copy with *changes*.

        Args:
            changes: ``name``, ``args`` or ``kwargs``; the others stay.

        Raises:
            TypeError: There is no such argument.
        """
        own = {"name": self.name, "args": self.args, "kwargs": self.kwargs}
        return type(self)(**{**own, **changes})

    def without_body(self) -> RpcRequest:
        """Return the request without its arguments, for a log to keep."""
        return self._without_arguments or RpcRequest(self.name)

    def looks_like(self, other: RpcRequest) -> bool:
        """Say whether it has the name of another one."""
        return self.name == other.name

    def described(self, mask: Mask) -> str:
        """Return the name, credentials hidden."""
        return mask.text(self.name)

    def full_url(self) -> None:
        """Return None: a function has no URL."""

    def merged_headers(self, defaults: object) -> None:
        """Return None: a function has no headers."""

    def __repr__(self) -> str:
        return printable(f"<{type(self).__name__} {self.name}>")
