"""A chart's SVG, made fit to stand in the page: only shapes and text, coloured by the page's style sheet.

What a chart is made of comes from traces. The plotting library escapes it; here nothing passes but known
elements and attributes. Colours become classes, so that light and dark are the style sheet's affair.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"
_ELEMENTS = {"svg", "g", "path", "line", "text", "tspan", "rect", "title"}
_ATTRIBUTES = {
    "d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "width", "height", "transform", "viewBox", "opacity",
    "fill-opacity", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap",
    "stroke-linejoin", "text-anchor", "font-size", "font-weight", "fill", "stroke",
}  # fmt: skip
_PLAIN = re.compile(r"[-+.,%#() \w]*")
"""Characters that attributes need; `url(…)` and the like need others."""


def restyled(text: str, colours: Mapping[str, str], label: str) -> str:
    """The SVG as an element of an HTML page.

    Args:
        text: what the plotting library made; marks say in ``aria-label`` what they show.
        colours: colour, ``#rrggbb`` -> name; it is replaced by the class ``fill-NAME`` or ``stroke-NAME``.
        label: what the chart shows, for those who cannot see it.
    """
    root = _kept(ElementTree.fromstring(text), colours)
    assert root is not None
    root.set("role", "img")
    root.set("aria-label", label)
    # An HTML parser knows svg by its name and wants no namespace.
    return ElementTree.tostring(root, encoding="unicode")


def _kept(element: ElementTree.Element, colours: Mapping[str, str]) -> ElementTree.Element | None:
    name = element.tag.removeprefix(_SVG)
    if name not in _ELEMENTS or element.get("display") == "none":
        return None
    kept = ElementTree.Element(name)
    kept.text, kept.tail = element.text, element.tail
    classes = []
    for attribute, value in element.attrib.items():
        if attribute not in _ATTRIBUTES or not _PLAIN.fullmatch(value) or "url" in value:
            continue
        if attribute in ("fill", "stroke") and value in colours:
            classes.append(f"{attribute}-{colours[value]}")
        else:
            kept.set(attribute, value)
    if classes:
        kept.set("class", " ".join(classes))
    if element.get("role") == "graphics-symbol" and name in ("path", "line", "rect") and element.get("aria-label"):
        title = ElementTree.SubElement(kept, "title")
        title.text = element.get("aria-label")
    for child in element:
        if (inner := _kept(child, colours)) is not None:
            kept.append(inner)
    if name == "g" and not len(kept) and not kept.text:
        return None
    return kept
