"""Rules that hold for every header that a server may send."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict

from aioretry_smithy._failures.hints import retry_after

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
fragments = st.sampled_from(
    [
        *(
            "Sun, ",
            "Sunday, ",
            "Sun ",
            "06 ",
            "06-",
            "31 ",
            " 6 ",
            "Nov ",
            "Nov-",
            "Feb ",
        ),
        *(
            "1994 ",
            "94 ",
            "0000 ",
            "08:49:37 ",
            "24:00:00 ",
            "GMT",
            "1994",
            "5",
            "9" * 11,
        ),
        *("-", "+", ".", " ", "٣", "²", "\x00", "\ud800"),
    ]
)
values = st.text() | st.lists(fragments, max_size=8).map("".join)


def imf_fixdate(moment: datetime) -> str:
    return f"{moment:%a, %d %b} {moment.year:04} {moment:%H:%M:%S} GMT"


def rfc_850(moment: datetime) -> str:
    return f"{moment:%A, %d-%b-%y %H:%M:%S} GMT"


def asctime(moment: datetime) -> str:
    return f"{moment:%a %b} {moment.day:2} {moment:%H:%M:%S} {moment.year:04}"


def seconds(moment: datetime) -> float:
    return (moment - EPOCH).total_seconds()


@given(values, values, values, st.floats(-1e9, 1e11))
@example("9" * 10_000, "9" * 10_000, "", 0.0)
@example("Sunday, 29-Feb-00 00:00:00 GMT", "", "Sunday, 29-Feb-99 00:00:00 GMT", 0.0)
def test_any_header_is_a_wait_or_nothing(
    standard: str, amazon: str, date: str, now: float
) -> None:
    """Nothing that a server sends raises, or makes a wait that is below 0."""
    headers = CIMultiDict(
        {"Retry-After": standard, "x-amz-retry-after": amazon, "Date": date}
    )
    hint = retry_after(headers, now=now)

    assert hint is None or hint >= 0


@given(st.integers(0, 10**12))
def test_every_number_is_seconds_or_too_long(number: int) -> None:
    """Ten digits are a number of seconds; eleven are too long."""
    expected = float(number) if number < 10**10 else math.inf

    assert expected == retry_after(CIMultiDict({"Retry-After": f"{number}"}), now=0)


@given(moments, moments, st.sampled_from([imf_fixdate, asctime]))
def test_every_date_is_the_time_between_two_dates(
    then: datetime, sent: datetime, form: object
) -> None:
    """Each date of HTTP that can be written is read back exactly."""
    headers = CIMultiDict({"Retry-After": form(then), "Date": form(sent)})

    assert max(0.0, seconds(then) - seconds(sent)) == retry_after(headers, now=0)


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
    st.integers(-49 * 365, 49 * 365),
)
def test_every_short_date_within_fifty_years_is_read(
    today: datetime, days: int
) -> None:
    """A year of two digits is the one nearest to now that can be meant."""
    now = today.replace(microsecond=0, tzinfo=UTC)
    then = now + timedelta(days=days)
    headers = CIMultiDict({"Retry-After": rfc_850(then)})

    assert max(0.0, days * 86400.0) == retry_after(headers, now=seconds(now))
