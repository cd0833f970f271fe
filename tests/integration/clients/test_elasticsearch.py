"""elasticsearch builds a session for each node, at its first request."""

import pytest

pytest.importorskip("elasticsearch")


async def test_document_is_asked_for_again(example, flaky, start, attempts):
    """The library sees one answer, the server two requests, and no one else any."""
    flaky.answers["/orders/_doc/1"] = {"_id": "1", "_source": {"total": 9}}
    flaky.headers["X-Elastic-Product"] = "Elasticsearch"
    url = await start(flaky)

    order = await example("with_elasticsearch").find_order(url, "1")

    assert {"total": 9} == order
    assert [("GET", "/orders/_doc/1", b"")] * 2 == flaky.requests
    assert [2] == attempts()
