"""Write queries of our series, by the names and labels that the table has."""

from aioretry_smithy._telemetry.series import PREFIX, SERIES

ADDED_BY_PROMETHEUS = {"job", "instance"}
"""Labels that a series has from the scrape."""

WINDOW = "$__rate_interval"
"""What a dashboard rates over: Grafana puts some scrapes in its place."""


def select(name, *filters, suffix=""):
    """Write the series of a name, as the table has it, that pass the *filters*.

    Raises:
        KeyError: The table has no such series, or it has no such label.
    """
    series = SERIES[name]
    for each in filters:
        _check(name, each.partition("=")[0].rstrip("!"))
    passing = f"{{{', '.join(filters)}}}" if filters else ""
    return f"{PREFIX}{series.shown}{suffix}{passing}"


def rate(name, *filters, suffix="", window=WINDOW):
    """Write how much a counter grows in a second."""
    return f"rate({select(name, *filters, suffix=suffix)}[{window}])"


def sum_by(labels, name, *filters, **options):
    """Write the sum of rates by *labels*, which commas divide; of all without any."""
    for label in labels.split(", ") if labels else ():
        _check(name, label)
    by = f"sum by ({labels}) " if labels else "sum"
    return f"{by}({rate(name, *filters, **options)})"


def quantile(q, labels, name, *filters):
    """Write a quantile of a histogram by *labels*."""
    labels = f"le, {labels}" if labels else "le"
    buckets = sum_by(labels, name, *filters, suffix="_bucket")
    return f"histogram_quantile({q}, {buckets})"


def _check(name, label):
    series = SERIES[name]
    known = {*series.labels, *ADDED_BY_PROMETHEUS}
    if series.kind == "histogram":
        known.add("le")
    if label not in known:
        raise KeyError(f"{name} has no label {label}")
