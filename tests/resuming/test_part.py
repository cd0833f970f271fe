"""The version of a body: what tells it from others, and which parts are of it."""

from types import SimpleNamespace

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from aioretry_smithy._resuming.part import Mismatch, Version

TAG = '"v1"'
CHANGED = "Sun, 06 Nov 1994 08:49:37 GMT"


def answer(status=200, /, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(status=status, headers=CIMultiDictProxy(CIMultiDict(named)))


def version(**headers):
    return Version.of(answer(**headers), 0.0)


def part(span, **headers):
    return answer(206, Content_Range=span, **headers)


class TestValidator:
    """What a part is asked for by."""

    @pytest.mark.parametrize("tag", [TAG, '""', '"a-b/c"', '"é"'])
    def test_a_strong_tag_is_one(self, tag):
        """Whatever the server puts into it."""
        assert tag == version(ETag=tag).validator

    @pytest.mark.parametrize("tag", ['W/"v1"', "v1", '"a"b"', '"a b"', ""])
    def test_a_weak_or_malformed_one_is_none(self, tag):
        """It could not be sent back, or says too little."""
        assert version(ETag=tag) is None

    @pytest.mark.parametrize(
        ("date", "validator"),
        [
            ("Sun, 06 Nov 1994 08:50:37 GMT", CHANGED),
            ("Sun, 06 Nov 1994 08:50:36 GMT", None),
            ("yesterday", None),
        ],
    )
    @pytest.mark.parametrize("tags", [{}, {"ETag": 'W/"v1"'}])
    def test_a_time_is_one_a_minute_later(self, date, validator, tags):
        """Also beside a weak tag."""
        known = version(Last_Modified=CHANGED, Date=date, **tags)

        assert validator == (known and known.validator)

    def test_a_strong_tag_goes_before_a_time(self):
        """Which is then not needed."""
        date = "Sun, 06 Nov 1994 08:50:37 GMT"

        assert TAG == version(ETag=TAG, Last_Modified=CHANGED, Date=date).validator


class TestTotal:
    """The length of the whole."""

    @pytest.mark.parametrize(
        ("headers", "total"),
        [
            ({"Content_Length": "100"}, 100),
            ({}, None),
            ({"Content_Length": "+1"}, None),
            ({"Content_Length": "100", "Transfer_Encoding": "chunked"}, None),
        ],
    )
    def test_it_is_that_of_the_first_answer(self, headers, total):
        """Where that has one."""
        assert total == version(ETag=TAG, **headers).total

    def test_a_part_may_tell_it(self):
        """Then later ones have to agree."""
        known = version(ETag=TAG)

        assert 20 == known.check(part("bytes 10-19/*", ETag=TAG), 10)
        assert known.total is None
        assert 20 == known.check(part("Bytes 10-19/100", ETag=TAG), 10)
        assert 100 == known.total
        with pytest.raises(Mismatch, match="another length by now"):
            known.check(part("bytes 20-29/101", ETag=TAG), 20)

    def test_the_end_may_tell_it(self):
        """By a 416."""
        known = version(ETag=TAG)

        assert known.check(answer(416, Content_Range="bytes */10"), 10) is None
        assert 10 == known.total
        assert version(ETag=TAG).check(answer(416), 10) is None
        with pytest.raises(Mismatch, match="it is not the end"):
            version(ETag=TAG).check(answer(416, Content_Range="bytes */10"), 9)


class TestParts:
    """What later answers have in common with the first."""

    def test_what_a_later_part_tells_is_known_from_then_on(self):
        """A tag that the first answer did not have."""
        date = "Sun, 06 Nov 1994 08:50:37 GMT"
        known = version(Last_Modified=CHANGED, Date=date)

        assert 20 == known.check(part("bytes 10-19/*", ETag=TAG), 10)
        with pytest.raises(Mismatch, match="another version by now \\(ETag\\)"):
            known.check(part("bytes 20-29/*", ETag='"v2"'), 20)

    def test_another_weak_tag_is_that_of_another_version(self):
        """Even where the time is the validator."""
        date = "Sun, 06 Nov 1994 08:50:37 GMT"
        known = version(ETag='W/"v1"', Last_Modified=CHANGED, Date=date)

        assert 20 == known.check(part("bytes 10-19/*"), 10)
        with pytest.raises(Mismatch, match="another version"):
            known.check(part("bytes 20-29/*", ETag='W/"v2"'), 20)

    @pytest.mark.parametrize(
        ("words", "status", "headers"),
        [
            ("another version by now, or sends no parts (200)", 200, {}),
            ("the server answers with 404", 404, {}),
            ("another version by now (ETag)", 206, {"ETag": '"v2"'}),
            ("another version by now (ETag)", 206, {"ETag": 'W/"v1"'}),
            ("the part has no ETag", 206, {"ETag": None}),
            ("another version by now (Content-Type)", 206, {"Content_Type": "a/b"}),
            ("the part is encoded", 206, {"Content_Encoding": "br2"}),
            ("does not say its range", 206, {"Content_Range": None}),
            ("does not say its range", 206, {"Content_Range": "lines 10-19/100"}),
            ("does not say its range", 206, {"Content_Range": "bytes 10-\u0661/*"}),
            ("does not say its range", 206, {"Content_Range": f"bytes 10-{10**18}/*"}),
            ("of another range", 206, {"Content_Range": "bytes 9-99/100"}),
            ("of another range", 206, {"Content_Range": "bytes 11-99/100"}),
            ("of another range", 206, {"Content_Range": "bytes 10-9/100"}),
            ("another length than its range", 206, {"Content_Length": "89"}),
            ("a body of another length", 206, {"Content_Range": "bytes 10-99/101"}),
            ("beyond the end", 206, {"Content_Range": "bytes 10-100/*"}),
            ("it is not the end (416)", 416, {"Content_Range": "bytes */100"}),
            ("a body of another length", 416, {"Content_Range": "bytes */10"}),
            ("another version by now (ETag)", 416, {"ETag": '"v2"'}),
            ("no telling whether it was the", 416, {"Content_Range": "bytes */many"}),
        ],
    )
    def test_what_contradicts_the_first_answer_is_refused(self, words, status, headers):
        """In words that say what it was."""
        known = version(ETag=TAG, Content_Length="100", Content_Type="text/plain")
        said = {"ETag": TAG, "Content_Range": "bytes 10-99/100", **headers}
        told = {name: value for name, value in said.items() if value is not None}
        with pytest.raises(Mismatch) as caught:
            known.check(answer(status, **told), 10)

        assert words in str(caught.value)

    def test_a_part_has_one_range(self):
        """And one tag: two headers say two things."""
        ranges = CIMultiDict([("Content-Range", "bytes 10-19/*")] * 2, ETag=TAG)
        tags = CIMultiDict([("ETag", TAG), ("ETag", '"v2"')])
        for headers, words in (
            (ranges, "does not say its range"),
            (tags, "has several values of ETag"),
        ):
            with pytest.raises(Mismatch, match=words):
                version(ETag=TAG).check(
                    SimpleNamespace(status=206, headers=headers), 10
                )
