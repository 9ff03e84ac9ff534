"""Markdown in answers as HTML: headings, lists, quotes, tables, code and emphasis. All texts are escaped.

Links and images stay text, so that an answer leads nowhere and loads nothing. Headings are paragraphs, so that an
answer cannot add to the outline of the page. Every line is read once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_FENCE: Final = re.compile(r" {0,3}(```+|~~~+)")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_RULE: Final = re.compile(r" {0,3}(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_ITEM: Final = re.compile(r"([ \t]{0,12})(?:([-*+])|(\d{1,9})[.)])[ \t]+(\S.*)")
_QUOTE: Final = re.compile(r" {0,3}> ?(.*)")
_CELLS: Final = re.compile(r"(?<!\\)\|")
_TABLE_RULE: Final = frozenset("|-: \t")
# Each alternative ends at its own mark or does not begin, so that no text takes more than one look at each character.
_INLINE: Final = re.compile(
    r"`(?P<code>[^`\n]+)`|\*\*(?P<strong>[^*\s](?:[^*\n]*[^*\s])?)\*\*|\*(?P<em>[^*\s](?:[^*\n]*[^*\s])?)\*"
)
_SIGNS: Final = re.compile(
    r"^ {0,3}(?:#{1,6}[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t]|>|```|~~~)|\*\*\S|`[^`\n]+`|\|[^\n|]*\n[-|: \t]*-", re.MULTILINE
)


def is_markdown(text: str) -> bool:
    """Return whether a text has anything that looks different when it is rendered."""
    return _SIGNS.search(text) is not None


def render_markdown(text: str) -> Markup:
    """Return clean text as HTML."""
    return Markup("").join(_blocks(text.split("\n")))


def _blocks(lines: Sequence[str]) -> Iterator[Markup]:
    at = 0
    while at < len(lines):
        for read in _READERS:
            length, html = read(lines, at)
            if length:
                yield html
                at += length
                break


def _blank(lines: Sequence[str], at: int) -> tuple[int, Markup]:
    return (0 if lines[at].strip() else 1), Markup("")


def _code(lines: Sequence[str], at: int) -> tuple[int, Markup]:
    fence = _FENCE.match(lines[at])
    if fence is None:
        return 0, Markup("")
    end = next((to for to in range(at + 1, len(lines)) if lines[to].strip().startswith(fence[1])), len(lines))
    return end + 1 - at, _element("pre", escape("\n".join(lines[at + 1 : end])))


def _heading(lines: Sequence[str], at: int) -> tuple[int, Markup]:
    heading = _HEADING.fullmatch(lines[at])
    if heading is None:
        return 0, Markup("")
    return 1, Markup('<p class="heading-{}">{}</p>').format(len(heading[1]), _inline(heading[2].rstrip("# ")))


def _rule(lines: Sequence[str], at: int) -> tuple[int, Markup]:
    return (1, Markup("<hr>")) if _RULE.fullmatch(lines[at]) else (0, Markup(""))


def _quote(lines: Sequence[str], at: int) -> tuple[int, Markup]:
    quoted = list[Markup]()
    while at + len(quoted) < len(lines) and (line := _QUOTE.fullmatch(lines[at + len(quoted)])):
        quoted.append(_inline(line[1]))
    return len(quoted), _element("blockquote", Markup("<br>").join(quoted))


def _table(lines: Sequence[str], at: int) -> tuple[int, Markup]:
    rule = lines[at + 1] if at + 1 < len(lines) and "|" in lines[at] else ""
    if "-" not in rule or not _TABLE_RULE.issuperset(rule):
        return 0, Markup("")
    end = next((to for to in range(at + 2, len(lines)) if "|" not in lines[to]), len(lines))
    head = _element("tr", *(_element("th", _inline(cell)) for cell in _cells(lines[at])))
    rows = (_element("tr", *(_element("td", _inline(cell)) for cell in _cells(line))) for line in lines[at + 2 : end])
    return end - at, _element("table", _element("thead", head), _element("tbody", *rows))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _CELLS.split(line.strip().strip("|"))]


def _list(lines: Sequence[str], at: int) -> tuple[int, Markup]:
    """Read a list; the items of inner lists are items of the class `inner`, with the numbers that they have."""
    items, length = list[Markup](), 0
    first = _ITEM.fullmatch(lines[at])
    while first and at + length < len(lines) and (item := _ITEM.fullmatch(lines[at + length])):
        number = Markup(' value="{}"').format(int(item[3])) if item[3] else Markup("")
        inner = Markup(' class="inner"') if item[1] else Markup("")
        items.append(Markup("<li{}{}>{}</li>").format(number, inner, _inline(item[4])))
        length += 1
    return length, _element("ol" if first and first[3] else "ul", *items)


def _paragraph(lines: Sequence[str], at: int) -> tuple[int, Markup]:
    others = (to for to in range(at + 1, len(lines)) if not lines[to].strip() or _begins_block(lines, to))
    end = next(others, len(lines))
    return end - at, _element("p", Markup("<br>").join(_inline(line.strip()) for line in lines[at:end]))


def _begins_block(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    return any(pattern.match(line) for pattern in (_FENCE, _HEADING, _ITEM, _QUOTE))


_READERS: Final[Sequence[Callable[[Sequence[str], int], tuple[int, Markup]]]] = (
    *(_blank, _code, _heading, _rule, _quote, _table, _list),
    _paragraph,
)


def _inline(text: str) -> Markup:
    parts, at = list[Markup](), 0
    for match in _INLINE.finditer(text):
        parts += (
            escape(text[at : match.start()]),
            _element(match.lastgroup or "", escape(match[match.lastgroup or 0])),
        )
        at = match.end()
    return Markup("").join((*parts, escape(text[at:])))


def _element(name: str, *inner: Markup) -> Markup:
    return Markup("<{0}>{1}</{0}>").format(Markup(name), Markup("").join(inner))  # noqa: S704 - a name of this module
