"""The dashboard and the alert rules ask for what there is, and for nothing else."""

import json
import re
import shutil
import subprocess

import pytest
from alerts import RULES, alerts
from dashboard import WIDTH, dashboard
from make_monitoring import files
from panels import ROWS
from promql import ADDED_BY_PROMETHEUS, select, sum_by

from aioretry_smithy import RetryStopReason

QUERIES = {
    **{
        f"{panel.title}, {legend}": query
        for row in ROWS
        for panel in row.panels
        for legend, query in panel.targets.items()
    },
    **{rule.name: rule.query for rule in RULES},
}
PANELS = [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


@pytest.fixture
def promql_parser():
    """A parser of Prometheus' language."""
    return pytest.importorskip("promql_parser")


@pytest.fixture
def promtool(tmp_path):
    """A function that lets Prometheus' own tool check a file."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")

    def run(*arguments):
        return subprocess.run(
            ["promtool", *arguments],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            text=True,
        )

    return run


@pytest.fixture
def parsed(promql_parser):
    """A function that returns all parts of a query."""

    def parts_of(query):
        parts = []
        # As Grafana does it.
        query = query.replace("$__rate_interval", "1m")
        promql_parser.walk(promql_parser.parse(query), parts.append)
        return parts

    return parts_of


@pytest.mark.parametrize("file", files(), ids=lambda file: file.name)
def test_file_is_the_one_that_its_script_writes(file):
    """Whoever changes a series or a panel runs the script again."""
    assert files()[file] == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("title", QUERIES)
def test_query_parses(title, promql_parser):
    """As Prometheus reads it."""
    query = QUERIES[title].replace("$__rate_interval", "1m")

    assert "" != promql_parser.parse(query).prettify()


@pytest.mark.parametrize("title", QUERIES)
async def test_query_asks_for_what_a_real_run_shows(title, parsed, page):
    """Each series is on the page of a real run, with the labels that are asked for."""
    parts = parsed(QUERIES[title])
    selectors = [part for part in parts if type(part).__name__ == "VectorSelector"]
    grouped = {label for part in parts for label in labels_of(part)}
    shown = {label for each in selectors for label in page[each.name].labels}
    filters = [each for part in selectors for each in part.matchers.matchers]

    assert selectors
    assert set() == grouped - shown - ADDED_BY_PROMETHEUS
    assert set() == {each.name for each in filters} - shown - ADDED_BY_PROMETHEUS


def labels_of(part):
    """Return the labels by which a part of a query groups or joins."""
    modifier = getattr(part, "modifier", None)
    matching = getattr(modifier, "matching", None)
    return [
        *getattr(modifier, "labels", []),
        *getattr(matching, "labels", []),
        *(getattr(modifier, "group_labels", None) or []),
    ]


@pytest.fixture(scope="module")
def page():
    """The page of a run that meets everything."""
    pytest.importorskip("prometheus_client")
    from chains import in_virtual_time  # noqa: PLC0415
    from monitored import scrape  # noqa: PLC0415

    return in_virtual_time(scrape())


@pytest.mark.parametrize("title", QUERIES)
def test_query_filters_by_values_that_there_are(title, page):
    """A state or a reason that was renamed would match nothing."""
    known = {each.value for each in RetryStopReason} | {"none", "cancelled", "error"}
    for shown in page.values():
        known |= {value for values in shown.labels.values() for value in values}
    texts = re.findall(r'=~?"([^"$]+)"', QUERIES[title])

    assert set() == {value for text in texts for value in text.split("|")} - known


def test_every_series_is_on_the_dashboard(page):
    """Of a histogram its buckets or its count; transitions are what states say."""
    queries = " ".join(QUERIES.values())
    names = {
        name.removesuffix("_sum") for name in page if not name.endswith("_created")
    }
    names = {re.sub("_(bucket|count)$", "", name) for name in names}

    assert set() == {name for name in names if name not in queries}


def test_renamed_series_is_noticed():
    """So is a label that a series does not have."""
    with pytest.raises(KeyError, match="tries"):
        select("tries")
    with pytest.raises(KeyError, match="retries has no label stop_reason"):
        select("retries", 'stop_reason!="none"')
    with pytest.raises(KeyError, match="retries has no label le"):
        sum_by("le, host", "retries")


def test_panels_have_places_and_names_of_their_own():
    """None covers another one, and none reaches over the edge."""
    panels = dashboard()["panels"]
    taken = [
        (column, line)
        for place in (panel["gridPos"] for panel in panels)
        for column in range(place["x"], place["x"] + place["w"])
        for line in range(place["y"], place["y"] + place["h"])
    ]

    assert len(taken) == len({*taken})
    assert WIDTH > max(column for column, _ in taken)
    assert len(panels) == len({panel["id"] for panel in panels})
    assert len(panels) == len({panel["title"] for panel in panels})


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_panel_has_what_grafana_needs(panel):
    """A source that is a variable, a title, a unit, and a legend for each query."""
    source = {"type": "prometheus", "uid": "${datasource}"}

    assert {"type", "title", "description", "fieldConfig", "options"} < {*panel}
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert [source] * (1 + len(panel["targets"])) == [
        panel["datasource"],
        *(target["datasource"] for target in panel["targets"]),
    ]
    assert all(target["expr"] and target["legendFormat"] for target in panel["targets"])
    assert len(panel["targets"]) == len({each["refId"] for each in panel["targets"]})


def test_dashboard_can_be_imported():
    """It has a name, a schema and its variables, which all queries know."""
    made = json.loads(json.dumps(dashboard()))
    variables = {each["name"]: each["type"] for each in made["templating"]["list"]}
    used = {*re.findall(r"\$\{?(\w+)", json.dumps(made["panels"]))}

    assert {"uid", "title", "schemaVersion", "time", "panels"} < {*made}
    assert {"datasource": "datasource", "job": "query", "host": "query"} == variables
    assert {*variables, "__rate_interval"} == used


def test_rules_have_what_prometheus_needs():
    """Six alerts, each with a query, a time, a severity and words."""
    yaml = pytest.importorskip("yaml")
    (group,) = yaml.safe_load(alerts())["groups"]

    assert [
        "RetryShareHigh",
        "BudgetEmpty",
        "BreakerOpenLong",
        "CallsStopAtDeadline",
        "LimitRefuses",
        "EndpointEjectedLong",
    ] == [rule["alert"] for rule in group["rules"]]
    for rule, made in zip(RULES, group["rules"], strict=True):
        assert f"{rule.query}\n" == made["expr"]
        assert re.fullmatch(r"\d+m", made["for"])
        assert {"severity": "warning"} == made["labels"]
        assert [rule.summary, rule.text] == [*made["annotations"].values()]


def test_prometheus_takes_the_rules(promtool, tmp_path):
    """By its own tool."""
    (tmp_path / "alerts.yml").write_text(alerts(), encoding="utf-8")
    process = promtool("check", "rules", "alerts.yml")

    assert 0 == process.returncode, process.stderr
    assert "6 rules found" in process.stdout


HOST = 'job="shop", host="a:443", method="GET"'
BREAKER = 'job="shop", instance="1", circuit_breaker="a:443"'
BUDGET = 'job="shop", instance="1", retry_budget="a:443"'
LIMIT = 'job="shop", instance="1", concurrency_limit="a:443"'
GROUP = 'job="shop", instance="1", group="orders"'
CASES = {
    # Series by name and labels: values by the minute in trouble, and when all is well.
    "RetryShareHigh": {
        f'attempts_total{{{HOST}, status_class="5xx"}}': ("0+60x60", "0+60x60"),
        f'retries_total{{{HOST}, status_class="5xx"}}': ("0+12x60", "0+3x60"),
    },
    "BudgetEmpty": {
        f"retry_budget_tokens{{{BUDGET}}}": ("0.5x60", "9x60"),
        f"retry_budget_refusals_total{{{BUDGET}}}": ("0+5x60", "5x60"),
    },
    "BreakerOpenLong": {
        # A trial each minute.
        f'circuit_breaker_state{{{BREAKER}, state="open"}}': (" 1 0" * 30, "1x60"),
        f'circuit_breaker_state{{{BREAKER}, state="half_open"}}': (" 0 1" * 30, "0x60"),
        f'circuit_breaker_state{{{BREAKER}, state="closed"}}': ("0x60", "0x60"),
        f'circuit_breaker_transitions_total{{{BREAKER}, state="open"}}': (
            "0+1x60",
            "4x60",
        ),
        f"circuit_breaker_rejections_total{{{BREAKER}}}": ("0x60", "7x60"),
    },
    "CallsStopAtDeadline": {
        f'call_duration_seconds_count{{{HOST}, stop_reason="deadline"}}': (
            "0+3x60",
            "0+0.2x60",
        ),
        f'call_duration_seconds_count{{{HOST}, stop_reason="none"}}': (
            "0+60x60",
            "0+60x60",
        ),
    },
    "LimitRefuses": {
        f"concurrency_limit_refusals_total{{{LIMIT}}}": ("0+1x60", "3x60")
    },
    "EndpointEjectedLong": {
        # It comes back for a moment, and is out again.
        f'endpoints{{{GROUP}, state="ejected"}}': (" 1 1 0" * 20, " 0 0 0 0 1" * 12),
        f'endpoints{{{GROUP}, state="unhealthy"}}': ("0x60", "0x60"),
        f'endpoints{{{GROUP}, state="ready"}}': ("2x60", "3x60"),
    },
}


@pytest.mark.parametrize("name", [rule.name for rule in RULES])
@pytest.mark.parametrize("is_trouble", [True, False], ids=["trouble", "well"])
def test_alert_fires_in_trouble_alone(name, is_trouble, promtool, tmp_path):
    """Half an hour of it is enough; small trouble is none, nor is what is long over."""
    series = [
        {
            "series": f"aioretry_smithy_{each}",
            "values": values[0 if is_trouble else 1].strip(),
        }
        for each, values in CASES[name].items()
    ]
    # What promtool lists is compared with words of ours, so it asks for the number.
    alert = f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)'
    expected = [{"labels": "{}", "value": int(is_trouble)}]
    asked = {"expr": alert, "eval_time": "40m", "exp_samples": expected}
    suite = {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": "1m",
        "tests": [
            {"interval": "1m", "input_series": series, "promql_expr_test": [asked]}
        ],
    }
    (tmp_path / "alerts.yml").write_text(alerts(), encoding="utf-8")
    # JSON is YAML, too.
    (tmp_path / "test.yml").write_text(json.dumps(suite), encoding="utf-8")
    process = promtool("test", "rules", "test.yml")

    assert 0 == process.returncode, process.stdout + process.stderr
