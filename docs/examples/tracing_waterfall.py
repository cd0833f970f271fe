import asyncio

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


async def main():
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


def draw(spans, width=46):
    spans = sorted(spans, key=lambda span: (span.start_time, -span.end_time))
    start, whole = spans[0].start_time, spans[0].end_time - spans[0].start_time

    def column(time):
        return round((time - start) / whole * width)

    for span in spans:
        bar = [" "] * width
        begin, end = column(span.start_time), column(span.end_time)
        bar[begin:end] = "#" * (end - begin)
        for event in span.events:
            if event.name == "aioretry_smithy.wait":
                waited = int(event.attributes["aioretry_smithy.delay"] * 1e9)
                begin, end = column(event.timestamp), column(event.timestamp + waited)
                bar[begin:end] = "." * (end - begin)
        seconds = (span.end_time - span.start_time) / 1e9
        print(f"{span.name:8} |{''.join(bar)}| {seconds:.3f} s")


asyncio.run(main())
spans = exporter.get_finished_spans()
draw(spans)
for span in spans:
    print()
    print(span.kind.name, span.name, span.status.status_code.name)
    for name, value in sorted(span.attributes.items()):
        print(f"    {name}: {value}")
    for event in span.events:
        told = (f"{name} = {value!r}" for name, value in event.attributes.items())
        print(f"    * {event.name}", *told, sep="\n          ")
