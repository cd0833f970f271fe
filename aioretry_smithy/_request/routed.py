"""A request for one of several servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from yarl import URL

from .._masking.mask import DEFAULT_MASK
from .._text import printable
from .endpoint import origin_key
from .request import HttpRequest

if TYPE_CHECKING:
    from aiohttp.typedefs import StrOrURL

    from .copied_arguments import Arguments
    from .request import Goal


class RoutedRequest(HttpRequest):
    """A request that goes to a certain server; its copies do so too."""

    __slots__ = ("route",)

    route: Goal | None
    """Where it goes; None if it was sent elsewhere since."""

    @classmethod
    def to(cls, route: Goal | None, url: URL, request: HttpRequest) -> Self:
        """Return a copy of a request that goes to a server, with the URL there.

        Without a server, to whatever the URL names.
        """
        routed = cls.__new__(cls)
        routed.spelling = request.spelling
        routed.target = routed._url = url
        routed.given = request.given
        routed.arguments = request.arguments
        routed._base_url = None
        routed.route = route
        return routed

    def __repr__(self) -> str:
        return printable(f"<HttpRequest {self.described(DEFAULT_MASK)}>")

    def _copy(
        self, method: str, target: StrOrURL, given: Arguments, arguments: Arguments
    ) -> Self:
        copy = super()._copy(method, target, given, arguments)
        copy.route = self.route
        if target is not self.target:
            copy._retarget(self.url)
        return copy

    def _retarget(self, before: URL) -> None:
        """Go elsewhere if the new URL is one of another origin."""
        try:
            url = self.target = URL(self.target)
        except (TypeError, ValueError):
            # aiohttp reports it when the request is sent.
            self.route = None
        else:
            if url.absolute and origin_key(url) != origin_key(before):
                self.route = None
