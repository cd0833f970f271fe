"""Kinds of requests by their body."""

import io
import json

import aiohttp
import body_kinds
from multidict import MultiDict
from request_kind import (
    FILE,
    Fresh,
    Text,
    by_verb,
    chunks,
    fresh,
    get,
    kind,
    post,
    tracked,
    twice,
)


def serializer(scene):
    """Make a serializer that notes what it is asked for."""

    def serialize(value):
        scene.seen.append(("serialized", value))
        return json.dumps(value, separators=(",", ":"), default=str)

    return serialize


def bytes_serializer(scene):
    """Make a serializer as above, to bytes."""
    serialize = serializer(scene)
    return lambda value: serialize(value).encode()


def failing(error):
    """Make a serializer that fails."""

    def serialize(value):
        raise error

    return serialize


def closed(file):
    """Close a file."""
    file.close()
    return file


class FailingFile(io.BytesIO):
    """A file that cannot be read."""

    def __init__(self, error):
        super().__init__(b"abc")
        self._error = error

    def read(self, size=-1, /):
        raise self._error


async def failing_chunks(error):
    """Fail after the first chunk."""
    yield b"abc"
    raise error


ERRORS_OF_THEIR_OWN = (
    LookupError("own"),
    FileNotFoundError(2, "own"),
    RecursionError("own"),
    OverflowError("own"),
)
"""Errors that the caller's own code may raise; the server has no part in them."""

