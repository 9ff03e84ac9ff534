"""The rulebook: every code with what it demands, how much it weighs and the page that explains it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.errors import NotFound
from evalmeta.model.problem import Severity
from evalmeta.validation.rules import FIXED_CODES, all_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RuleEntry", "find_rule", "list_rules", "read_page"]

_PAGES: Final = Path(__file__).parent / "pages"
_FIXED_WARNINGS: Final = frozenset({"forceignore-backslash", "manifest-type-other"})


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A rule as people look it up.

    Attributes:
        demand: what must hold, in one sentence.
        is_fixed: no profile and no setting changes its severity.
    """

    code: str
    documented: Severity
    orgs: Severity
    demand: str
    is_fixed: bool = False


def list_rules() -> tuple[RuleEntry, ...]:
    """Lists every rule, those that can be set before those that are fixed."""
    return tuple(_entries().values())


def find_rule(code: str) -> RuleEntry:
    """Finds a rule by its code.

    Raises:
        NotFound: there is no such rule; the nearest code is given.
    """
    entry = _entries().get(code)
    if entry is None:
        near = get_close_matches(code.lower(), _entries(), n=1)
        actions = [f"Did you mean {each}?" for each in near]
        raise NotFound(f"there is no rule {code!r}", actions=[*actions, "List all rules: evalmeta rule"])
    return entry


def read_page(entry: RuleEntry) -> str:
    """Reads a rule's page: Markdown that begins with the code as its heading and ends with a line break."""
    return (_PAGES / f"{entry.code}.md").read_text(encoding="utf-8")


@cache
def _entries() -> Mapping[str, RuleEntry]:
    entries = [RuleEntry(rule.code, rule.documented, rule.orgs, demand) for rule, demand in all_rules()]
    for code, demand in FIXED_CODES.items():
        severity = Severity.WARNING if code in _FIXED_WARNINGS else Severity.ERROR
        entries.append(RuleEntry(code, severity, severity, demand, is_fixed=True))
    return {entry.code: entry for entry in entries}
