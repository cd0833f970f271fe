"""How Sphinx builds these pages."""

import builtins
from importlib.metadata import version as distribution_version

project = "aioretry_smithy"
author = "the aioretry_smithy authors"
project_copyright = author
version = release = distribution_version("aioretry-smithy")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"{project} {version}"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_numpy_docstring = False

# The build needs no network, so names of other projects are no links.
nitpicky = True
OTHER_PROJECTS = (
    "aiohttp asyncio collections concurrent contextlib dataclasses datetime enum "
    "logging multidict random time types typing yarl"
).split()
# Annotations that only type checkers evaluate are written without their module,
# and names of type variables are nobody's page.
OTHER_NAMES = (
    "Any AsyncIterator Awaitable Callable CIMultiDict CIMultiDictProxy ClientSession "
    "Coroutine Executor Iterable Iterator LooseHeaders Mapping Sequence StrOrURL URL"
).split()
# What signatures name and the text beside them explains.
OUR_NAMES = (
    "CircuitBreakerFactory CircuitBreakers DecoratingFunction Fallback Logger "
    "LoggingSettings Mask RetrySettings"
).split()
nitpick_ignore_regex = [
    (r"py:.*", rf"({'|'.join(OTHER_PROJECTS)})(\..*)?"),
    (r"py:.*", rf"({'|'.join([*OTHER_NAMES, *OUR_NAMES, *dir(builtins)])})(\[.*)?"),
    (r"py:.*", r"(.*\.)?_[A-Z]\w*"),
]
