"""Ask DNS for SRV records, by the library of the extra ``dns``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .._errors import missing_extra

try:
    import dns.asyncresolver
except ModuleNotFoundError as _cause:
    raise missing_extra("dns", _cause) from _cause

from dns.rdtypes.IN.SRV import SRV
from dns.resolver import NXDOMAIN, NoAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence


class SrvRecord(NamedTuple):
    """One server of a service."""

    priority: int
    weight: int
    port: int
    target: str
    """The name of its host, without the dot at the end; empty for none."""


class SrvRecords(NamedTuple):
    """Holds one answer of DNS about a service."""

    name: str
    """The whole name that it answered to, without the dot at the end."""

    records: Sequence[SrvRecord]

    ttl: float | None
    """Seconds for which the records are valid; None without records."""


async def srv_records(name: str) -> SrvRecords:
    """Return the servers of a service, none where DNS knows no such name.

    Raises:
        Exception: There is no answer.
    """
    # The function, and no resolver of ours: a program may have set the default one.
    try:
        answer = await dns.asyncresolver.resolve(name, "SRV", search=True)
    except (NXDOMAIN, NoAnswer):
        return SrvRecords(name.rstrip("."), (), None)
    records = [
        SrvRecord(each.priority, each.weight, each.port, _text(each.target))
        for each in answer
        if isinstance(each, SRV)
    ]
    ttl = None if answer.rrset is None else answer.rrset.ttl
    return SrvRecords(_text(answer.qname), records, ttl)


def _text(name: dns.name.Name) -> str:
    return name.to_text().rstrip(".")
