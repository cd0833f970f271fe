"""Find which of several simulated servers gets a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .._endpoints.group import EndpointGroup


class Server(Protocol):
    """Answers requests; see :class:`.SimulatedServer`."""

    def serve(self, now: float) -> tuple[int, float]:
        """Return what the answer will be, and when it will be ready."""
        ...


class SimulatedReplicas:
    """Interchangeable servers of a simulation.

    Args:
        servers: At least one.
        chance: Returns numbers in [0, 1), for who gets what is for any of them.
    """

    def __init__(
        self, servers: Sequence[Server], chance: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.servers = servers
        self._chance = chance

    def __len__(self) -> int:
        return len(self.servers)

    def any(self) -> int:
        """Return the number of a random server, like a load balancer."""
        number = len(self.servers)
        return int(self._chance() * number) if number > 1 else 0


class Directory:
    """Knows the numbers of replicas by the URLs of requests.

    Args:
        replicas: The replicas.
        bases: How the URLs of each begin; None where a request is for any of them.
    """

    def __init__(
        self, replicas: SimulatedReplicas, bases: Iterable[str] | None = None
    ) -> None:
        self._replicas = replicas
        # The longest first: one may be the beginning of another.
        numbered = enumerate(() if bases is None else bases)
        self._bases = sorted(numbered, key=lambda each: -len(each[1]))
        self._known: dict[str, int] = {}

    def number_of(self, url: str) -> int:
        """Return the number of the replica that gets a request."""
        if not self._bases:
            return self._replicas.any()
        number = self._known.get(url)
        if number is None:
            found = (number for number, base in self._bases if url.startswith(base))
            number = self._known[url] = next(found)
        return number


def bases_of(group: EndpointGroup) -> list[str] | None:
    """Return how the URLs of each endpoint begin; None where some do alike."""
    urls = [str(URL(each.url)) for each in group.endpoints]
    return urls if len({*urls}) == len(urls) else None
