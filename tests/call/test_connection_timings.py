"""Add up what a request waits for."""

from __future__ import annotations

import dataclasses

import pytest

from aioretry_smithy import ConnectionTimings
from aioretry_smithy._call.record import ConnectionTimes


def times(*parts, now=10.0):
    """Return times that begin at ten; each part lasts so long."""
    made = ConnectionTimes(now)
    for part, seconds in parts:
        made.wait_for(part, now)
        now += seconds
    made.wait_for(None, now)
    return made


def test_parts_of_one_kind_are_added_up():
    """A request may be put into the queue again, and a redirect has hops."""
    made = times(("queued", 1.0), (None, 5.0), ("queued", 2.0), ("connect", 0.5))

    assert ConnectionTimings(3.0, None, 0.5, reused=False) == made.shown(99.0)
    assert 3.5 == made.shown(99.0).waited


def test_part_that_goes_on_counts_up_to_now():
    """Never backwards, where the outcome came before."""
    made = ConnectionTimes(10.0)
    made.wait_for("dns", 11.0)

    assert 2.0 == made.shown(13.0).dns
    assert 0.0 == made.shown(10.5).dns
    assert "dns" == made.part


def test_beginning_is_that_of_the_first_wait():
    """A middleware may take its time before that."""
    made = ConnectionTimes(10.0)
    assert 10.0 == made.began
    made.wait_for("connect", 12.0)
    made.wait_for("dns", 13.0)

    assert 12.0 == made.began


def test_hop_that_waits_has_no_connection_yet():
    """The one that the hop before had is not its own."""
    made = times(("connect", 1.0))
    made.reused = True
    assert made.shown(0.0).reused
    made.wait_for("queued", 20.0)

    assert not made.shown(20.0).reused


def test_timings_do_not_change():
    """They are a value, which can be kept."""
    timings = ConnectionTimings(None, 1.0, None, reused=True)

    assert 1.0 == timings.waited
    with pytest.raises(dataclasses.FrozenInstanceError):
        timings.dns = 2.0
