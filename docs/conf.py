"""How Sphinx builds these pages."""

import dataclasses
import re
from importlib.metadata import version as distribution_version
from pathlib import Path

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer

import aioretry_smithy

project = "aioretry_smithy"
PACKAGE = Path(aioretry_smithy.__file__).parent
author = "the aioretry_smithy authors"
project_copyright = author
version = release = distribution_version("aioretry-smithy")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinxext.opengraph",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = f"{project} {version}"
html_baseurl = ogp_site_url = "https://aioretry-smithy.readthedocs.io/en/latest/"
ogp_social_cards = {"enable": False}

# What is shown as output has no button, and prompts are not copied.
copybutton_selector = "div:not(.highlight-none, .highlight-text) > div.highlight > pre"
copybutton_prompt_text = r">>> |\.\.\. ?|\$ "
copybutton_prompt_is_regexp = True
copybutton_copy_empty_lines = False

autodoc_member_order = "bysource"
# A default is shown as the source has it, not as its repr.
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
# A longer signature has a line for each parameter.
maximum_signature_line_length = 88
napoleon_numpy_docstring = False

# The build needs no network: inventories/ has the names that these pages link to.
# Add a line there when a name is not found: the name, its kind, its page.
intersphinx_mapping = {
    name: (home, f"inventories/{name}.txt")
    for name, home in {
        "aiohttp": "https://docs.aiohttp.org/en/stable",
        "python": "https://docs.python.org/3",
        "yarl": "https://yarl.aio-libs.org/en/latest",
    }.items()
}
LINKED_AS = {
    "AbstractContextManager": "contextlib.AbstractContextManager",
    "ClientSession": "aiohttp.ClientSession",
    "URL": "yarl.URL",
    "aiohttp.client.ClientSession": "aiohttp.ClientSession",
    "aiohttp.client_reqrep.ClientResponse": "aiohttp.ClientResponse",
}
"""Where an annotation says it shorter, or more precisely, than the other pages."""

nitpicky = True
# These are no links.
OTHER_PROJECTS = "limits multidict opentelemetry prometheus_client".split()
# Annotations that only type checkers evaluate are written without their module,
# and names of type variables have no page.
OTHER_NAMES = (
    "Callable CollectorRegistry Mapping MeterProvider Storage StrOrURL "
    "TextMapPropagator TracerProvider"
).split()
# What signatures name and the text beside them explains.
OUR_NAMES = (
    "Actual AdaptiveSettings AnyFallback AnyJudge CircuitBreakerChanges DryRun "
    "RateGates "
    "Address Arguments By Chain CircuitBreakerFactory "
    "ChainMetrics CircuitBreakers ClientT Concurrency ConcurrencyLimitFactory "
    "ConcurrencyLimits Content ContentRuleConditions CoroutineFunction Cost "
    "DecoratingFunction Delays Enabled Exceptions Fallback Family Fetch FixedDelay "
    "FoundSource FurtherSettings GivenSource Group "
    "Key KeyFunction LogAfter LogLevel Logger LoggingSettings Mask OneForAll "
    "OwnHosts PerKey Rate RateLimitFactory RateLimits RecentTimes RedisClient "
    "Request Resolver RetryAnswer Traffic "
    "RetrySettings Retrying Roster RpcDecoratingFunction RpcDecorator RuleConditions "
    "Sampling Scheme ScriptedBody Service SessionArguments Settings SharedSettings "
    "StandardChanges StandardSettings StandardStrategySettings Strategy "
    "Telemetry TokenScope Tokens TrafficMetrics"
).split()
nitpick_ignore_regex = [
    (r"py:.*", rf"({'|'.join(OTHER_PROJECTS)})(\..*)?"),
    (r"py:.*", rf"({'|'.join(OTHER_NAMES)})(\[.*)?"),
    (r"py:.*", rf"({project}\.(_|smithy\.)[\w.]+\.)?({'|'.join(OUR_NAMES)})(\[.*)?"),
    (r"py:.*", r"(.*\.)?_[A-Z]\w*"),
]


def describe_attributes(facade, paths):
    """Find the words below an attribute, where the facade has moved its class."""
    shown = ModuleAnalyzer.for_module(facade)
    shown.analyze()
    for path in paths:
        source = ModuleAnalyzer.for_file(str(path), f"{facade}.{path.stem}")
        source.analyze()
        for name in "annotations", "attr_docs", "tagorder":
            getattr(shown, name).update(getattr(source, name))


def name_in_full(app, env, node, contnode):
    """Let intersphinx look for the name under which the other pages have it."""
    name = node["reftarget"]
    node["reftarget"] = LINKED_AS.get(name, name)


def show_signature(app, what, name, obj, options, signature, returns):
    """Show what a field's default is, a function by its name, and no private field."""
    if signature is None:
        return None
    # Two classes have this name; signatures of this module mean the plain one.
    if name.startswith(f"{project}.testing."):
        bare = r"(?<!\.)\bRetryStrategy\b"
        signature = re.sub(bare, f"{project}.RetryStrategy", signature)
    signature = re.sub(r", _\w+: [^=]+ = [^,)]+", "", signature)
    # What UNSET means is said beside the signatures that have it.
    signature = re.sub(r" \| [\w.~]*Literal\[[\w.~]*UNSET\]", "", signature)
    if dataclasses.is_dataclass(obj):
        for field in dataclasses.fields(obj):
            if field.default_factory is not dataclasses.MISSING:
                unknown = rf"(?<=\b{field.name}: )([^=]+) = <factory>"
                default = repr(field.default_factory())
                signature = re.sub(unknown, rf"\1 = {default}", signature)
    return re.sub(r"<function (\w+)>", r"\1", signature), returns


def describe_page(app, doctree):
    """Describe a page by its first paragraph, to search engines and to chats."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        app.env.metadata[app.env.docname]["og:description"] = text
        doctree.insert(0, nodes.meta(name="description", content=text))
        break


def trim_code(app, doctree):
    """Cut the blank lines at the end of code that a file has before what follows."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        if block.rawsource == block.astext() != text:
            block.rawsource = text
            block[:] = [nodes.Text(text)]


def mark_plots(app, doctree):
    """Mark what Matplotlib drew, on white: a page in the dark theme inverts it."""
    for image in doctree.findall(nodes.image):
        file = Path(app.srcdir, image["uri"])
        drawn = file.suffix == ".svg" and file.is_file()
        if drawn and "matplotlib.org" in file.read_text("utf-8"):
            image["classes"].append("plot")


def setup(app):
    """Prepare autodoc for names that are not where they are defined."""
    describe_attributes(project, [*PACKAGE.glob("_*.py"), *PACKAGE.glob("_*/*.py")])
    for part, *rooms in (("smithy", "_failures", "_retry"), ("testing",)):
        paths = [
            path for room in (part, *rooms) for path in PACKAGE.glob(f"{room}/*.py")
        ]
        describe_attributes(f"{project}.{part}", paths)

    app.connect("autodoc-process-signature", show_signature)
    app.connect("doctree-read", describe_page)
    app.connect("doctree-read", mark_plots)
    app.connect("doctree-read", trim_code)
    app.connect("missing-reference", name_in_full, priority=400)
