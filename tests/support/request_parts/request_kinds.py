"""Every kind of request that aiohttp takes, and that a chain has to pass on."""

from __future__ import annotations

import inspect

import aiohttp
from request_answers import ANSWERS, PEERS, REDIRECTS, TIMEOUTS, WATCHED
from request_bodies import BODIES, JSON
from request_heads import AUTHS, COOKIES, ERRORS, HEADERS, PARAMS, TARGETS
from request_kind import Kind


def _is_known(one: Kind) -> bool:
    """Say whether the arguments that are newer than the oldest aiohttp exist."""
    known = {
        *inspect.signature(aiohttp.ClientSession).parameters,
        *inspect.signature(aiohttp.ClientSession._request).parameters,
    }
    newer = {"json_serialize_bytes", "max_headers", "upload_tracker"}
    return newer.isdisjoint({*one.options, *one.session} - known)


KINDS: dict[str, Kind] = {
    name: one
    for group in (
        TARGETS,
        PARAMS,
        HEADERS,
        COOKIES,
        BODIES,
        JSON,
        AUTHS,
        REDIRECTS,
        ANSWERS,
        TIMEOUTS,
        PEERS,
        WATCHED,
        ERRORS,
    )
    for name, one in group.items()
    if _is_known(one)
}
"""By name."""
