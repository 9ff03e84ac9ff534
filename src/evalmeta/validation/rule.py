"""What a rule is, and how a function declares that it checks one.

The first line of the function's docstring says what the rule demands: users read it with `evalmeta rule`, in the
documentation, and on the rule's page in `pages`. A rule also has a sample in metadata-samples/invalid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

from evalmeta.errors import nearest_word
from evalmeta.model.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evalmeta.model.settings import Profile
    from evalmeta.xmlio.reader import Step

ERROR: Final = Severity.ERROR
WARNING: Final = Severity.WARNING
_Scope = TypeVar("_Scope")
_Found = TypeVar("_Found")
Check: TypeAlias = "Callable[[_Scope], Iterator[_Found]]"
Checks: TypeAlias = "tuple[tuple[Rule, Check[_Scope, _Found]], ...]"
"""Rules, each with its check."""


class Rule(NamedTuple):
    """A rule: its code, its severity under each profile, and what it demands, in one or two sentences."""

    code: str
    documented: Severity
    orgs: Severity
    demand: str
    is_fixed: bool = False  # no profile and no setting changes its severity

    def severity(self, profile: Profile) -> Severity:
        """Return the severity of this rule's findings under a profile."""
        return self.documented if profile == "documented" else self.orgs


class Finding(NamedTuple):
    """One finding of a rule."""

    # The path from the rule's scope to the faulty element. That of a missing element is valid too: its parent is shown.
    steps: tuple[Step, ...]
    message: str
    hint: str
    word: str = ""  # the word in the value that it is about


class RuleTable(Generic[_Scope, _Found]):
    """The rules about things of one kind, in the order of their declaration, which is that of their problems."""

    def __init__(self) -> None:
        self._rows: list[tuple[Rule, Check[_Scope, _Found], frozenset[str]]] = []

    def add(self, declared: Rule, check: Check[_Scope, _Found], about: Iterable[str]) -> None:
        """Add a rule with its check; `about` has what chooses the things to which it applies."""
        self._rows.append((declared, check, frozenset(about)))

    def rules(self) -> dict[str, Rule]:
        """Return the rules by their codes."""
        return {declared.code: declared for declared, _, _ in self._rows}

    def checks(self, *about: str) -> Checks[_Scope, _Found]:
        """Return the rules about one of these, each with its check; without arguments, all of them."""
        return tuple((declared, check) for declared, check, its in self._rows if not about or its & {*about})


def rule(
    code: str, table: RuleTable[_Scope, _Found], *, documented: Severity, orgs: Severity, about: Iterable[str] = ()
) -> Callable[[Check[_Scope, _Found]], Check[_Scope, _Found]]:
    """Declare that a function checks a rule.

    The profile `orgs`, the default, reports as errors what orgs refuse and what no run can judge. It only warns about
    what orgs are known to accept, and about what runs can judge and no org is known to refuse. The profile `documented`
    enforces the whole metadata reference. `about` chooses the things of the table to which the rule applies.
    """

    def declare(check: Check[_Scope, _Found]) -> Check[_Scope, _Found]:
        table.add(Rule(code, documented, orgs, (check.__doc__ or "").partition("\n")[0]), check, about)
        return check

    return declare


def checks_also(
    code: str, table: RuleTable[_Scope, _Found], *, about: Iterable[str]
) -> Callable[[Check[_Scope, _Found]], Check[_Scope, _Found]]:
    """Declare that a function checks a rule of the table for other things than the function of the rule does."""

    def declare(check: Check[_Scope, _Found]) -> Check[_Scope, _Found]:
        table.add(table.rules()[code], check, about)
        return check

    return declare


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a sentence with the known word that was probably meant, or with all known words."""
    options = list(known)
    near = nearest_word(word, options)
    return f"Did you mean {near}?" if near else f"Known: {', '.join(options)}."
