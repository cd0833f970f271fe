"""``rich.print(log)`` shows the tree in colours, with time bars."""

import asyncio
import io
import re

import pytest
from calls import (
    REQUEST,
    attempted,
    begin,
    begin_body,
    connect,
    drop_calls,
    end,
    end_body,
    end_call,
    function,
    growing,
    http,
    note_delay,
    preview,
    report,
)
from chains import after, log_of, retrying_session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    FailFastError,
    RetryStrategy,
    new_response,
)

pytest.importorskip("rich", reason="needs the extra cli")

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text


@pytest.fixture
async def log():
    """The log of a call of eight seconds that was answered on its third attempt."""
    strategy = RetryStrategy.failsafe(Backoff.fixed(2.0))
    answers = after(1.0, 503), after(9.0, 200), after(1.0, 200)
    client = retrying_session(answers, strategy, attempt_timeout=2.0)
    return await log_of(client, "http://example.com/")


def shown(log, width=80, **settings):
    """Return the text on a terminal, with its codes for colours."""
    settings = {"force_terminal": True, "color_system": "standard", **settings}
    console = Console(file=io.StringIO(), width=width, _environ={}, **settings)
    console.print(log)
    return console.file.getvalue()


def lines(log, width=80, **settings):
    """Return the lines that a terminal shows, without their colours."""
    return Text.from_ansi(shown(log, width, **settings)).plain.splitlines()


async def test_bars_are_below_where_there_is_no_room_beside(log):
    """Eight seconds are all columns but six, in a terminal of 78."""
    assert [
        "GET http://example.com/  ->  200 OK  in 8.000 s, 3 attempts",
        "├─ 1  503 Service Unavailable   1.000 s   then waited 2.000 s (backoff)",
        f"│     {'█' * 9}{'░' * 18}",
        "├─ 2  AttemptTimeoutError       2.000 s   then waited 2.000 s (backoff)",
        f"│     {' ' * 27}{'█' * 18}{'░' * 18}",
        "└─ 3  200 OK                    1.000 s",
        f"      {' ' * 63}{'█' * 9}",
    ] == lines(log, 78)


async def test_bars_stand_beside_where_there_is_room(log):
    """In a wide terminal each attempt is one line."""
    _, first, second, third = lines(log, 117)

    assert first.endswith(f"then waited 2.000 s (backoff)   {'█' * 5}{'░' * 10}")
    assert second.endswith(f"(backoff)   {' ' * 15}{'█' * 10}{'░' * 10}")
    assert third.endswith(f" {'█' * 5}")
    assert len(first) + 25 == len(second) + 5 == len(third)


async def test_bars_need_some_room_beside(log):
    """Below 24 columns a bar says little, and goes below the words."""
    assert [7, 4] == [len(lines(log, width)) for width in (100, 101)]


async def test_attempt_without_duration_at_the_end_fits():
    """It has the last column."""
    ctx = begin()
    end(ctx.derive(REQUEST), TimeoutError(), delay=1.0)
    await asyncio.sleep(1.0)
    end(ctx.derive(REQUEST), TimeoutError())

    assert f"{' ' * 29}█" == lines(ctx.log, 30)[-1]


@pytest.mark.parametrize("width", [1, 7, 20, 40, 80, 99, 100, 200])
async def test_every_line_fits(width, log):
    """At any width nothing is cut and nothing runs over."""
    drawn = lines(log, width)

    assert width >= max(map(cell_len, drawn))
    if width >= 20:
        words = "".join("".join(drawn).split())
        assert "thenwaited2.000s(backoff)" in words.replace("│", "").replace("█", "")


async def test_lines_that_are_broken_hang(log):
    """In a narrow terminal the tree is still one."""
    assert ["GET http://example.com/  ->  200 OK  in", "8.000 s, 3 attempts"] == [
        line.rstrip() for line in lines(log, 40)[:2]
    ]
    assert all(line[0] in "├│└ " for line in lines(log, 40)[2:])
    assert not [line for line in lines(log, 39)[2:] if line.endswith(" ")]


