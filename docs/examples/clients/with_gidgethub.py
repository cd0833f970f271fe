from gidgethub.aiohttp import GitHubAPI

from aioretry_smithy import RetryingClient, RetryStrategy, SessionBuilder


async def stars_of(repository, base_url="https://api.github.com"):
    builder = SessionBuilder().decorator(
        RetryingClient.new_decorator(RetryStrategy.failsafe(), attempt_timeout=5.0)
    )
    async with builder.build() as session:
        github = GitHubAPI(session, "shop/1.0", base_url=base_url)
        found = await github.getitem(f"/repos/{repository}")
        return found["stargazers_count"]
