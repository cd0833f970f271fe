"""Count the bytecodes of ours that a call runs: the same on every machine.

    python tests/tools/benchmarks/bytecodes.py
    python tests/tools/benchmarks/bytecodes.py "ours: retry"    # function by function

A busy machine does not show by the clock that a call takes a hundredth longer. How many
bytecodes it runs depends on the version of Python alone. They are those of one call in
the stub, when others have warmed everything up.
"""

import argparse
import asyncio
import gc
import os
import sys
from collections import Counter
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from group_variants import PATHS
from scenarios import FLAKY, POSTED, WARM_UP
from stub import stubbed
from variants import installed

import aioretry_smithy
from aioretry_smithy.testing import VirtualTimeLoop

PACKAGE = f"{Path(aioretry_smithy.__file__).parent}{os.sep}"
TOOLS_FOR_TESTS = f"{PACKAGE}testing{os.sep}"
TOOL = 4
"""A number that ``sys.monitoring`` gives to no kind of tool."""

numbers = count()

ANSWERS = {
    "200": {},
    "POST, 200": {"options": POSTED},
    "503 503 200": {"statuses": FLAKY},
}


def is_ours(code):
    """Whether it was compiled from a file of the package, which calls may run."""
    file = code.co_filename
    return file.startswith(PACKAGE) and not file.startswith(TOOLS_FOR_TESTS)


@contextmanager
def bytecodes():
    """Count the instructions of ours that are run in the block, by their code."""
    counts = Counter()
    observed = _monitored if sys.version_info >= (3, 12) else _traced
    gc.collect()
    gc.disable()  # what it finalizes would be counted where it comes by chance
    try:
        with observed(counts):
            yield counts
    finally:
        gc.enable()


@contextmanager
def _monitored(counts):
    monitoring = sys.monitoring
    instruction = monitoring.events.INSTRUCTION

    def add(code, offset):
        if not is_ours(code):
            return monitoring.DISABLE
        counts[code] += 1
        return None

    monitoring.use_tool_id(TOOL, __name__)
    monitoring.register_callback(TOOL, instruction, add)
    monitoring.set_events(TOOL, instruction)
    try:
        yield
    finally:
        monitoring.set_events(TOOL, monitoring.events.NO_EVENTS)
        monitoring.register_callback(TOOL, instruction, None)
        monitoring.free_tool_id(TOOL)


@contextmanager
def _traced(counts):
    def trace(frame, event, argument):
        if event == "opcode":
            counts[frame.f_code] += 1
        elif event == "call":
            if not is_ours(frame.f_code):
                return None
            frame.f_trace_opcodes = True
        return trace

    before = sys.gettrace()  # that of coverage
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


async def bytecodes_of_a_call(open_chain, statuses=(200,), options=None, url=None):
    """Count what one call runs, when everything is warmed up.

    Without a URL the host is a new one, since the host met last is found quickest. A
    call that waits runs the same each time in virtual time only: a real clock may move
    meanwhile.
    """
    url = url or f"http://stub-{next(numbers)}.example/ok"
    with stubbed(statuses=statuses):
        async with open_chain() as call:
            for _ in range(WARM_UP):
                await call(url, **(options or {}))
            with bytecodes() as counts:
                await call(url, **(options or {}))
    return counts


def _counted(variant):
    """Count in all situations that a variant knows what to do in."""
    url = PATHS[0] if variant.group else None
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return [
            runner.run(bytecodes_of_a_call(variant.open, url=url, **arguments))
            for arguments in ANSWERS.values()
            if _takes_part(variant, arguments)
        ]


def _takes_part(variant, arguments):
    if variant.is_function:
        return not arguments
    if variant.group and "options" in arguments:
        return False
    return variant.retries or "statuses" not in arguments


def _show(name, figures):
    print(f"{name:64}", *(f"{figure:>12}" for figure in figures))


def main():
    variants = {each.name: each for each in installed()[0] if each.kind == "ours"}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variant", nargs="?", choices=variants, metavar="VARIANT")
    variant = variants.get(parser.parse_args().variant)
    _show("", ANSWERS)
    if variant:
        _show_functions(_counted(variant))
    for each in [variant] if variant else variants.values():
        _show(each.name, (count.total() for count in _counted(each)))


def _show_functions(counts):
    for code, _ in sum(counts, Counter()).most_common():
        module = code.co_filename.removeprefix(PACKAGE)
        _show(f"{module} {code.co_qualname}", (each[code] for each in counts))


if __name__ == "__main__":
    main()
