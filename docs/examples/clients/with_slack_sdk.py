from slack_sdk.web.async_client import AsyncWebClient

from aioretry_smithy import RetryingClient, RetryRule, RetryStrategy, SessionBuilder

# Retries any method after a 429; after other failures, what may be sent twice.
STRATEGY = RetryRule(statuses=[429]) | RetryStrategy.failsafe()


async def announce(
    text: str, token: str, base_url: str = AsyncWebClient.BASE_URL
) -> int:
    builder = SessionBuilder().decorator(
        RetryingClient.new_decorator(STRATEGY, attempt_timeout=10.0)
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
