"""Lines that no LoggingClient wrote: any values in the fields of one."""

from __future__ import annotations

from hypothesis import strategies as st

START = "2026-11-26T12:00:00.250000+00:00"

KEYS = (
    "id name request_method request_url request_headers request_content_preview"
    " request_started_at request_length request_duration sent_method sent_url endpoint"
    " sent injected response_timeout response_status response_reason response_headers"
    " response_cause response_cause_type response_length response_content_preview"
    " duration total_duration is_complete is_success connection attempt is_hedge"
    " superseded total_attempts delay delay_source stop_reason retry_error children"
    " calls dropped_calls type v sampling_rate"
).split()

TEXTS = st.text(st.characters(codec=None)) | st.sampled_from(
    [
        START,
        "9999-12-31T23:59:59-01:00",
        "2249-12-31",
        "\x1b[2J",
        "<script>",
        "\u202e",
        "http://u:p@[h/?a=%ff&b",
        "GET",
    ]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -1, 200, 1e8, 0.5])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=5,
)


def _lines(inside: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    known = {"request_started_at": st.just(START) | VALUES}
    lists = dict.fromkeys(["children", "calls"], st.lists(inside, max_size=3) | VALUES)
    return st.fixed_dictionaries(
        {}, optional={**dict.fromkeys(KEYS, VALUES), **lists, **known}
    )


LINES = _lines(_lines(VALUES))
"""Three levels of them."""
