"""Smithy strategies whose attempts go to another server."""

from __future__ import annotations

import aiohttp
import pytest
from balanced import ROUND_ROBIN, Fleet, call, group_of, out
from chains import now, refused
from retrying_clients import Breakers, certificate, delays, logged

from aioretry_smithy import RetryingClient, smithy

RESTING = (503, {"Retry-After": "7"}, b"")


class TestSmithy:
    """Case 75: strategies of Smithy's."""

    @staticmethod
    def standard(**settings):
        return RetryingClient.new_decorator(smithy.StandardRetryStrategy(**settings))

    async def test_refused_connection_goes_elsewhere_at_once(self):
        """As with ours."""
        status, log, asked = await logged(
            Fleet(a=refused(), b=refused()),
            group_of("abc"),
            self.standard(max_attempts=3),
        )

        assert (200, "abc", 0.0) == (status, asked, now())
        assert ["next_endpoint"] * 2 == [source for _, source in delays(log)]

    async def test_error_of_a_503_has_no_retry_after(self):
        """While an untried one is well: the strategy would stop, or wait, for it."""
        group = group_of("ab")
        status, log, asked = await logged(Fleet(a=RESTING), group, self.standard())
        ((delay, source),) = delays(log)

        assert (200, "ab", "backoff") == (status, asked, source)
        assert delay <= 1.0
        assert {"a": "retry_after"} == out(group)

    @pytest.mark.usefixtures("draw")
    async def test_error_of_the_only_503_has_one(self):
        """Then the server is waited for."""
        _, log, _ = await logged(
            Fleet(a=[RESTING, 200]), group_of("a"), self.standard()
        )

        assert [(7.0, "retry_after")] == delays(log)

    async def test_429_is_the_services(self):
        """Case 67: its hint counts."""
        fleet = Fleet(a=[(429, {"Retry-After": "7"}, b"")])
        _, log, _ = await logged(fleet, group_of("ab"), self.standard())

        ((delay, source),) = delays(log)
        assert (delay >= 7.0, "retry_after") == (True, source)

    async def test_circuit_that_is_open_goes_elsewhere(self):
        """Case 103: whatever the strategy says."""
        _status, _log, asked = await logged(
            Fleet(), group_of("abcde"), Breakers(*"abcd").decorator, self.standard()
        )

        assert ("e", 0.0) == (asked, now())

    async def test_certificate_is_tried_elsewhere(self):
        """Case 25: likewise."""
        status, _, asked = await logged(
            Fleet(a=certificate()), group_of("ab"), self.standard()
        )

        assert (200, "ab") == (status, asked)

    async def test_certificate_does_not_use_up_the_token(self):
        """The strategy is not asked, since it would say no: another may fail too."""
        fleet = Fleet(**dict.fromkeys("abc", certificate()))
        error, log, asked = await logged(fleet, group_of("abc"), self.standard())

        assert (aiohttp.ClientConnectorCertificateError, "abc") == (type(error), asked)
        assert "no_retry" == log.stop_reason

    async def test_success_after_a_certificate_is_recorded(self, caplog):
        """With the token that the strategy has given."""
        await logged(Fleet(a=certificate()), group_of("ab"), self.standard())

        assert [] == caplog.messages

    async def test_scope_of_tokens_is_the_service(self):
        """Case 75: one quota for all endpoints."""
        scopes = []

        class Scoped(smithy.StandardRetryStrategy):
            async def acquire_initial_retry_token(self, *, token_scope=None):
                scopes.append(token_scope)
                return await super().acquire_initial_retry_token(
                    token_scope=token_scope
                )

        group = group_of("ab", name="orders", selection=ROUND_ROBIN)
        decorator = RetryingClient.new_decorator(Scoped())
        async with Fleet().session(group, decorator) as client:
            for _ in range(3):
                await call(client)

        assert {"orders"} == set(scopes)
