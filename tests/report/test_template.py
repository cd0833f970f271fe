"""The files that a page is made of."""

from __future__ import annotations

from importlib import resources

import pytest


@pytest.mark.parametrize("name", ["report.css", "report.html"])
def test_files_of_the_page_come_with_the_package(name):
    """A wheel has them too."""
    assert resources.files("aioretry_smithy").joinpath("_report", name).is_file()