BODIES = {
    **{
        f"body: {name}": post(
            again=not any(
                word in name
                for word in ("async", "StreamReader", "pipe", "AsyncIt", "own")
            ),
            **{
                option: Fresh(
                    lambda scene, make=make, option=option: make(scene.content)[option]
                )
                for option in ("data", "json")
                if (option == "json") == (name == "``json=``")
            },
        )
        for name, make in body_kinds.KINDS.items()
        if not name.startswith("factory")
    },
    **{
        f"data: {name}": post(data=value)
        for name, value in {
            "empty bytes": b"",
            "empty str": "",
            "empty dict": {},
            "empty list": [],
            "empty tuple": (),
            "empty form": fresh(aiohttp.FormData),
            "empty bytearray": fresh(bytearray),
            "empty BytesIO": fresh(io.BytesIO),
            "empty MultipartWriter": fresh(aiohttp.MultipartWriter),
            "str, not ASCII": "ü €",
            "subclass of str": Text("abc"),
            "slice of a memoryview": memoryview(b"abcdef")[::2],
            "numbers in a dict": {"a": 1},
            "bytes in a dict": {"a": b"abc"},
            "BytesIO in a dict": fresh(lambda: {"a": io.BytesIO(b"abc")}),
            "StringIO in a dict": fresh(lambda: {"a": io.StringIO("abc")}),
            "MultiDict": MultiDict([("a", "1"), ("a", "2")]),
            "tuple of pairs": (("a", "1"), ("b", "2")),
            "file in pairs": Fresh(lambda scene: [("f", scene.content.file())]),
            "quoted form": fresh(
                lambda: aiohttp.FormData({"ü": "a&b"}, charset="latin-1")
            ),
            "form that is multipart by default": fresh(
                lambda: aiohttp.FormData({"a": "1"}, default_to_multipart=True)
            ),
            "form without quotes": fresh(
                lambda: aiohttp.FormData({"a b": io.BytesIO(b"c")}, quote_fields=False)
            ),
            "mixed subtypes": fresh(lambda: aiohttp.MultipartWriter("mixed")),
            "object": fresh(object),
            "number": 5,
            "generator": fresh(lambda: (part for part in [b"abc"])),
            "iterator": fresh(lambda: iter([b"abc"])),
            "object in a dict": {"a": ()},
            "singles": ["a", "b"],
            "closed file": Fresh(lambda scene: closed(scene.content.file())),
            "lone surrogate": "\udcff",
        }.items()
    },
    "data twice: bytes": post(send=twice, data=b"abc"),
    "data twice: urlencoded form": post(
        send=twice, data=fresh(lambda: aiohttp.FormData({"a": "1"}))
    ),
    "data twice: multipart form": post(
        send=twice, data=fresh(lambda: body_kinds.form("text"))
    ),
    "data twice: BytesIO": post(send=twice, data=fresh(lambda: io.BytesIO(b"abc"))),
    "data twice: generator": post(
        send=twice, data=fresh(lambda: chunks(b"abc")), again=False
    ),
    "data twice: MultipartWriter": post(
        send=twice, data=Fresh(lambda scene: body_kinds.parts("1", b"2"))
    ),
    "upload_tracker": post(
        send=tracked,
        data=b"abc",
        upload_tracker=fresh(getattr(aiohttp, "UploadTracker", None)),
    ),
    "data with GET": get(data=b"abc"),
    "data with HEAD": kind("HEAD", data=b"abc"),
    "data, compressed": post(data=b"abc" * 99, compress="deflate"),
    "data, gzipped": post(data=b"abc" * 99, compress="gzip"),
    "data, compress=True": post(data=b"abc" * 99, compress=True),
    "data, compress=False": post(data=b"abc" * 99, compress=False),
    "file, compressed": post(data=FILE, compress="deflate"),
    "json, compressed": post(json={"a": "b"}, compress="deflate"),
    "compress without data": post(compress="deflate"),
    "compress and Content-Encoding": post(
        data=b"a", compress="deflate", headers={"Content-Encoding": "br"}
    ),
    "unknown compression": post(data=b"abc", compress="no such"),
    "data, chunked": post(data=b"abc", chunked=True),
    "file, chunked": post(data=FILE, chunked=True),
    "chunked without data": post(chunked=True),
    "chunked as a size": post(data=b"abc", chunked=1024),
    "chunked and Content-Length": post(
        data=b"abc", chunked=True, headers={"Content-Length": "3"}
    ),
    "chunked and Transfer-Encoding": post(
        data=b"abc", chunked=True, headers={"Transfer-Encoding": "chunked"}
    ),
    "expect100": post(data=b"abc", expect100=True),
    "Expect header": post(data=b"abc", headers={"Expect": "100-continue"}),
    "expect100 with a file": post(data=FILE, expect100=True),
    "data and json": post(data=b"abc", json={}),
    "data and json, None": post(data=None, json=None),
    **{
        f"{name} that raises {error!r}": kind(
            # What fails this way in mid-upload, aiohttp sends again by itself.
            "POST" if isinstance(error, OSError) else "PUT",
            data=Fresh(lambda scene, make=make, error=error: make(error)),
            again=False,
        )
        for name, make in {"file": FailingFile, "generator": failing_chunks}.items()
        for error in ERRORS_OF_THEIR_OWN
    },
}

CIRCLE = []
CIRCLE.append(CIRCLE)

JSON = {
    **{
        f"json: {name}": post(json=value)
        for name, value in {
            "nested": {"a": [1, {"b": None}], "ü": "€"},
            "list": [1, 2],
            "str": "text",
            "zero": 0,
            "False": False,
            "empty dict": {},
            "empty list": [],
            "set": {1},
            "object": fresh(object),
            "circle": CIRCLE,
            "lone surrogate": "\udcff",
        }.items()
    },
    "json: own serializer": post(
        json={"a": [1, {2}]}, session={"json_serialize": Fresh(serializer)}
    ),
    **{
        f"json: serializer that raises {error!r}": kind(
            "PUT",
            json={"a": 1},
            session={"json_serialize": fresh(lambda error=error: failing(error))},
        )
        for error in ERRORS_OF_THEIR_OWN
    },
    "json: serializer to bytes": post(
        json={"a": [1, {2}]}, session={"json_serialize_bytes": Fresh(bytes_serializer)}
    ),
    "json with PUT": kind("PUT", json=[1], send=by_verb),
    "json and Content-Type": post(json=[1], headers={"Content-Type": "a/json"}),
}
