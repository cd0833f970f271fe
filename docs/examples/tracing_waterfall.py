import asyncio
import sys
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aioretry_smithy import Backoff, RetryingClient, RetryStrategy, SessionBuilder
from aioretry_smithy.opentelemetry import TracingClient
from aioretry_smithy.testing import ScriptedTransport

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
tracing = TracingClient.new_decorator(provider)


def after(seconds, status):
    async def answer(ctx, request):
        await asyncio.sleep(seconds)
        return status

    return answer


async def main() -> None:
    strategy = RetryStrategy.failsafe(Backoff.exponential(0.25, multiplier=2.0))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport([after(0.1, 503), after(9, 200), after(0.4, 200)]))
        .decorator(tracing)  # inside: one CLIENT span per attempt
        .decorator(RetryingClient.new_decorator(strategy, attempt_timeout=1.0))
        .decorator(tracing)  # outside: one INTERNAL span per call
    )
    async with builder.build() as session, session.get("/orders?token=secret"):
        pass


def named(spans):
    """Yield the spans of a call from the outside in, with a label each."""
    spans = sorted(spans, key=lambda span: (span.start_time, -span.end_time))
    for span in spans:
        facts = span.attributes
        label = span.name if span.parent is None else f"  {span.name}"
        error = facts.get("error.type", "").rpartition(".")[2]
        outcome = error or facts.get("http.response.status_code", "")
        resend = facts.get("http.request.resend_count")
        label += f" {outcome}" + (f", resend {resend}" if resend else "")
        yield label, span


def waits(span):
    for event in span.events:
        if event.name == "aioretry_smithy.wait":
            waited = int(event.attributes["aioretry_smithy.delay"] * 1e9)
            yield event.timestamp, event.timestamp + waited


def draw(spans, width=40):
    start, end = spans[-1].start_time, spans[-1].end_time

    def fill(bar, begin, end_of_it, sign):
        scale = width / (end - start)
        begin, stop = round((begin - start) * scale), round((end_of_it - start) * scale)
        bar[begin:stop] = sign * (stop - begin)

    for label, span in named(spans):
        bar = [" "] * width
        fill(bar, span.start_time, span.end_time, "#")
        for begin, end_of_it in waits(span):
            fill(bar, begin, end_of_it, ".")
        seconds = (span.end_time - span.start_time) / 1e9
        print(f"{label:35} |{''.join(bar)}| {seconds:.3f} s")


def plot(spans, file):
    from matplotlib import pyplot as plt  # noqa: PLC0415

    plt.style.use(Path(__file__).with_name("pictures.mplstyle"))
    start = spans[-1].start_time
    figure, axes = plt.subplots(figsize=(7.6, 2.1), layout="constrained")
    colours = {"INTERNAL": "#a0a8b1", "ERROR": "C1", "UNSET": "C3"}
    names = []
    for row, (label, span) in enumerate(named(spans)):
        kind = "INTERNAL" if span.parent is None else span.status.status_code.name
        begin, length = span.start_time - start, span.end_time - span.start_time
        axes.barh(row, length / 1e9, left=begin / 1e9, color=colours[kind], height=0.55)
        for wait_begin, wait_end in waits(span):
            left, width = (wait_begin - start) / 1e9, (wait_end - wait_begin) / 1e9
            axes.barh(row, width, left=left, color="#eaeef2", height=0.55)
        names.append(f"{label.strip()}: {length / 1e9:.3f} s")
    axes.invert_yaxis()
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelcolor="C5")
    axes.set_xlabel("seconds; light: waits")
    axes.spines.left.set_visible(False)
    axes.grid(axis="y", visible=False)
    figure.savefig(file, metadata={"Date": None})


asyncio.run(main())
spans = exporter.get_finished_spans()
draw(spans)
if sys.argv[1:2] == ["--plot"]:
    plot(spans, sys.argv[2])
for span in spans:
    print()
    print(span.kind.name, span.name, span.status.status_code.name)
    for name, value in sorted((span.attributes or {}).items()):
        print(f"    {name}:", value)
    for event in span.events:
        attributes = event.attributes or {}
        facts = (f"{name} = {value!r}" for name, value in attributes.items())
        print(f"    * {event.name}", *facts, sep="\n          ")
