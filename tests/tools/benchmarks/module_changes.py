"""Count how often a call of ours changes the module, on a real server on loopback.

    python tests/tools/benchmarks/module_changes.py
    python tests/tools/benchmarks/module_changes.py --way

Who follows the call in the code changes it as often.
"""

import argparse
import asyncio
import sys
from contextlib import contextmanager
from http import HTTPStatus
from itertools import groupby
from typing import NamedTuple

from bytecodes import is_ours
from server import serving
from variants import FULL, INSIDE, OUTSIDE, ours

PATHS = {"200": "ok", "503 200": "once", "503 503 200": "twice"}
"""Where the server answers so."""

FAILING_ONCE = PATHS["503 200"]


class Called(NamedTuple):
    """A function of ours that was called, or a coroutine of ours that went on."""

    module: str
    function: str


def way_of(called):
    """Tell each module where a call went, with the functions that it called there.

    The first change is that from the caller's module.
    """
    return [
        (module, [each.function for each in together])
        for module, together in groupby(called, lambda each: each.module)
    ]


@contextmanager
def recorded():
    """Record which functions of ours are called in the block."""
    called = []

    def record(frame, event, argument):
        if event == "call" and is_ours(frame.f_code):
            module = frame.f_globals["__name__"]
            called.append(Called(module, frame.f_code.co_qualname))

    sys.setprofile(record)
    try:
        yield called
    finally:
        sys.setprofile(None)


async def called_by(variant, url):
    """Record a call, after some of the same kind."""
    async with variant.open() as call:
        for _ in range(3):
            await call(url)
        with recorded() as called:
            status = await call(url)
    assert status == HTTPStatus.OK
    return called


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--way", action="store_true", help="show the way of a call that fails once"
    )
    show = _show_way if parser.parse_args().way else _show_counts
    with serving() as server:
        show(server, {variant.name: variant for variant in ours()})


def _show_counts(server, variants):
    headings = ("changes", "modules", "functions", "calls")
    print(f"{'':44}", *(f"{heading:>9}" for heading in headings))
    for answers, path in PATHS.items():
        for name in (FULL, OUTSIDE, INSIDE):
            called = asyncio.run(called_by(variants[name], f"{server}/{path}"))
            modules = {each.module for each in called}
            counted = map(len, (way_of(called), modules, {*called}, called))
            print(f"{answers:12}{name:32}", *(f"{count:9}" for count in counted))


def _show_way(server, variants):
    called = asyncio.run(called_by(variants[FULL], f"{server}/{FAILING_ONCE}"))
    for number, (module, functions) in enumerate(way_of(called), 1):
        print(f"{number:4} {module.partition('.')[2]:32}", ", ".join(functions))


if __name__ == "__main__":
    main()
