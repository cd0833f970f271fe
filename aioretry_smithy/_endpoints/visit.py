"""Follow a request to an endpoint: while it is there, when it leaves, and where to."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from .._call.hooks import Changed
from .._request.endpoint import origin_key
from .._request.routed import RoutedRequest
from .._request.service import joined, path_after
from .choice import Choice, give_up
from .learning import learn
from .trial import Trial

if TYPE_CHECKING:
    from yarl import URL

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.record import Record
    from .._request.request import HttpRequest
    from .choice import Chosen, Permit
    from .state import EndpointState

_current: ContextVar[Visit | None] = ContextVar("aioretry_smithy_visit", default=None)


class Visit(Changed):
    """A request that an endpoint was chosen for, up to its answer.

    It is the permit of the request, and until it is closed the sign that gives it.

    Args:
        call: The call.
        record: The record of the request.
        chosen: The endpoint, the trial of one, or how it was chosen.
        url: The URL there.
        request: The request, as it was before.
    """

    __slots__ = (
        "about",
        "chosen",
        "outer",
        "route",
        "sender",
        "state",
        "url",
    )

    chosen: Permit
    """What was chosen; once it is sent again, the endpoint where it is."""

    route: EndpointState | Choice
    """The endpoint where it is, with what else might serve it."""

    state: EndpointState
    """The endpoint where it is."""

    about: tuple[Call, Record] | None
    """The call and the record; None once it is over, or has left by a redirect."""

    def __init__(
        self, call: Call, record: Record, chosen: Chosen, url: URL, request: HttpRequest
    ) -> None:
        self.permit = self
        self.about = call, record
        self.state = state = chosen.state
        if isinstance(chosen, Choice):
            self.route, self.chosen = chosen, chosen.permit
        else:
            self.route, self.chosen = state, chosen
        self.url = url
        # aiohttp's timer of the last send that reached the endpoint: one for each send,
        # and for all hops of that.
        self.sender: object = None
        # Calls made for this one have visits of their own.
        self.outer = _current.get()
        _current.set(self)
        state.in_flight += 1
        record.route = route = self.route
        self.request = routed = RoutedRequest.to(route, url, request)
        record.request = routed.without_body() if call.care else routed

    def close(self, record: Record) -> bool:
        """Follow the request no longer; say whether it has left before.

        Tasks and timers that began meanwhile, such as those of a connection in the
        pool, have this for as long as they live: they must not have the call or its
        body, and what they send later is none of this request.
        """
        if record.has_moved:
            # Hooks further out know of the service alone.
            record.has_moved = False
        # It is another one where a call is closed in another task than it began in.
        if _current.get() is self:
            _current.set(self.outer)
        has_left = self.about is None
        self.about = self.outer = self.sender = self.permit = self.request = None
        return has_left

    def leave(self, call: Call, record: Record) -> None:
        """Let the endpoint go, which has answered: by a redirect to another origin.

        What becomes of the request there says nothing of the endpoint.
        """
        if isinstance(self.chosen, Trial):
            self.chosen.stop()
        self.about = None
        self.state.in_flight -= 1
        learn(self.state, call, record, self.chosen, None, verdict=True)

    def move(self, state: EndpointState, url: URL) -> EndpointState | Choice:
        """Go on at another endpoint, the way to which is returned.

        The one before has told nothing.
        """
        give_up(self.chosen)
        self.state.in_flight -= 1
        self.chosen = self.state = state
        self.url = url
        state.in_flight += 1
        self.route = route = self.route.to(state)
        return route


def note_hop(url: URL, sender: object) -> None:
    """Note that aiohttp begins to send a request, perhaps after a redirect.

    Args:
        url: Where to.
        sender: An object that all hops of one request have in common.
    """
    visit = _current.get()
    if visit is None or visit.about is None:
        return
    if url is visit.url or origin_key(url) == visit.state.origin:
        visit.sender = sender
    elif sender is not None and visit.sender is sender:
        visit.leave(*visit.about)


def move_resend(
    call: Call,
    scope: Scope,
    stale: Record,
    record: Record,
    request: HttpRequest,
    *,
    may_move: bool,
) -> HttpRequest:
    """Let a request whose connection was broken go to an endpoint that is not tried.

    To the same one where no other is well, or where it is bound to that.

    Args:
        call: The call.
        scope: What it is sent for.
        stale: The record of the request whose connection was broken.
        record: That of the request in its place; the same one without attempts.
        request: The request.
        may_move: Whether it is one from the beginning, not from a redirect on.

    Returns:
        The request to send in its place; the very same where it does not move.
    """
    visit = _current.get()
    record.route = stale.route
    if visit is None or visit.about is None or visit.about[0] is not call:
        return request
    visit.about = call, record
    before, route = visit.state, request.route
    if not may_move or route is None or route.key != before.key:
        return request
    path = path_after(before.endpoint.url, request.url)
    state = None if path is None else visit.route.other_for(call, scope)
    if path is None or state is None:
        return request
    is_same = state.endpoint.url == before.endpoint.url
    url = request.url if is_same else joined(state.endpoint.url, path)
    route = visit.move(state, url)
    routed = RoutedRequest.to(route, url, request)
    record.route, record.request = route, routed.without_body()
    record.has_moved = True
    return routed
