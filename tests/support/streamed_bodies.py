"""Bodies that can be read once, as users write them around streams."""

import aiohttp

CHUNK = 1 << 16


async def pieces(content, size=CHUNK):
    """Yield a content piece by piece."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


class Progress:
    """Tells how much of a stream has gone; each ``aiter()`` makes another iterator."""

    def __init__(self, stream):
        self._stream = stream
        self.passed = 0

    async def __aiter__(self):
        async for piece in self._stream:
            self.passed += len(piece)
            yield piece


class Once:
    """May be iterated once, and says so."""

    def __init__(self, content):
        self._content = content
        self.asked = 0

    def __aiter__(self):
        self.asked += 1
        if self.asked > 1:
            message = "it was iterated before"
            raise RuntimeError(message)
        return self._pieces()

    async def _pieces(self):
        for piece in self._content:
            yield piece


def form(value):
    """Return a form that uploads it as a file."""
    data = aiohttp.FormData()
    data.add_field("file", value, filename="file")
    return data


def multipart(value):
    """Return a multipart body with it as the only part."""
    writer = aiohttp.MultipartWriter(boundary="x")
    writer.append(value)
    return writer


async def fetch_token():
    return "token"
