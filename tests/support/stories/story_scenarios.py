"""Calls that are told: through chains of all kinds, to a server that may fail."""

from __future__ import annotations

from story import Scenario
from story_calls import ANSWERS, CANCELLED, REQUESTS, SLOW_ANSWERS, WAYS
from story_chains import CHAINS

FULL, STANDARD = CHAINS["full"], CHAINS["standard"]
MAIN = ("retry", "full", "standard", "standard, function outside")
"""Chains that meet all answers."""

SMOOTH = ("200", "401", "404")
TELLING = (*SMOOTH, "503, 200", "503", "cut before the headers")
"""Answers that all chains meet."""

OUTCOMES = ("200", "204", "404", "503, 200", "cut each time", "large")
"""Answers that all requests, or all ways of the caller, meet."""

OUTCOMES_OF = {
    "in a task group": ("200", "404 each time"),
    "twice at once": ("200", "204", "404", "503, 200", "cut each time"),
}
"""Answers for two ways in which the others have no fixed outcome: chance decides which
of three calls is retried, whether a large body is there before a second answer, and
which of three is read first."""

SCENARIOS = {
    **{
        f"{chain}: {name}": Scenario(CHAINS[chain], ANSWERS[name])
        for chain in MAIN
        for name in ANSWERS
    },
    **{
        f"{chain}: {name}": Scenario(CHAINS[chain], ANSWERS[name])
        for chain in CHAINS
        for name in (SMOOTH if CHAINS[chain].delays else TELLING)
    },
    **{
        f"full: {request}: {name}": Scenario(FULL, ANSWERS[name], REQUESTS[request])
        for request in REQUESTS
        for name in ("200", "503, 200", "cut each time")
    },
    **{
        f"standard: {request}: {name}": Scenario(
            STANDARD, ANSWERS[name], REQUESTS[request]
        )
        for request in REQUESTS
        for name in ("200", "404")
    },
    **{
        f"{chain}: {way}: {name}": Scenario(CHAINS[chain], ANSWERS[name], way=WAYS[way])
        for chain in ("full", "standard")
        for way in WAYS
        for name in OUTCOMES_OF.get(way, OUTCOMES)
    },
    **{
        f"{chain}: {name}": Scenario(CHAINS[chain], SLOW_ANSWERS[name])
        for chain in ("full", "attempts of 0.4 s")
        for name in SLOW_ANSWERS
        # Without a limit to an attempt it would wait for minutes.
        if (chain, name) != ("full", "silence, then 200")
    },
    **{
        f"{chain}: cancelled {name}": Scenario(CHAINS[chain], answers, way=way)
        for chain in ("full", "standard", "content strategy")
        for name, (way, answers) in CANCELLED.items()
        # That reads a body before there is a response.
        if (chain, name) != ("content strategy", "in the body")
    },
}
"""By name."""