@pytest.mark.parametrize(
    ("status", "cause", "colour"),
    [
        (200, None, 32),
        (503, None, 31),
        (None, TimeoutError(), 35),
        (None, FailFastError(CircuitBreaker(clock=float), 1.0), 36),
        (None, asyncio.CancelledError(), 33),
        (None, None, 34),
    ],
)
async def test_colours_tell_the_outcome(status, cause, colour):
    """Words and bar of an attempt have the same colour."""
    ctx = begin()
    child = ctx.derive(REQUEST)
    await asyncio.sleep(1.0)
    if status is not None or cause is not None:
        end(child, status or cause)
    text = shown(ctx.log)

    assert f"\x1b[{colour}m{'█' * 10}" in text
    assert 2 <= text.count(f"\x1b[{colour}m")


async def test_body_and_first_wait_have_their_bars():
    """A long body has a shade of its own, as has a wait at the beginning."""
    ctx = begin()
    note_delay(ctx, 2.0, "rate_limit")
    await asyncio.sleep(2.0)
    child = ctx.derive(REQUEST)
    await asyncio.sleep(1.0)
    begin_body(child)
    await asyncio.sleep(1.0)
    end_body(child, 1)

    assert f"      {'░' * 12}{'█' * 6}{'▒' * 6}" == lines(ctx.log, 30)[-1]
    assert f"\x1b[32m{'▒' * 6}" in shown(ctx.log, 30)


async def test_wait_for_a_connection_is_lighter():
    """To scale: three quarters of the second were in the pool's queue."""
    ctx = begin()
    child = await attempted(ctx, 1.0)
    connect(child, queued=0.75)
    end_call(ctx, child)
    bar = lines(ctx.log, width=120)[1].split()[-1]

    assert re.fullmatch("▒+█+", bar)
    assert abs(3 - bar.count("▒") / bar.count("█")) < 0.3


async def test_first_wait_is_shown_once():
    """It belongs to the first attempt, and not to those after it."""
    ctx = begin()
    note_delay(ctx, 2.0, "rate_limit")
    await asyncio.sleep(2.0)
    for _ in range(2):
        await attempted(ctx, 1.0, TimeoutError())
    drawn = lines(ctx.log, 30)

    assert f"│     {'░' * 12}{'█' * 6}" in drawn
    assert f"      {' ' * 18}{'█' * 6}" == drawn[-1]


async def test_drawing_reads_the_attempts_once():
    """A thread that prints a call does not stumble over an attempt that begins."""
    ctx = begin()
    ctx.derive(REQUEST)
    log = growing(ctx)

    assert ["GET", "└─ "] == [line[:3] for line in lines(log)]
    assert ["GET", "├─ ", "└─ "] == [line[:3] for line in log.render().splitlines()]
    assert 4 == len(lines(log, force_terminal=False))


async def test_without_a_terminal_it_is_the_plain_tree(log):
    """A file gets what ``render()`` returns, where that fits."""
    assert f"{log.render()}\n" == shown(log, force_terminal=False)


async def test_notebook_has_colours_and_bars(log):
    """It is no terminal, but shows what one does."""
    console = Console(file=io.StringIO(), width=78, force_jupyter=True)
    bars = [each.style for each in console.render(log) if "█" in each.text]

    assert ["red", "magenta", "green"] == [str(style) for style in bars]


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1", "gbk"])
async def test_texts_are_fit_for_poor_encodings(encoding, is_terminal):
    """Neither the sign of a cut nor a foreign letter breaks what is printed."""
    ctx = begin()
    end(ctx.derive(REQUEST), ValueError("ก" * 100))
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, force_terminal=is_terminal, width=120, no_color=True)
    console.print(ctx.log)
    file.flush()
    drawn = file.buffer.getvalue().decode(encoding)

    assert f"`- 1  ValueError: {'?' * 59}." in drawn


async def test_hostile_texts_are_no_markup():
    """A server cannot colour the terminal of a client."""
    ctx = http("http://[red]a[/red]")
    response = new_response(REQUEST)
    response.reason = "[bold]\x1b[2J"
    end(ctx.derive(ctx.request), response)
    first, second, *_ = lines(ctx.log, 110)

    assert "//[red]a[/red]" in first
    assert r"200 [bold]\x1b[2J" in second


