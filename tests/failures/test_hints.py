"""Hints of a server about when to come back."""

import asyncio
import locale
import math
import time
from datetime import UTC, datetime

import pytest
from chains import set_time_of_day
from multidict import CIMultiDict, CIMultiDictProxy

from aioretry_smithy._failures.hints import retry_after

SUNDAY = 784111777.0
"""Sunday, 6 November 1994, 08:49:37, the example of RFC 9110."""

IN_2026 = 1787097600.0
"""Wednesday, 19 August 2026, 00:00:00."""


def hint(value, *, now=SUNDAY, **headers):
    return retry_after(CIMultiDict({"Retry-After": value, **headers}), now=now)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120.0),
        ("0", 0.0),
        (" 7\t", 7.0),
        ("007", 7.0),
        ("9999999999", 9999999999.0),
        ("10000000000", math.inf),
        ("9" * 10_000, math.inf),
    ],
)
def test_digits_are_seconds(value, expected):
    """They are taken as they are; more than ten digits are too long."""
    assert expected == hint(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.493", 0.493),
        ("0.0", 0.0),
        (" 1.50 ", 1.5),
        ("9999999999.9", 9999999999.9),
        ("10000000000.0", math.inf),
        ("1." + "5" * 10_000, pytest.approx(1.555555)),
        ("9" * 10_000 + ".5", math.inf),
    ],
)
def test_seconds_may_have_decimals(value, expected):
    """As servers send them that count finer than HTTP does."""
    assert expected == hint(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("5, 9", 5.0),
        ("9 ,5,soon", 9.0),
        ("1.5,", 1.5),
        ("99999999999, 5", math.inf),
        ("Sun, 06 Nov 1994 08:51:37 GMT, Sun, 06 Nov 1994 08:59:37 GMT", 120.0),
        ("Sunday, 06-Nov-94 08:51:37 GMT , 5", 120.0),
        ("Sun Nov  6 08:51:37 1994, soon", 120.0),
        ("5, Sun, 06 Nov 1994 08:51:37 GMT", 5.0),
    ],
)
def test_first_of_a_list_counts(value, expected):
    """A proxy may join the headers of two servers, whatever the second one said."""
    assert expected == hint(value)


@pytest.mark.parametrize("form", ["Sun, 06 Nov 1994 {}", "Sunday, 06-Nov-94 {}"])
@pytest.mark.parametrize(
    "time",
    [
        *("08:51:37 UTC", "08:51:37 +0000", "08:51:37 -0000", "10:51:37 +0200"),
        *("14:21:37 +0530", "20:51:37 +1200", "03:51:37 -0500", "05:21:37 -0330"),
    ],
)
def test_other_zones_are_read(form, time):
    """As mails have them, which some libraries write in place of ``GMT``."""
    value = form.format(time)

    assert 120.0 == hint(value)
    assert 0.0 == hint(value, Date=value)
    assert 120.0 == hint("Sun, 06 Nov 1994 08:53:37 GMT", Date=value)


def test_zone_may_change_the_day_and_the_year():
    """Midnight comes later in the west."""
    date = "Sat, 31 Dec 1994 23:30:00 -0100"

    assert 60.0 == hint("Sun, 01 Jan 1995 00:31:00 GMT", Date=date)


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 06 Nov 1994 08:51:37 GMT",
        "Sunday, 06-Nov-94 08:51:37 GMT",
        "Sun Nov  6 08:51:37 1994",
    ],
)
def test_all_three_dates_are_read(value):
    """A date is the time from now until then."""
    assert 120.0 == hint(value)
    assert 119.5 == hint(value, now=SUNDAY + 0.5)
    assert 0.0 == hint(value, now=SUNDAY + 121)


def test_each_month_is_known():
    """Every name of a month stands for that month."""
    months = [datetime(2000, month, 1, tzinfo=UTC) for month in range(1, 13)]
    hints = [hint(f"{month:%a, %d %b %Y %H:%M:%S} GMT", now=0) for month in months]

    assert [month.timestamp() for month in months] == hints


def test_date_is_taken_against_the_date_of_the_response():
    """The server's clock, not ours, says how long the wait is."""
    value = "Sun, 06 Nov 1994 08:51:37 GMT"

    assert 120.0 == hint(value, now=0, Date="Sun, 06 Nov 1994 08:49:37 GMT")
    assert 120.0 == hint(value, now=0, Date="Sun Nov  6 08:49:37 1994")
    assert 0.0 == hint(value, now=0, Date="Sun, 06 Nov 1994 09:49:37 GMT")
    assert 0.0 == hint(value, now=0, Date=value)


def test_date_of_1970_is_a_date():
    """A clock that says zero is not taken for a clock that says nothing."""
    epoch = "Thu, 01 Jan 1970 00:00:00 GMT"

    assert 60.0 == hint("Thu, 01 Jan 1970 00:01:00 GMT", Date=epoch)


def test_unreadable_date_of_the_response_gives_way_to_our_clock():
    """Without a readable ``Date`` the wall clock has to do."""
    assert 120.0 == hint("Sun, 06 Nov 1994 08:51:37 GMT", Date="yesterday")


def test_seconds_do_not_ask_for_the_date():
    """A number of seconds counts from the response, whatever its date is."""
    assert 5.0 == hint("5", now=IN_2026, Date="Sun, 06 Nov 1994 08:49:37 GMT")


