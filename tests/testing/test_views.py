"""The picture of a simulation."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from simulated import settings

from aioretry_smithy.testing._simulation import SimulatedRun, SimulationResult
from aioretry_smithy.testing._views import draw

SVG = "{http://www.w3.org/2000/svg}"
OUTAGE = (1.0, 2.0, 0.5)


def picture(*runs, outage=OUTAGE, duration=4.0, **changes):
    """Draw runs, each its attempts and answers by second."""
    shown = settings(clients=5, outage=outage, duration=duration, **changes)
    named = {
        f"chain <{n}>": SimulatedRun((4, 4, 0, 4), attempts, answered, outage)
        for n, (attempts, answered) in enumerate(runs)
    }
    return ET.fromstring(draw(SimulationResult(shown, named)))


def lines(root, kind):
    return [
        path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == kind
    ]


def heights(line):
    """Return how high a line is, second by second."""
    return [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)H", line)]


RUN = (4, 20, 0, 4), (4, 1, 0, 4)


def test_each_chain_has_a_line_of_load_and_one_of_answers():
    """Higher is more, and seconds without calls are a gap in the answers."""
    _, load, answers = lines(picture(RUN), "chain0")
    idle, busy, none, after = heights(load)

    assert busy < idle == after < none
    assert 3 == len(heights(answers))
    assert 2 == answers.count("M")
    assert 1 == load.count("M")


def test_chains_have_names_and_colours_of_their_own():
    """Four of them; then the colours begin anew. Names are escaped."""
    root = picture(*[RUN] * 5)
    texts = [text.text for text in root.iter(f"{SVG}text")]

    assert [f"chain <{n}>" for n in range(5)] == [t for t in texts if "chain" in t]
    assert [6, 3, 3, 3] == [len(lines(root, f"chain{n}")) for n in range(4)]


def test_outage_is_shaded_in_both_parts():
    """From its begin to its end, as long as the server answers less."""
    root = picture(RUN)
    shades = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "outage"]
    _, served = lines(root, "served")
    usual, low, again = re.findall(r"[ V]([\d.]+)", served)

    assert 2 == len({rect.get("y") for rect in shades})
    assert {("261.0", "402.0")} == {(r.get("x"), r.get("width")) for r in shades}
    assert usual == again
    assert float(low) > float(usual)


def test_restart_is_shaded_too():
    """Nothing is served meanwhile."""
    root = picture(RUN, outage=None, restart=(1.0, 2.0))
    shades = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "outage"]
    _, served = lines(root, "served")

    assert {("261.0", "402.0")} == {(r.get("x"), r.get("width")) for r in shades}
    assert ["310.0"] == re.findall(r"H261.0V([\d.]+)H663.0", served)


def test_without_an_outage_nothing_is_shaded():
    """The server answers as much all the time."""
    root = picture(RUN, outage=None)
    _, served = lines(root, "served")

    assert not [r for r in root.iter(f"{SVG}rect") if r.get("class") == "outage"]
    assert 1 == len({*re.findall(r"[ V]([\d.]+)", served)})


@pytest.mark.parametrize("duration", [4.0, 3.5])
def test_lines_end_with_the_time(duration):
    """Also where the last second is none."""
    root = picture(RUN, duration=duration)
    _, load, _ = lines(root, "chain0")

    assert load.endswith("H864.0")


def test_readers_of_the_screen_get_the_table():
    """The title says what was simulated, the description how the chains did."""
    root = picture(RUN)

    assert root.find(f"{SVG}title").text.startswith("5 clients make 4 calls a second")
    assert "chain <0>, 5.00, 0 s, 75.0%, 2.33" in root.find(f"{SVG}desc").text
