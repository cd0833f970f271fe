"""Endpoints in all views of a call.

Of the cases of endpoints.md (f): 128 to 132, 136, 137.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging

import pytest
from balanced import Fleet, call, group_of
from chains import SAFELY, after, refused, retrying, retrying_session, silence

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    HedgingClient,
    LogFormatter,
    LoggingClient,
    RequestLog,
    capture_logs,
)
from aioretry_smithy._endpoints.roster import why_out


@pytest.fixture
def group():
    """Three servers whose names are of different lengths."""
    return EndpointGroup.of(
        "http://a.example",
        Endpoint("http://bücher.example:8080/v1"),
        Endpoint("http://c.example", address="10.0.0.3"),
        selection=group_of()._selection,
        name="orders",
    )


@pytest.fixture
def fleet():
    """One refuses, one fails, one answers."""
    return Fleet(a=refused(), **{"xn--bcher-kva": after(0.25, 503)}, c=after(0.5, 200))


@pytest.fixture
async def log(group, fleet):
    """The log of a call that visits all three."""
    async with fleet.session(group, retrying(SAFELY, max_total_attempts=3)) as client:
        _, log = await call(client)
    return log


@pytest.fixture
def rich_shown():
    """What rich shows, without colours."""
    console = pytest.importorskip("rich.console", reason="needs the extra cli")

    def show(log, width=160):
        made = console.Console(file=io.StringIO(), width=width, _environ={})
        made.print(log)
        return made.file.getvalue()

    return show


class TestTree:
    """The tree of a call."""

    async def test_names_the_endpoint_of_each_attempt(self, log):
        """Cases 128 and 130: in a column of its own, whatever the lengths."""
        first, *rest = log.render().splitlines()
        columns = [line[3:] for line in rest]

        assert (
            "GET http://a.example/orders  ->  200 OK  in 0.750 s, 3 attempts" == first
        )
        assert [
            "1  a.example                      ClientConn",
            "2  xn--bcher-kva.example:8080/v1  503 Servic",
            "3  10.0.0.3:80                    200 OK    ",
        ] == [column[:44] for column in columns]
        assert 1 == len(
            {line.index(" s ") if " s " in line else line.rindex(" s") for line in rest}
        )

    async def test_root_of_one_attempt_names_its_own(self):
        """Case 129: where there are no lines for attempts."""
        async with Fleet().session(group_of("ab")) as client:
            _, log = await call(client)

        assert "GET http://a.example/orders  ->  200 OK  in 0.000 s, at a.example" == (
            log.render()
        )

    async def test_mixed_with_none(self):
        """Case 130: one that found no endpoint leaves its column empty."""
        group = DynamicEndpointGroup(selection_timeout=0.5, name="orders")
        async with Fleet().session(
            group, retrying(SAFELY, max_total_attempts=3)
        ) as client:
            task = asyncio.create_task(call(client))
            await asyncio.sleep(0.75)
            group.set_endpoints(["http://a.example"])
            _, log = await task

        _, first, second = log.render().splitlines()
        assert first.startswith("├─ 1             EndpointSelectionTimeoutError: ")
        assert second.startswith("└─ 2  a.example  200 OK")

    async def test_error_of_an_empty_group_lists_each_and_why(self):
        """Case 131: those that are out, and until when."""
        group = EndpointGroup.of(
            Endpoint("http://a.example", weight=0), "http://b.example", name="orders"
        )
        async with Fleet(b=refused()).session(group) as client:
            await call(client)
        assert {"a.example": "weight 0", "b.example": "well"} == (
            why_out(next(iter(group.states.values())).rosters)
        )
        two = group_of("ab")
        async with Fleet(a=refused()).session(two) as client:
            await call(client)
            why = why_out(next(iter(two.states.values())).rosters)

        assert why["a.example"].startswith("out for ")
        assert why["a.example"].endswith(" s: connect_failures")
        assert "well" == why["b.example"]

    async def test_what_is_out_shows_its_reason(self):
        """In the text of its state."""
        group = group_of("ab")
        async with Fleet(a=refused()).session(group) as client:
            await call(client)

        assert ["<EndpointState a.example in_flight=0 out: connect_failures>"] == [
            repr(each) for each in group.states.values() if each.reason
        ]


class TestValues:
    """Facts, as programs read them."""

    async def test_log_has_the_text_of_its_endpoint(self, log):
        """Cases 128 and 129: each attempt its own, the root that of the answer."""
        expected = ["a.example", "xn--bcher-kva.example:8080/v1", "10.0.0.3:80"]

        assert expected == [each.endpoint for each in log.children]
        assert "10.0.0.3:80" == log.endpoint

    async def test_root_of_a_failure_has_that_of_the_last_attempt(self):
        """Case 129: which the caller gets."""
        fleet = Fleet(a=503, b=refused())
        client = fleet.session(group_of("ab"), retrying(SAFELY, max_total_attempts=2))
        async with client:
            _, log = await call(client)

        assert "b.example" == log.endpoint

    async def test_root_of_a_race_has_that_of_the_winner(self):
        """Case 129: it need not be the last one."""
        fleet = Fleet(a=after(1.5, 200), b=silence)
        hedging = HedgingClient.new_decorator(1.0, max_hedges=1)
        async with fleet.session(group_of("ab"), hedging) as client:
            _, log = await call(client)

        assert "a.example" == log.endpoint

    async def test_log_under_way_has_it(self):
        """Case 128: from the choice on."""
        seen = []

        def look(ctx, request):
            seen.append((ctx.log.endpoint, ctx.root.log.endpoint))
            return 200

        async with Fleet(a=look).session(group_of("a"), retrying(SAFELY)) as client:
            await call(client)

        assert [("a.example", "a.example")] == seen

    async def test_to_dict(self, log):
        """Case 128: a key of its own, for all."""
        values = log.to_dict()

        assert "10.0.0.3:80" == values["endpoint"]
        assert ["a.example", "xn--bcher-kva.example:8080/v1", "10.0.0.3:80"] == [
            each["endpoint"] for each in values["children"]
        ]
        assert json.loads(json.dumps(values)) == values

    async def test_captured_logs(self, group, fleet):
        """Case 136: capture_logs() brings it."""
        with capture_logs() as logs:
            async with fleet.session(group, retrying(SAFELY)) as client:
                await call(client)

        assert ["10.0.0.3:80"] == [each.endpoint for each in logs]


class TestPictures:
    """The call in time."""

    async def test_svg(self, log, tmp_path):
        """Case 128: by day and by night."""
        log.to_svg(tmp_path / "call.svg")
        drawn = (tmp_path / "call.svg").read_text(encoding="utf-8")

        for name in ("a.example", "xn--bcher-kva.example:8080/v1", "10.0.0.3:80"):
            assert name in drawn

    async def test_rich(self, log, rich_shown):
        """Case 128: in the same columns."""
        shown = rich_shown(log)

        for name in (
            "1  a.example  ",
            "2  xn--bcher-kva.example:8080/v1  ",
            "3  10.0.0.3:80  ",
        ):
            assert name in shown

    async def test_rich_of_one_attempt(self, rich_shown):
        """Case 129: in its headline."""
        async with Fleet().session(group_of("a")) as client:
            _, log = await call(client)

        assert "at a.example" in rich_shown(log)


class TestNotes:
    """What an exception says."""

    async def test_name_the_endpoints(self):
        """Case 132: of each attempt."""
        fleet = Fleet(a=503, b=refused())
        client = fleet.session(group_of("ab"), retrying(SAFELY, max_total_attempts=2))
        async with client:
            error, _ = await call(client)

        first, second = error.__notes__
        assert first.startswith("attempt 1 at a.example: 503 Service Unavailable, ")
        assert second.startswith("attempt 2 at b.example: ClientConnectorError: ")


class TestLines:
    """Lines of a logging client."""

    @staticmethod
    async def lines(caplog, formatter, fleet, group, *, inside=False, attempts=3):
        logging_ = LoggingClient.new_decorator(
            formatter=formatter,
            request_log_level=logging.INFO,
            successful_response_log_level=logging.INFO,
        )
        retry = retrying(SAFELY, max_total_attempts=attempts)
        decorators = (logging_, retry) if inside else (retry, logging_)
        with caplog.at_level(logging.INFO, "aioretry_smithy"):
            async with fleet.session(group, *decorators) as client:
                await call(client)
        return [each.getMessage() for each in caplog.records]

    async def test_text_of_a_call(self, caplog, group, fleet):
        """Case 128: where the answer came from."""
        request, response = await self.lines(caplog, LogFormatter.text(), fleet, group)

        assert "endpoint=" not in request
        assert ", endpoint=10.0.0.3:80, " in response

    async def test_text_of_each_attempt(self, caplog, group, fleet):
        """Case 128: where it went."""
        lines = await self.lines(caplog, LogFormatter.text(), fleet, group, inside=True)

        assert [
            ", endpoint=a.example}",
            ", endpoint=xn--bcher-kva.example:8080/v1}",
            ", endpoint=10.0.0.3:80}",
        ] == [line[line.index(", endpoint=") :] for line in lines[::2]]

    async def test_json_of_a_call(self, caplog, group, fleet):
        """Case 128: a key."""
        lines = await self.lines(caplog, LogFormatter.json(), fleet, group)

        assert "10.0.0.3:80" in [json.loads(line).get("endpoint") for line in lines]

    async def test_nested_json(self, caplog, group, fleet):
        """Case 128: of each attempt."""
        (line,) = await self.lines(caplog, LogFormatter.json(nested=True), fleet, group)
        values = json.loads(line)

        assert "10.0.0.3:80" == values["endpoint"]
        assert "a.example" == values["children"][0]["endpoint"]


class TestOldChains:
    """Chains without a group."""

    async def test_output_is_unchanged(self, rich_shown, tmp_path):
        """Case 137: byte for byte, but for a key of programs."""
        client = retrying_session([503, refused(), 200], SAFELY, max_total_attempts=3)
        async with client, client.get("http://example.com/") as response:
            log = RequestLog.of(response)

        log.to_svg(tmp_path / "call.svg")
        drawn = (tmp_path / "call.svg").read_text(encoding="utf-8")
        first, *lines = log.render().splitlines()
        assert "GET http://example.com/  ->  200 OK  in 0.000 s, 3 attempts" == first
        assert ["├─ 1  503 Service", "├─ 2  ClientConne", "└─ 3  200 OK     "] == [
            line[:17] for line in lines
        ]
        views = log.render(), rich_shown(log), drawn
        assert not any("endpoint" in view for view in views)
        assert [None] * 4 == [each.endpoint for each in (log, *log.children)]

    @pytest.mark.parametrize("formatter", [LogFormatter.text(), LogFormatter.json()])
    async def test_lines_are_unchanged(self, caplog, formatter):
        """Case 137: no empty field in text."""
        logging_ = LoggingClient.new_decorator(
            formatter=formatter,
            request_log_level=logging.INFO,
            successful_response_log_level=logging.INFO,
        )
        with caplog.at_level(logging.INFO, "aioretry_smithy"):
            client = retrying_session(
                [503, 200], SAFELY, logging_, max_total_attempts=2
            )
            async with client:
                await call(client, "http://example.com/")

        for record in caplog.records:
            if repr(formatter) == "LogFormatter.text()":
                assert "endpoint" not in record.getMessage()
            else:
                assert json.loads(record.getMessage()).get("endpoint") is None
