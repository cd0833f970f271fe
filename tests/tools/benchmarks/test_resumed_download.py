"""A download that breaks often costs no more than one that does not break."""

import pytest
from resumed_download import MB, download


async def test_a_download_that_breaks_comes_whole_with_each_byte_once():
    """In little memory, however large it is."""
    result = await download(60 * MB, 3 * MB)

    assert result.is_same
    assert (60 * MB, 20, 20) == (result.sent, result.parts, result.parts_in_log)
    assert result.peak < 6 * MB


@pytest.mark.slow
async def test_the_log_of_many_parts_is_bounded():
    """And so are the notes and the time that many parts take."""
    few = await download(4 * MB, MB // 25)
    many = await download(12 * MB, MB // 25)

    assert few.is_same
    assert many.is_same
    assert (100, 300, 100) == (few.parts, many.parts, many.parts_in_log)
    assert many.peak < few.peak + MB
