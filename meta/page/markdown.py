"""What a reviewer wrote, as HTML: Markdown of somebody who is not trusted.

A model wrote it, and what it had read may have told it what to write. So nothing of it becomes HTML by itself, leads
out of the page or is fetched: HTML, links and pictures stay the text that they are.
"""

from __future__ import annotations

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

from automem.visible import visible_lines

LONGEST = 40_000
"""Characters that are shown."""

_TOP = 4
"""Level of heading that the highest heading becomes."""


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    return parser.disable(["html_block", "html_inline", "link", "image", "autolink", "reference"])


def html(text: str) -> Markup:
    """Markdown as HTML that can stand in the page, cut to `LONGEST` characters."""
    cut = len(text) - LONGEST
    shown = visible_lines(text[:LONGEST].replace("\r\n", "\n").expandtabs(4))
    parser = _parser()
    tokens = parser.parse(shown)
    for token in tokens:
        token.attrs.pop("style", None)  # the page's policy knows no styles of single elements
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _TOP - 1)}"
    found = Markup(parser.renderer.render(tokens, parser.options, {}))
    return found + Markup("<p>… {} more characters</p>").format(cut) if cut > 0 else found
