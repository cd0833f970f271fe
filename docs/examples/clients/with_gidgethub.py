from gidgethub.aiohttp import GitHubAPI

from aioretry_smithy import RetryingClient, RetryStrategy, SessionBuilder


async def stars_of(repository: str, base_url: str = "https://api.github.com") -> int:
    builder = SessionBuilder().decorator(
        RetryingClient.new_decorator(RetryStrategy.failsafe(), attempt_timeout=5.0)
    )
    async with builder.build() as session:
        github = GitHubAPI(session, "shop/1.0", base_url=base_url)
        found = await github.getitem(f"/repos/{repository}")
        return found["stargazers_count"]
