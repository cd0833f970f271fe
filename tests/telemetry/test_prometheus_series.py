"""The table of series says what Prometheus reads."""

import csv
from pathlib import Path

from monitored import scrape

from aioretry_smithy._telemetry.series import SERIES
from aioretry_smithy.prometheus import EndpointGroupMetrics

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "prometheus-series.csv"


async def test_page_of_a_real_run_has_each_series_of_the_table_and_no_other():
    """With its type and its labels."""
    found = {
        name.removeprefix("aioretry_smithy_").removesuffix("_count"): (
            shown.kind,
            {*shown.labels},
        )
        for name, shown in (await scrape()).items()
        if not name.endswith(("_bucket", "_sum", "_created"))
    }

    assert {
        series.shown: (series.kind, {*series.labels}) for series in SERIES.values()
    } == found


def test_reference_lists_the_table():
    """In its order."""
    with PAGE.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)

    def labels_of(series):
        labels = ", ".join(f"``{label}``" for label in series.labels)
        more = "; ``endpoint`` with ``by_endpoint=True``"
        return f"{labels}{more if series.is_by_endpoint else ''}"

    assert [
        [f"``{series.shown}``", series.kind, labels_of(series)]
        for series in SERIES.values()
    ] == rows


def test_series_that_tell_endpoints_from_one_another_are_in_the_table(registry):
    """The two that have one label more on request."""
    EndpointGroupMetrics(registry, by_endpoint=True)

    assert {"aioretry_smithy_endpoints", "aioretry_smithy_ejections"} == {
        metric.name for metric in registry.collect()
    }
    assert {"endpoints", "ejections"} == {
        series.name for series in SERIES.values() if series.is_by_endpoint
    }
