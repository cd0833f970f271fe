"""Write the dashboard and the alert rules of the documents.

Run it where a series or a panel has changed:

    python tests/tools/monitoring/make_monitoring.py
"""

import json
from pathlib import Path

from alerts import alerts
from dashboard import dashboard

FOLDER = Path(__file__).parents[3] / "docs" / "howto"


def files():
    """Return what belongs in each file."""
    return {
        FOLDER / "dashboard.json": json.dumps(dashboard(), indent=2) + "\n",
        FOLDER / "alerts.yml": alerts(),
    }


if __name__ == "__main__":
    for file, text in files().items():
        file.write_text(text, encoding="utf-8")
