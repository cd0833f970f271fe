"""What the client that fetches tokens takes and refuses."""

from __future__ import annotations

import functools

import pytest
from chains import bad_argument, chain, decorated, session
from fetched_tokens import Tokens, refreshing_session, sent

from aioretry_smithy import RefreshingClient, SessionBuilder, rpc, unwrap
from aioretry_smithy.testing import ScriptedTransport


class TestSettings:
    """What can be chosen, and what is refused."""

    async def test_statuses_are_those_named(self):
        """One that is not is the caller's."""
        for status, asked in ((403, 2), (401, 1)):
            tokens = Tokens()
            answers = [200, status, 200]
            async with refreshing_session(
                tokens, answers=answers, own={"on": [403]}
            ) as opened:
                await opened.get("/")
                await opened.get("/")
            assert asked == tokens.asked

    async def test_scheme_may_be_another_or_none(self):
        """The word before the token."""
        for scheme, expected in (("Token", "Token token-1"), (None, "token-1")):
            transport = ScriptedTransport([200])
            own = {"scheme": scheme}
            async with refreshing_session(
                Tokens(), answers=transport, own=own
            ) as opened:
                await opened.get("/")
            assert [expected] == sent(transport)

    @pytest.mark.parametrize(
        "fetch", [None, "token", 7, lambda user: user, int.from_bytes]
    )
    def test_fetch_takes_no_arguments(self, fetch):
        """It is a function."""
        expected = "an async function without arguments"
        with pytest.raises(
            ValueError, match=rf"\Afetch: .* \(expected: {expected}\)\Z"
        ):
            RefreshingClient.new_decorator(fetch)

    @pytest.mark.parametrize(
        "settings",
        [
            {"fetch": "hunter2"},
            {"fetch": b"hunter2"},
            {"fetch": ("me", "hunter2")},
            {"fetch": Tokens().fetch, "scheme": "Bearer hunter2"},
        ],
    )
    def test_token_in_a_wrong_place_is_not_shown(self, settings):
        """Errors are logged, and a token is a secret wherever it is written."""
        with pytest.raises(ValueError, match=r"^(fetch|scheme): <") as caught:
            RefreshingClient.new_decorator(**settings)

        assert "hunter2" not in str(caught.value)

    def test_fetch_is_not_called_yet(self):
        """A coroutine runs once; it is closed, so nobody warns of it."""
        with pytest.raises(ValueError, match=r"\Afetch: "):
            RefreshingClient.new_decorator(Tokens().fetch())

    def test_fetch_that_does_not_tell_its_arguments_is_taken(self):
        """Some that are written in C."""
        assert RefreshingClient.new_decorator(dict)

    @pytest.mark.parametrize("header", ["", "X Key", "X\r\nY", None])
    def test_header_is_the_name_of_one(self, header):
        """No blank and no line end."""
        with bad_argument("header", header, "a header name"):
            Tokens().decorator(header=header)

    @pytest.mark.parametrize("scheme", ["", "Bearer ", "Be\narer", 7])
    def test_scheme_is_a_word(self, scheme):
        """The blank after it is ours."""
        with bad_argument("scheme", scheme, "a word such as 'Bearer', or None"):
            Tokens().decorator(scheme=scheme)

    @pytest.mark.parametrize("on", [401, "401", [200], [600], [None]])
    def test_statuses_are_those_of_failures(self, on):
        """A success refuses no token."""
        with bad_argument("on", on, "a collection of integers in [400, 599]"):
            Tokens().decorator(on=on)

    def test_one_status_is_needed(self):
        """Or no token would ever be refreshed."""
        with bad_argument("on", [], "at least one status"):
            Tokens().decorator(on=[])

    async def test_without_an_origin_hosts_are_needed(self):
        """Or nobody would know who is a stranger."""
        expected = (
            "the hosts that RefreshingClient acts on, since the session has neither"
            " base_url nor a group"
        )
        with bad_argument("hosts", None, expected):
            decorated(SessionBuilder(), Tokens().decorator()).build()

    def test_functions_are_refused(self):
        """They have no headers."""

        async def function():
            """Do nothing."""

        with bad_argument("decorator", "RefreshingClient", "a decorator for functions"):
            rpc(Tokens().decorator())(function)

    async def test_it_is_found_and_described(self):
        """With its settings; no token is shown."""
        tokens = Tokens()
        async with session([], tokens.decorator(hosts=["a.example"])) as opened:
            found = unwrap(opened, RefreshingClient)
        text = (
            "RefreshingClient(fetch=Tokens.fetch, on=[401], header='Authorization',"
            " scheme='Bearer', hosts=('a.example',))"
        )

        assert text == found.describe()
        assert "scheme='Bearer')" in chain([], tokens.decorator()).describe()

    def test_arguments_of_a_partial_are_not_shown(self):
        """They may be the password that the fetch needs."""
        fetch = functools.partial(Tokens.fetch, "S3CRET")
        row = RefreshingClient.new_decorator(fetch)

        assert "fetch=partial," in chain([], row).describe()
