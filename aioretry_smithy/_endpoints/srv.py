"""Find the servers of a service by its SRV records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from .._errors import bad_argument
from .._request.endpoint import Endpoint
from .discovery import Answer, Listed
from .warn_once import WarnOnce

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .srv_records import SrvRecord

Scheme: TypeAlias = Literal["http", "https"]

_LEAST_WEIGHT: Final = 0.1
"""What a weight of 0 counts as: such a target shall have a small chance."""

# DNS allows any byte in a name; some of them would end the host of a URL.
_HOST: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII | re.IGNORECASE)


class SrvLookup:
    """Asks for the SRV records of a service, each of which is an endpoint.

    Their order of priorities is that of ranks. A target has a URL of its own, made of
    its name and port; its weight is the record's, where 0 counts as 0.1. A target of
    ``.`` means that there is none.

    With ``https`` DNS does not choose who gets the credentials: a target has to be in
    the domain of the service or below it, or below the parent of that domain if the
    parent has two labels or more. Others are left out, with a warning. (A parent such
    as ``co.uk`` passes for a domain of its own.)

    Args:
        name: The name of the service, such as ``_http._tcp.orders.example.com``; one
            that is not whole is looked for in the search list of the system.
        scheme: ``http`` or ``https``.
        allowed_domains: Domains of further targets, which count with what is below.

    Raises:
        ModuleNotFoundError: The extra ``dns`` is not installed.
        ValueError: An argument is not as described.
    """

    __slots__ = ("_allowed", "_name", "_records", "_scheme", "_warn")

    can_be_cut: Final = True
    """Whether cancelling stops the query."""

    def __init__(
        self,
        name: str,
        *,
        scheme: Scheme = "http",
        allowed_domains: Iterable[str] = (),
    ) -> None:
        if not _is_name(name):
            expected = "a name in DNS, such as '_http._tcp.orders.example.com'"
            raise bad_argument("name", name, expected)
        if scheme not in get_args(Scheme):
            raise bad_argument("scheme", scheme, "'http' or 'https'")
        self._allowed = frozenset(_checked_domains(allowed_domains))
        # What it needs may not be installed.
        from .srv_records import srv_records  # noqa: PLC0415

        self._records = srv_records
        self._name = name
        self._scheme = scheme
        self._warn = WarnOnce()

    async def __call__(self) -> Answer:
        """Return the servers that the service has now.

        Raises:
            LookupError: There are only servers that are left out.
            Exception: There is no answer.
        """
        name, records, ttl = await self._records(self._name)
        offered = [each for each in records if each.target]
        taken = self._with_hosts(offered)
        if self._scheme == "https":
            taken = self._within(name, taken)
        if offered and not taken:
            raise LookupError(f"{self._name}: all targets are left out")
        return Answer(tuple(self._listed(taken)), ttl)

    def _with_hosts(self, records: Sequence[SrvRecord]) -> Sequence[SrvRecord]:
        """Leave out what is no host, or no port of one."""
        fit = [each for each in records if _HOST.fullmatch(each.target) and each.port]
        self._warn_of_others(records, fit, "no host and port")
        return fit

    def _within(self, name: str, records: Sequence[SrvRecord]) -> Sequence[SrvRecord]:
        """Leave out what is in none of the domains that may be."""
        domains = self._allowed.union(_domains_of(name))
        fit = [each for each in records if _is_within(each.target, domains)]
        why = f"outside {', '.join(sorted(domains))} (see allowed_domains)"
        self._warn_of_others(records, fit, why)
        return fit

    def _warn_of_others(
        self, records: Sequence[SrvRecord], fit: Sequence[SrvRecord], why: str
    ) -> None:
        others = sorted({f"{each.target}:{each.port}" for each in {*records} - {*fit}})
        if others:
            self._warn(f"{self._name}: left out {', '.join(others)}: {why}")

    def _listed(self, records: Sequence[SrvRecord]) -> Iterator[Listed]:
        priorities = sorted({each.priority for each in records})
        weighted = {each.priority for each in records if each.weight}
        for each in records:
            # Where all weights are 0, all targets are equal.
            least = _LEAST_WEIGHT if each.priority in weighted else 1.0
            url = f"{self._scheme}://{each.target}:{each.port}"
            endpoint = Endpoint(url, weight=each.weight or least)
            yield Listed(endpoint, priorities.index(each.priority))


def _domains_of(name: str) -> Iterator[str]:
    """Yield the domain of a service, and the one above it unless that is a top one."""
    labels = name.lower().split(".")
    while labels and labels[0].startswith("_"):
        del labels[0]
    if labels:
        yield ".".join(labels)
    if len(labels) > 2:
        yield ".".join(labels[1:])


def _is_within(target: str, domains: Iterable[str]) -> bool:
    return f".{target.lower()}".endswith(tuple(f".{domain}" for domain in domains))


def _is_name(given: object) -> bool:
    return isinstance(given, str) and bool(_HOST.fullmatch(given.removesuffix(".")))


def _checked_domains(domains: Iterable[str]) -> list[str]:
    expected = "names of domains, such as ['example.com']"
    if isinstance(domains, str | bytes) or not isinstance(domains, Iterable):
        raise bad_argument("allowed_domains", domains, expected)
    names = list(domains)
    for each in names:
        if not _is_name(each):
            raise bad_argument("allowed_domains", each, expected)
    return [each.removesuffix(".").lower() for each in names]
