from slack_sdk.web.async_client import AsyncWebClient

from aioretry_smithy import (
    Backoff,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)


class WhatSlackAllows(RetryStrategy):
    """Send again what was throttled, by any method, and what changes nothing."""

    backoff = Backoff.of_default()
    careful = RetryStrategy.failsafe(backoff)

    def should_retry(self, ctx, cause):
        if ctx.log.response_status == 429:
            return self.backoff
        return self.careful.should_retry(ctx, cause)


async def announce(text, token, base_url=AsyncWebClient.BASE_URL):
    builder = SessionBuilder().decorator(
        RetryingClient.new_decorator(WhatSlackAllows(), attempt_timeout=10.0)
    )
    async with builder.build() as session:
        # Without handlers of its own it leaves all attempts to the session.
        slack = AsyncWebClient(
            token, base_url=base_url, session=session, retry_handlers=[]
        )
        found = await slack.conversations_list()
        for channel in found["channels"]:
            await slack.chat_postMessage(channel=channel["id"], text=text)
        return len(found["channels"])
