"""Decorate the sessions of the scripts that a test of aiohttp starts, too."""

import sys
from pathlib import Path

if "isolated" in Path(sys.orig_argv[-1]).parts:
    # pytest itself imports the plugin later, and in its own way.
    import chain_plugin

    chain_plugin.pytest_configure()