async def test_previews_of_bodies_are_where_the_tree_has_them():
    """Sent bodies stand below the call, received ones below their attempts."""
    ctx = begin()
    preview(ctx, "sent")
    for _ in range(2):
        child = ctx.derive(REQUEST)
        end(child, 200)
        preview(child, received=b"received")
    *_, last = lines(ctx.log, 110)

    assert ctx.log.render().splitlines()[1] == "│  > sent" == lines(ctx.log, 110)[1]
    assert "│     < received" == lines(ctx.log, 110)[3]
    assert "      < received" == last


async def test_body_of_no_length_has_no_bar():
    """The rest of an answer that was given up on is not worth a column."""
    ctx = begin()
    child = ctx.derive(REQUEST)
    await asyncio.sleep(1.0)
    begin_body(child)
    await asyncio.sleep(0.001)
    end_body(child, 1)

    assert "▒" not in shown(ctx.log)


async def test_calls_inside_have_bars_of_the_same_scale():
    """However deep a call is, its bar is in the column of its time."""
    log = await report()
    drawn = lines(log, 130)
    longest = max(map(len, log.render().splitlines()))
    begin = [len(line) - len(line[longest:].lstrip()) for line in drawn[1:]]
    second = (130 - 3 - begin[0]) / 3.6

    assert log.render().splitlines() == [line.rstrip(" █▒░") for line in drawn]
    assert [
        begin[0] + int(start * second)
        for start in (0.0, 0.0, 0.0, 0.6, 0.9, 0.9, 0.9, 1.4, 1.4, 2.7, 2.7, 2.7, 3.3)
    ] == begin


async def test_calls_of_a_call_stand_before_its_attempts():
    """As in the plain tree."""
    ctx = function("fetch")
    end(http("http://example.com/", ctx.log), 200)
    attempt = ctx.derive(ctx.request)
    end(attempt)
    end_call(ctx, attempt)
    plain = ctx.log.render().splitlines()

    assert ["fetch ", "├─ GET", "└─ 1  "] == [line[:6] for line in plain]
    assert plain == [line.rstrip(" █▒░") for line in lines(ctx.log, 110)]


async def test_calls_inside_have_bars_below_where_there_is_no_room():
    """All bars then begin right of the deepest branch, and long lines hang."""
    ctx = function("fetch")
    attempt = ctx.derive(ctx.request)
    call = http("http://h/", attempt.log)
    for status in 503, 200:
        inner = await attempted(call, 1.0, status, 1.0 if status == 503 else None)
    end_call(call, inner)
    drop_calls(attempt.log, 2)
    end(attempt)
    end_call(ctx, attempt)

    assert [
        "└─ 1  returned   3.000 s",
        f"   │        {'█' * 28}",
        "   ├─ GET http://h/  ->  200 OK  in",
        "   │  │  3.000 s, 2 attempts",
        f"   │  │     {'▒' * 28}",
        "   │  ├─ 1  503 Service Unavailable",
        "   │  │     1.000 s   then waited 1.000",
        "   │  │     s (backoff)",
        f"   │  │     {'█' * 9}{'░' * 10}",
        "   │  └─ 2  200 OK",
        "   │        1.000 s",
        f"   │        {' ' * 18}{'█' * 10}",
        "   └─ and 2 more calls",
    ] == lines(ctx.log, 40)[2:]


async def test_call_inside_has_the_previews_of_its_bodies():
    """Both of them, where it has no attempts to show what came back."""
    ctx = function("fetch")
    call = http("http://example.com/", ctx.log)
    end(call, 200)
    preview(call, "sent", b"received")

    assert ["      > sent", "      < received"] == lines(ctx.log, 110)[2:]
    assert ["      > sent", "      < received"] == ctx.log.render().splitlines()[2:]


async def test_wait_before_a_call_inside_belongs_to_its_first_attempt():
    """A rate limit holds up calls inside as well."""
    ctx = function("fetch")
    call = http("http://h/", ctx.log)
    note_delay(call, 1.0, "rate_limit")
    await asyncio.sleep(1.0)
    inner = await attempted(call, 1.0)
    end_call(call, inner)
    *_, last = lines(ctx.log, 130)

    assert 3 == len(lines(ctx.log, 130))
    assert re.fullmatch(r"   └─ 1  200 OK   1\.000 s +░+█+", last)
