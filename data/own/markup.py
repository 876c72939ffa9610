"""Texts that were written as HTML, as the words that a browser would show."""

import html
import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

_BLOCKS = (
    "p|div|br|hr|li|ul|ol|dl|dt|dd|table|tr|td|th|thead|tbody|tfoot|h1|h2|h3|h4|h5|h6|section|article|header|footer|"
    "blockquote|pre|html|body|main|nav|aside|figure|figcaption"
)
_INLINE = (
    "a|b|i|u|s|em|strong|span|font|small|big|sub|sup|code|kbd|mark|cite|q|abbr|time|label|img|picture|source|iframe|"
    "video|audio|svg|path|del|ins|strike|center|form|input|button|select|option|title|meta|link"
)
_UNSEEN = "script|style|head"
_NAME = rf"(?:{_BLOCKS}|{_INLINE}|{_UNSEEN})"
_IS_BLOCK, _IS_UNSEEN = re.compile(_BLOCKS), re.compile(_UNSEEN)
_TAG_START = re.compile(rf"<(?!/?{_NAME}(?=[\s/>])|!--)", re.IGNORECASE)
# A tag that closes another, stands alone, or opens the text: "use the <table> element" is no HTML.
_IS_HTML = re.compile(rf"</{_NAME}\s*>|<(?:br|hr|img)\b[^<>]*>|\A\s*<(?:!doctype\s)?{_NAME}\b[^<>]*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.unseen = 0  # elements round this place that a browser does not show

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.unseen += _IS_UNSEEN.fullmatch(tag) is not None
        self.pieces += ["\n"] if _IS_BLOCK.fullmatch(tag) else []

    def handle_endtag(self, tag: str) -> None:
        self.unseen -= _IS_UNSEEN.fullmatch(tag) is not None and self.unseen > 0
        self.pieces += ["\n"] if _IS_BLOCK.fullmatch(tag) else []

    def handle_data(self, data: str) -> None:
        self.pieces += [data] if not self.unseen else []


def plain_text(text: str) -> str:
    """What HTML shows, a line for each block; every other text as it is.

    >>> plain_text("<p>Hummus</p><p>with garlic &amp; oil</p>"), plain_text("garlic &amp; oil")
    ('Hummus\\nwith garlic & oil', 'garlic & oil')
    >>> plain_text("a < b and b > c"), plain_text("The <table> element"), plain_text("R&D")
    ('a < b and b > c', 'The <table> element', 'R&D')
    """
    if "<" in text and _IS_HTML.search(text):
        words = _Words()
        words.feed(_TAG_START.sub("&lt;", text))
        words.close()
        lines = (" ".join(line.split()) for line in "".join(words.pieces).splitlines())
        return "\n".join(filter(None, lines))
    return _ENTITY.sub(lambda entity: html.unescape(entity.group()), text) if "&" in text else text


def without_html(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row, with each text that was HTML as plain text, also in lists and objects."""
    return {name: _without_html(value) for name, value in values.items()}


def _without_html(value: Any) -> Any:
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, list):
        return [_without_html(item) for item in value]
    return without_html(value) if isinstance(value, dict) else value
