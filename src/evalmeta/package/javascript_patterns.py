"""Regular expressions, texts of replacements and globs (minimatch) of JavaScript, as the sf CLI understands them.

A pattern that Python would match differently is refused with a ValueError.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator


_SPACES: Final = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_SPACES: Final = (
    r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
    r"\u3001-\ufefe\uff00-\U0010ffff"
)
_NO_LINE_ENDS: Final = r"[^\n\r\u2028\u2029]"
_NEVER: Final = "(?!)"
# Everything that the two languages write differently; the rest is the same in both.
_REGEX_PART: Final = re.compile(
    r"""(?P<group>\((?:\?(?:<(?P<name>[A-Za-z_]\w*)>|(?P<kind>:|=|!|<=|<!))?)?)
    |(?P<set>\[(?P<not>\^?)(?P<members>(?:[^\]\\]|\\.)*)(?P<end>\]?))
    |\\k<(?P<named>\w+)>
    |\\(?P<escaped>\d+|.)
    |(?P<repeat>[*+?]|\{\d+(?:,\d*)?\})(?P<lazy>\??)(?P<possessive>\+?)
    |(?P<brace>\{)
    |(?P<dot>\.)
    |(?P<end_of_text>\$)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
# Escapes with the same meaning in both, with re.ASCII.
_SHARED_ESCAPES: Final = frozenset("dDwWbBfnrtvxu")
_SET_ESCAPES: Final = {"s": _SPACES, "S": _NO_SPACES, "0": r"\x00"}


def compile_regex(pattern: str) -> re.Pattern[str]:
    """Return the Python form of a regular expression of JavaScript without flags; raise ValueError if it has none."""
    try:
        return re.compile(_REGEX_PART.sub(_python_part, pattern), re.ASCII)
    except re.error as error:
        raise ValueError(str(error)) from None


def _python_part(part: re.Match[str]) -> str:
    text = part[0]
    if part["group"]:
        if text == "(?":
            raise ValueError(f"what follows (? at position {part.start()} is not a group of JavaScript")
        return f"(?P<{part['name']}>" if part["name"] else text
    if part["set"]:
        return _python_set(part)
    if part["named"]:
        return _reference(part["named"])
    if escaped := part["escaped"]:
        return _python_escape(escaped)
    if part["repeat"]:
        if part["possessive"]:
            raise ValueError(f"nothing to repeat at position {part.end() - 1}")
        return text
    return {"{": r"\{", ".": _NO_LINE_ENDS, "$": r"\Z"}[text]


def _reference(group: str) -> str:
    # A group that took no part in the match is an empty text in JavaScript.
    return rf"(?({group})\{group})" if group.isdigit() else f"(?({group})(?P={group}))"


def _python_escape(escaped: str) -> str:
    if escaped.isdigit() and escaped != "0":
        return _reference(escaped)
    if escaped in "sS":
        return f"[{_SET_ESCAPES[escaped]}]"
    if escaped == "0":
        return r"\x00"
    return rf"\{escaped}" if escaped in _SHARED_ESCAPES else re.escape(escaped)


def _python_set(part: re.Match[str]) -> str:
    if not part["end"]:
        raise ValueError(f"the set of characters at position {part.start()} does not end")
    if not part["members"]:
        return r"[\x00-\U0010ffff]" if part["not"] else _NEVER
    members = re.sub(r"(?s)\\(.)|[\[&~|]", _set_member, part["members"])
    return f"[{part['not']}{members}]"


def _set_member(member: re.Match[str]) -> str:
    escaped: str | None = member[1]
    if escaped is None:
        return rf"\{member[0]}"
    if escaped in _SET_ESCAPES:
        return _SET_ESCAPES[escaped]
    return rf"\{escaped}" if escaped in "dDwWbfnrtvxu" else re.escape(escaped)


_TEMPLATE_PART: Final = re.compile(r"\$(?:(?P<sign>[$&`'])|(?P<number>\d{1,2})|<(?P<name>[^>]*)>)", re.ASCII)


def replace_matches(regex: re.Pattern[str], template: str, text: str) -> str:
    """Return a text with each match replaced; `$&`, `$1`, `$<name>` and others in a template are parts of the text."""
    pieces: list[str] = []
    copied = position = 0
    while position <= len(text) and (match := regex.search(text, position)):
        pieces += text[copied : match.start()], _TEMPLATE_PART.sub(partial(_expanded, match), template)
        copied = match.end()
        # Unlike in Python, nothing else matches where an empty match was.
        position = copied + (match.start() == copied)
    return "".join((*pieces, text[copied:]))


def _expanded(match: re.Match[str], part: re.Match[str]) -> str:
    if sign := part["sign"]:
        before, after = match.string[: match.start()], match.string[match.end() :]
        return {"$": "$", "&": match[0], "`": before, "'": after}[sign]
    if part["name"] is not None:
        if not match.re.groupindex:
            return part[0]
        return match[part["name"]] or "" if part["name"] in match.re.groupindex else ""
    digits = part["number"]
    for length in (2, 1):
        number = int(digits[:length])
        if len(digits) >= length and 1 <= number <= match.re.groups:
            return (match[number] or "") + digits[length:]
    return part[0]


# Parts of a name in a glob.
_GLOB_PART: Final = re.compile(
    r"\\(?P<escaped>.)|(?P<set>\[(?P<not>[!^]?)(?P<members>\]?(?:[^\]\\]|\\.)*)\])|(?P<stars>\*+)|(?P<one>\?)|(?P<text>.)",
    re.DOTALL,
)
_UNSUPPORTED_GLOB: Final = re.compile(r"(?:\A|(?<=/))\.\.?(?:/|\Z)|[@!+?*]\(|\[:|\[[!^]?\]|\{[^{},]*\.\.[^{},]*\}")
_NOT_HIDDEN: Final = r"(?!\.)"
_FOLDERS: Final = rf"(?:{_NOT_HIDDEN}[^/]*/)*"


def compile_glob(glob: str) -> re.Pattern[str]:
    """Return a pattern for the paths that a glob matches from any of their folders on.

    Wildcards match no name that begins with a dot. Raise ValueError for extended globs such as `@(a|b)`, classes such
    as `[:alpha:]`, ranges such as `{1..3}`, and the folders `.` and `..`.
    """
    if unsupported := _UNSUPPORTED_GLOB.search(glob):
        raise ValueError(f"{unsupported[0]!r} is not supported")
    pattern = "|".join(rf"(?:{_path_pattern(choice)})\Z" for choice in _without_braces(glob))
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise ValueError(str(error)) from None


def _without_braces(glob: str) -> Iterator[str]:
    """Yield a glob for each choice in braces."""
    opened: list[int] = []
    commas: list[list[int]] = []
    position = 0
    while position < len(glob):
        character = glob[position]
        if character == "\\":
            position += 1
        elif character == "{":
            opened.append(position)
            commas.append([])
        elif character == "," and opened:
            commas[-1].append(position)
        elif character == "}" and opened:
            start, cuts = opened.pop(), commas.pop()
            if cuts and not opened:
                edges = [start, *cuts, position]
                for left, right in pairwise(edges):
                    yield from _without_braces(glob[:start] + glob[left + 1 : right] + glob[position + 1 :])
                return
        position += 1
    yield glob


def _path_pattern(glob: str) -> str:
    if glob.endswith("/"):
        return _NEVER
    names = re.split("/+", glob.lstrip("/"))
    if names[-1] == "**":
        # Two stars at the end need at least one name.
        return "".join(_folder_pattern(name) for name in ("**", *names)) + rf"{_NOT_HIDDEN}[^/]+"
    return "".join(_folder_pattern(name) for name in ("**", *names[:-1])) + _name_pattern(names[-1])


def _folder_pattern(name: str) -> str:
    return _FOLDERS if name == "**" else f"{_name_pattern(name)}/"


def _name_pattern(name: str) -> str:
    parts = list(_GLOB_PART.finditer(name))
    starts_wild = bool(parts) and not (parts[0]["escaped"] or parts[0]["text"])
    at_least_one = r"(?=[^/])" if starts_wild else ""
    return (_NOT_HIDDEN + at_least_one if starts_wild else "") + "".join(map(_glob_part, parts))


def _glob_part(part: re.Match[str]) -> str:
    if part["stars"]:
        return "[^/]*"
    if part["one"]:
        return "[^/]"
    if part["set"]:
        members = re.sub(r"\\(.)|([\[\]\\^&~|])", lambda found: re.escape(found[1] or found[2]), part["members"])
        return f"(?!/)[{'^' if part['not'] else ''}{members}]"
    return re.escape(part["escaped"] or part["text"])
