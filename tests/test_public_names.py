"""What is public is written down in ``docs/public-names.txt``."""

import pytest
from promised_names import EXTRAS, FILE, MODULES, sections, sections_of_file

FOUND = dict(sections())
ADVICE = f"""
{{module}} has other public names or signatures than {FILE.name} says. They are a
promise to those who use them (docs/what-may-change.rst): what worked goes on for two
minor versions, with a warning. If it does, or the names were not released yet, run

    python tests/tools/promised_names.py

and commit what it writes together with the change.
"""


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_those_that_were_promised(module):
    """A name, an argument or a default that changes is a change of the promise."""
    if module not in FOUND:
        pytest.skip(f"the extra of {module} is not installed")

    promised = sections_of_file()[module]

    assert promised == FOUND[module], ADVICE.format(module=module)


def test_file_has_a_section_for_each_public_module():
    """And no other; the extras may be missing, the rest is there."""
    assert [*MODULES] == [*sections_of_file()]

    assert {*MODULES} - {*FOUND} <= {f"{MODULES[0]}.{extra}" for extra in EXTRAS}
