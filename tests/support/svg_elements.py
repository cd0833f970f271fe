"""Elements, texts and bars of the picture of a timeline."""

from __future__ import annotations

from xml.etree import ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"


def elements(picture, name, kind=None):
    found = ET.fromstring(picture).iter(f"{SVG}{name}")
    return [each for each in found if kind in {None, each.get("class")}]


def texts(picture, kind=None):
    return [each.text for each in elements(picture, "text", kind)]


def bars(picture):
    """Return class, start and length of each bar, in pixels."""
    return [
        (each.get("class"), float(each.get("x")), float(each.get("width")))
        for each in elements(picture, "rect")
        if each.get("class") != "paper"
    ]
