"""The measures of a simulation: from its counts by second, in words, in a picture."""

import dataclasses
import re
from xml.etree import ElementTree as ET

import pytest
from one_server import settings

from aioretry_smithy.testing._simulation import (
    SimulatedRun,
    SimulationResult,
    SimulationSettings,
)
from aioretry_smithy.testing._views import backlog, conditions, draw, legend, rows

OUTAGE = (1.0, 2.0, 0.2)


def run_with(answered, *, outage=OUTAGE):
    """Return a run with a hundred calls a second, of which so many are answered."""
    calls = (100,) * len(answered)
    return SimulatedRun(calls, calls, tuple(answered), outage)


@pytest.mark.parametrize(
    ("answered", "seconds"),
    [
        ([100, 0, 0, 0, 0, 100], 2.0),
        ([100, 0, 0, 100, 98, 100], 2.0),
        ([100, 0, 0, 100, 99, 100], 0.0),
        ([100, 0, 100, 100, 100, 100], 0.0),
        ([100, 100, 100, 100, 100, 100], 0.0),
        ([100, 0, 0, 100, 100, 98], None),
    ],
)
def test_recovered_when_99_percent_succeed_for_good(answered, seconds):
    """The seconds are counted from the end of the outage; None means never."""
    assert seconds == run_with(answered).seconds_to_recover


def test_seconds_without_calls_say_nothing():
    """Neither good nor bad is a second in which no call began."""
    run = SimulatedRun((4, 4, 0, 4, 0), (4, 4, 0, 4, 0), (4, 0, 0, 4, 0), OUTAGE)

    assert 0.0 == run.seconds_to_recover


def test_load_is_counted_in_the_outage():
    """Requests for each call, in the outage and in the whole time."""
    run = SimulatedRun((10, 10, 10, 10), (10, 5, 10, 30), (10, 0, 0, 10), OUTAGE)

    assert 0.75 == run.load_in_outage
    assert 1.375 == run.attempts_per_call
    assert 0.5 == run.success
    assert (0, 10, 10, 0) == run.failed


def test_outage_between_two_seconds_counts_both():
    """A second that the outage touches belongs to it."""
    run = SimulatedRun((10, 10, 10), (10, 20, 30), (10, 0, 10), (1.5, 0.75, 0.2))

    assert 2.5 == run.load_in_outage


def test_without_an_outage_there_is_nothing_to_recover_from():
    """Figures of an outage, and of the time after it, are None without one."""
    run = run_with([100, 0, 100], outage=None)

    assert None is run.load_in_outage
    assert None is run.seconds_to_recover


def test_without_calls_measures_are_zero():
    """No call in the whole time is no error."""
    run = SimulatedRun((0, 0, 0), (0, 0, 0), (0, 0, 0), OUTAGE)

    assert (0.0, 0.0, 0.0) == (run.success, run.attempts_per_call, run.load_in_outage)
    assert 0.0 == run.seconds_to_recover


def settings_of(outage, duration=40.0):
    return SimulationSettings(
        clients=5,
        rate=4.0,
        capacity=10.5,
        outage=outage,
        duration=duration,
        error_rate=0.0,
        seed=0,
    )


def row_of(answered, *, attempts=4, calls=4, outage=(1.0, 2.0, 0.2)):
    """Return the row of a run with as many calls in each second."""
    many = len(answered)
    run = SimulatedRun((calls,) * many, (attempts,) * many, tuple(answered), outage)
    result = SimulationResult(settings_of(outage), {"ours": run})
    head, row = rows(result)
    return dict(zip(head, row, strict=True))


def test_measures_have_a_name_each():
    """The head says what stands below."""
    row = row_of([4] * 10 + [0] * 10 + [4] * 20, attempts=6)

    assert {
        "chain": "ours",
        "load": "1.50",
        "recovery": "17 s",
        "answered": "75.0%",
        "attempts": "1.50",
        "answered, over time": "█████▁▁▁▁▁██████████",
    } == row


def test_chain_that_does_not_recover():
    """It never does, as far as one can see."""
    assert "never" == row_of([4, 0, 0, 0])["recovery"]


def test_without_an_outage_there_is_no_recovery():
    """What is measured in an outage is a dash."""
    row = row_of([4] * 40, outage=None)

    assert ("-", "-") == (row["load"], row["recovery"])


@pytest.mark.parametrize(
    ("answered", "blocks"),
    [([4], "█" * 20), ([4, 0], "█" * 10 + "▁" * 10), ([2] * 40, "▅" * 20)],
)
def test_time_is_shown_in_as_many_blocks(answered, blocks):
    """However long it was."""
    assert blocks == row_of(answered)["answered, over time"]


def test_seconds_without_calls_are_a_gap():
    """Nothing failed in them."""
    assert " " * 20 == row_of([0] * 20, calls=0)["answered, over time"]


def with_replicas(number, **trouble):
    return dataclasses.replace(settings_of(OUTAGE), replicas=number, **trouble)


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({}, "only 20% of that."),
        ({"dead": 1}, "only 75% of that, with 1 dead."),
        (
            {"dead": 1, "failing": 1, "slow": 10.0},
            "only 28% of that, with 1 dead and 1 failing and 1 10 times slower.",
        ),
    ],
)
def test_conditions_say_what_is_wrong_with_replicas(trouble, said):
    """How many there are, and what is left of what they can do together."""
    served = conditions(with_replicas(4, **trouble))[1]

    assert f"4 replicas can answer 10.5 a second, from second 1 to 3 {said}" == served


