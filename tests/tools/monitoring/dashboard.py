"""Make the dashboard that Grafana imports of the panels."""

from typing import TYPE_CHECKING

from panels import ROWS
from promql import select

if TYPE_CHECKING:
    pass

HEIGHT = 8
WIDTH = 24
"""Of Grafana's grid."""

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard():
    """Return the whole of it, ready for JSON."""
    return {
        "uid": "aioretry-smithy",
        "title": "aioretry_smithy",
        "description": "Calls, attempts, retries and what limits them.",
        "tags": ["aioretry_smithy", "http"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [*_variables()]},
        "panels": [*_placed()],
    }


def _variables():
    yield {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
    }
    attempts = select("attempts")
    of_job = select("attempts", 'job=~"$job"')
    for name, label, series in ("job", "Job", attempts), ("host", "Host", of_job):
        query = f"label_values({series}, {name})"
        yield {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": query, "refId": f"variable-{name}"},
            "definition": query,
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"], "selected": True},
            "hide": 0,
        }


def _placed():
    number, top = 1, 0
    for row in ROWS:
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": place,
            "panels": [],
        }
        number, top, left = number + 1, top + 1, 0
        for panel in row.panels:
            place = {"x": left, "y": top, "w": panel.width, "h": HEIGHT}
            yield {"id": number, "gridPos": place, **_drawn(panel)}
            number, left = number + 1, left + panel.width
            if left == WIDTH:
                left, top = 0, top + HEIGHT


def _drawn(panel):
    stacking = {"mode": "normal" if panel.is_stacked else "none", "group": "A"}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {
                    "drawStyle": "line",
                    "fillOpacity": 30 if panel.is_stacked else 0,
                    "lineWidth": 1,
                    "showPoints": "never",
                    "stacking": stacking,
                },
            },
            "overrides": [],
        },
        "options": {
            "legend": {
                "displayMode": "table",
                "placement": "right",
                "showLegend": True,
                "calcs": ["mean", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": SOURCE,
                "editorMode": "code",
                "expr": query,
                "legendFormat": legend,
                "range": True,
            }
            for place, (legend, query) in enumerate(panel.targets.items())
        ],
    }