@pytest.mark.parametrize(
    ("year", "expected"),
    [("26", 2026), ("27", 2027), ("76", 2076), ("77", 1977), ("99", 1999)],
)
def test_year_of_two_digits_is_at_most_fifty_years_ahead(year, expected):
    """The last year with those digits that is not over fifty years away is meant."""
    short = hint(f"Friday, 31-Dec-{year} 23:59:59 GMT", now=IN_2026)

    assert hint(f"Fri, 31 Dec {expected} 23:59:59 GMT", now=IN_2026) == short


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs time.tzset()")
def test_year_of_two_digits_does_not_depend_on_the_time_zone(monkeypatch):
    """Fifty years are counted from the year in Greenwich, wherever we are."""
    new_year = datetime(2027, 1, 1, tzinfo=UTC).timestamp()
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "WEST+12")
        time.tzset()
        year_2077 = hint("Friday, 31-Dec-77 23:59:59 GMT", now=new_year)
    time.tzset()

    assert hint("Fri, 31 Dec 2077 23:59:59 GMT", now=new_year) == year_2077


def test_leap_second_is_read():
    """The sixtieth second is a time of day."""
    assert 1.0 == hint(
        "Sat, 31 Dec 2016 23:59:60 GMT", Date="Sat, 31 Dec 2016 23:59:59 GMT"
    )


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "soon",
        "-1",
        "+5",
        "1.",
        ".5",
        "1.5.2",
        "-0.5",
        "1.5e3",
        "1e3",
        "0x10",
        "1_000",
        "5 seconds",
        "soon, 5",
        ", 5",
        "5; 5",
        "٣",
        "0.٣",
        "²",
        "\N{FULLWIDTH DIGIT FIVE}",
        "\u20035",
        "5\n",
        "X5",
        "nan",
        "inf",
        "Sun, ٠٦ Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 PST",
        "Sun, 06 Nov 1994 08:49:37 +1",
        "Sun, 06 Nov 1994 08:49:37 +00:00",
        "Sun, 06 Nov 1994 08:49:37 +2400",
        "Sun, 06 Nov 1994 08:49:37 +0060",
        "Sun, 06 Nov 1994 08:49:37 0000",
        "Sun, 06 Nov 1994 08:49:37 +000٣",
        "Sun, 06 Nov 1994 08:49:37 utc",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT\n",
        "Sun, 06 Nov 1994 08:49:37 GMTX",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "dim., 06 nov. 1994 08:49:37 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 29-Feb-95 08:49:37 GMT",
        "Sun Nov    08:49:37 1994",
        "1994-11-06T08:49:37Z",
        "\ud800",
        "x" * 10_000,
        " " * 10_000 + "x",
        "5" * 10_000 + "x",
        "0." + "5" * 10_000 + "x",
        "5" + " " * 10_000 + "x",
        "Sun, " * 2_000,
    ],
)
@pytest.mark.timeout(2)
def test_unreadable_value_is_ignored(value):
    """A value that is neither seconds nor a date is no hint, and is read at once."""
    assert hint(value) is None
    assert retry_after(CIMultiDict({"x-amz-retry-after": value}), now=0) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1500", 1.5),
        ("0", 0.0),
        ("1.5", 0.0015),
        ("1500.25, 9000", 1.50025),
        ("9999999999999", 9999999999.999),
        ("10000000000000.5", math.inf),
        ("10000000000000", math.inf),
        ("9" * 10_000, math.inf),
    ],
)
def test_amazon_header_is_milliseconds(value, expected):
    """Of a list the first ones; more than thirteen digits are too long."""
    assert expected == retry_after(CIMultiDict({"x-amz-retry-after": value}), now=0)


def test_date_says_nothing_in_the_amazon_header():
    """Only digits are defined there."""
    headers = CIMultiDict({"x-amz-retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"})

    assert retry_after(headers, now=0) is None


@pytest.mark.parametrize(
    ("standard", "amazon", "expected"),
    [
        ("2", "1500", 2.0),
        ("1", "1500", 1.5),
        ("soon", "1500", 1.5),
        ("2", "soon", 2.0),
        ("99999999999", "0", math.inf),
    ],
)
def test_longest_hint_counts(standard, amazon, expected):
    """Of two hints both are honoured by waiting for the later one."""
    headers = CIMultiDict({"Retry-After": standard, "X-Amz-Retry-After": amazon})

    assert expected == retry_after(headers, now=0)


def test_repeated_header_counts_with_its_longest_value():
    """A proxy that adds a second header does not make the wait shorter."""
    headers = CIMultiDict([("Retry-After", "1"), ("Retry-After", "3")])

    assert 3.0 == retry_after(CIMultiDictProxy(headers), now=0)


def test_response_without_a_hint_says_nothing():
    """No header, no hint."""
    assert retry_after(CIMultiDict(), now=0) is None
    assert retry_after(CIMultiDict({"Date": "Sun"}), now=0) is None


def test_names_of_days_and_months_do_not_depend_on_the_locale(monkeypatch):
    """HTTP dates are English in every locale, so the locale is never asked."""

    def refuse(*_):
        raise AssertionError("the locale was asked")

    for name in ("setlocale", "localeconv", "getlocale", "nl_langinfo"):
        monkeypatch.setattr(locale, name, refuse)

    assert 120.0 == hint("Sun, 06 Nov 1994 08:51:37 GMT")


async def test_date_counts_from_the_time_of_day():
    """A virtual clock moves it, so a date comes nearer as the program waits."""
    headers = CIMultiDict({"Retry-After": "Sun, 06 Nov 1994 08:49:47 GMT"})
    # Sun, 06 Nov 1994 08:49:37 GMT
    set_time_of_day(784111777.0)
    await asyncio.sleep(3.0)

    assert 7.0 == pytest.approx(retry_after(headers))