@pytest.mark.parametrize(
    ("sent", "shown"), [([1, 48, 51], "1/48/51"), ([1, 49, 10, 20, 10, 10], "1-49")]
)
def test_table_shows_the_shares_of_replicas(sent, shown):
    """In the outage; of many replicas the range alone."""
    to_each = tuple((50, each, 0, 50) for each in sent)
    run = SimulatedRun((100,) * 4, (100,) * 4, (100,) * 4, OUTAGE, to_each)
    result = SimulationResult(with_replicas(len(sent)), {"ours": run})
    head, row = rows(result)

    assert shown == dict(zip(head, row, strict=True))["shares, %"]
    assert "shares, %: of the requests in the outage" in legend(result.settings)


def test_shares_are_of_the_whole_time_without_an_outage():
    """Nothing is a share of nothing."""
    to_each = (3, 1), (5, 7)
    run = SimulatedRun((8, 8), (8, 8), (8, 8), None, to_each)

    assert (0.25, 0.75) == run.shares
    assert (0.0, 0.0) == SimulatedRun((0,), (0,), (0,), None, ((0,), (0,))).shares


def test_table_of_one_server_has_no_shares():
    """Nor does its legend."""
    assert "shares, %" not in row_of([4] * 4)
    assert "shares" not in legend(settings_of(OUTAGE))


def test_conditions_are_two_sentences():
    """The calls, and the server with its outage."""
    assert (
        "5 clients make 4 calls a second for 40 s.",
        "The server can answer 10.5 a second, from second 1 to 3.5 only 20% of that.",
    ) == conditions(settings_of((1.0, 2.5, 0.2)))
    assert "The server can answer 10.5 a second." == conditions(settings_of(None))[1]


RESTART = (1.0, 2.0)


def test_restart_is_an_outage_too():
    """Load and recovery are those of the time from the first trouble to the last."""
    run = SimulatedRun((4,) * 4, (4, 2, 6, 4), (4, 0, 4, 4), None, (), RESTART)
    both = dataclasses.replace(run, outage=(0.5, 1.0, 0.2))

    assert (1.0, 0.0) == (run.load_in_outage, run.seconds_to_recover)
    assert (1.0, 0.0) == (both.load_in_outage, both.seconds_to_recover)


def test_table_of_a_restart_counts_the_calls_that_failed():
    """The legend says what they are."""
    run = SimulatedRun((4,) * 4, (4, 2, 6, 4), (4, 0, 3, 4), None, (), RESTART)
    shown = dataclasses.replace(settings_of(None), restart=RESTART)
    head, row = rows(SimulationResult(shown, {"ours": run}))

    assert "5" == dict(zip(head, row, strict=True))["failed"]
    assert "failed: calls that were not answered" in legend(shown)
    assert "failed" not in legend(settings_of(OUTAGE))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "it is away from second 1 to 3."),
        (
            {"outage": (2.0, 2.0, 0.2)},
            "from second 2 to 4 only 20% of that; it is away from second 1 to 3.",
        ),
        (
            {"replicas": 3},
            "answer 10.5 a second; one of them is away from second 1 to 3.",
        ),
    ],
)
def test_conditions_say_who_restarts(changes, said):
    """The server, or one of its replicas."""
    shown = dataclasses.replace(settings_of(None), restart=RESTART, **changes)

    assert conditions(shown)[1].endswith(f" {said}")


class TestBacklog:
    """What a restart leaves behind, and attempts that wait for less."""

    RESTART = (2.0, 1.0)

    def result(self, late, *, answered=(4, 4, 0, 4, 4), outage=None):
        """Return a result with a restart in the third second."""
        counts = (4, 4, 4, 4, 4), (4, 4, 4, 8, 4), answered
        run = SimulatedRun(*counts, outage, restart=self.RESTART, late=late)
        settings_of = SimulationSettings(
            2, 4.0, 8.0, outage, 5.0, 0.0, 0, restart=self.RESTART
        )
        return SimulationResult(settings_of, {"your chain": run})

    def test_requests_that_time_out_after_it_are_told_of(self):
        """With what keeps them out of the queue."""
        said = backlog(self.result((0, 0, 0, 3, 1)))

        assert said == (
            "backlog: 4 requests of your chain timed out in the queue after the"
            ' restart; try concurrency="aimd"'
        )

    @pytest.mark.parametrize(
        ("late", "changes"),
        [
            ((0, 0, 0, 0, 0), {}),
            ((1, 0, 0, 3, 1), {}),
            ((0, 0, 2, 0, 0), {}),
            ((0, 0, 0, 3, 1), {"answered": (4, 4, 4, 4, 4)}),
            ((0, 0, 0, 3, 1), {"outage": (3.0, 1.0, 0.5)}),
        ],
        ids=["none", "before it", "while it is away", "retried", "in an outage"],
    )
    def test_nothing_is_said_where_it_is_no_backlog_of_the_restart(self, late, changes):
        """The server was too slow before, or all calls were answered."""
        assert backlog(self.result(late, **changes)) is None

    def test_nothing_is_said_without_a_restart(self):
        """A server may be too slow all the time."""
        run = SimulatedRun((4,), (4,), (0,), None, late=(4,))
        settings_of = SimulationSettings(2, 4.0, 2.0, None, 1.0, 0.0, 0)

        assert backlog(SimulationResult(settings_of, {"your chain": run})) is None


SVG = "{http://www.w3.org/2000/svg}"
HALF_AN_OUTAGE = (1.0, 2.0, 0.5)


def picture(*runs, outage=HALF_AN_OUTAGE, duration=4.0, **changes):
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
