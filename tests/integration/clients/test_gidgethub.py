"""gidgethub takes a session."""

import pytest

pytest.importorskip("gidgethub")


async def test_question_to_github_is_asked_again(example, flaky, start, attempts):
    """The library sees one answer, the server two requests."""
    flaky.answers["/repos/shop/orders"] = {"stargazers_count": 7}
    base_url = await start(flaky)

    stars = await example("with_gidgethub").stars_of("shop/orders", base_url)

    assert 7 == stars
    assert [("GET", "/repos/shop/orders", b"")] * 2 == flaky.requests
    assert [2] == attempts()
