"""The rule table: one row per code, with its severity under each profile and what checks it.

The profile `documented` holds files to the metadata reference; `orgs` to what real orgs
are known to accept. A rule's page stands in `pages/`; its demand is its check's first line.

How findings are weighed: the profile of a project, and what it says of single rules.

The rulebook: every code with what it demands, how much it weighs and the page that explains it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import NotFound, SettingsError
from evalmeta.model.expectations import expectation_kind, known_names
from evalmeta.model.problem import Severity
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.validation import case_rules, definition_rules, expectation_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.definition import Definition, Expectation, TestCase
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.settings import Profile, RuleSetting, Settings
    from evalmeta.validation.definition_rules import DefinitionScope, NamedFile
    from evalmeta.validation.finding import Finding


_ERROR: Final = Severity.ERROR
_WARNING: Final = Severity.WARNING


class Rule(NamedTuple):
    """A rule: its code, its severities, and the severity for a profile."""

    code: str
    documented: Severity
    orgs: Severity

    def severity(self, profile: Profile) -> Severity:
        """Gives how much a finding of this rule weighs under a profile."""
        return self.documented if profile == "documented" else self.orgs


DEFINITION_RULES: Final[tuple[tuple[Rule, Callable[[DefinitionScope], Iterator[Finding]]], ...]] = (
    (Rule("full-name-format", _ERROR, _ERROR), definition_rules.find_full_name_format),
    (Rule("name-format", _ERROR, _WARNING), definition_rules.find_name_format),
    (Rule("required-empty", _ERROR, _ERROR), definition_rules.find_empty_required),
    (Rule("test-cases-missing", _WARNING, _WARNING), definition_rules.find_no_test_cases),
    (Rule("test-cases-too-many", _ERROR, _ERROR), definition_rules.find_too_many_test_cases),
    (Rule("type-version", _ERROR, _ERROR), definition_rules.find_type_before_its_version),
    (Rule("parameter-version", _ERROR, _ERROR), definition_rules.find_parameters_before_their_version),
)


TESTING_RULES: Final[tuple[tuple[Rule, Callable[[DefinitionScope], Iterator[Finding]]], ...]] = (
    (Rule("name-mismatch", _ERROR, _WARNING), definition_rules.find_name_elsewhere),
    (Rule("description-too-long", _ERROR, _ERROR), definition_rules.find_description_too_long),
    (Rule("number-gap", _ERROR, _ERROR), definition_rules.find_number_gap),
    (Rule("prompt-inputs-missing", _ERROR, _ERROR), definition_rules.find_prompt_inputs_missing),
    (Rule("scorer-unsupported", _WARNING, _WARNING), definition_rules.find_unsupported_scorers),
    (Rule("scorer-history-missing", _ERROR, _ERROR), definition_rules.find_history_missing),
)
"""Rules about an AiTestingDefinition as a whole, beside those about every definition."""


CASE_RULES: Final[tuple[tuple[Rule, Callable[[TestCase], Iterator[Finding]]], ...]] = (
    (Rule("utterance-empty", _ERROR, _ERROR), case_rules.find_empty_utterance),
    (Rule("expectations-missing", _WARNING, _WARNING), case_rules.find_no_expectations),
    (Rule("expectation-twice", _WARNING, _WARNING), case_rules.find_expectations_twice),
    (Rule("context-variable-twice", _ERROR, _ERROR), case_rules.find_context_variables_twice),
    (Rule("history-role", _ERROR, _ERROR), case_rules.find_history_role),
    (Rule("history-order", _ERROR, _ERROR), case_rules.find_history_order),
    (Rule("history-topic", _ERROR, _WARNING), case_rules.find_history_topic),
    (Rule("history-index", _ERROR, _ERROR), case_rules.find_history_index),
)


EXPECTATION_RULES: Final[tuple[tuple[Rule, Callable[[Expectation], Iterator[Finding]]], ...]] = (
    (Rule("expectation-unknown", _ERROR, _ERROR), expectation_rules.find_unknown_name),
    (Rule("expected-value-missing", _ERROR, _WARNING), expectation_rules.find_value_missing),
    (Rule("expected-value-unused", _WARNING, _WARNING), expectation_rules.find_value_unused),
    (Rule("actions-unreadable", _ERROR, _ERROR), expectation_rules.find_actions_unreadable),
    (Rule("parameter-missing", _ERROR, _ERROR), expectation_rules.find_parameter_missing),
    (Rule("parameter-unused", _ERROR, _ERROR), expectation_rules.find_parameter_unused),
    (Rule("parameter-unknown", _ERROR, _ERROR), expectation_rules.find_parameter_unknown),
    (Rule("parameter-twice", _ERROR, _ERROR), expectation_rules.find_parameter_twice),
    (Rule("operator-unknown", _ERROR, _ERROR), expectation_rules.find_operator_unknown),
    (Rule("number-invalid", _ERROR, _ERROR), expectation_rules.find_number_invalid),
    (Rule("reference-invalid", _ERROR, _ERROR), expectation_rules.find_reference_invalid),
    (Rule("reference-root", _ERROR, _ERROR), expectation_rules.find_reference_elsewhere),
    (Rule("parameter-too-long", _ERROR, _WARNING), expectation_rules.find_parameter_too_long),
)


_ROWS: Final = {row[0].code: row for row in EXPECTATION_RULES}


SCORER_RULES: Final[tuple[tuple[Rule, Callable[[Expectation], Iterator[Finding]]], ...]] = (
    (Rule("scorer-unknown", _WARNING, _WARNING), expectation_rules.find_unknown_scorer),
    _ROWS["expected-value-missing"],
    _ROWS["expected-value-unused"],
    (_ROWS["actions-unreadable"][0], expectation_rules.find_scorer_actions_unreadable),
)
_CUSTOM_SCORER_RULES: Final = ((_ROWS["expected-value-unused"][0], expectation_rules.find_custom_value),)


_NEEDS: Final = {
    "expectation-unknown": ("unknown",),
    "expected-value-missing": ("value",),
    "expected-value-unused": ("nothing", "parameters"),
    "actions-unreadable": ("value",),
    "parameter-unused": ("value", "nothing"),
}
"""Which kinds of expectation a rule is about, by what they need; rules without a row are about parameters."""


_RULES_BY_NEED: Final = {
    need: tuple(row for row in EXPECTATION_RULES if need in _NEEDS.get(row[0].code, ("parameters", "unknown")))
    for need in ("value", "nothing", "parameters", "unknown")
}


_CASE_RULES_ABOUT: Final = {
    "history": tuple(row for row in CASE_RULES if row[0].code.startswith("history-")),
    "variables": tuple(row for row in CASE_RULES if row[0].code.startswith("context-variable")),
}
_CASE_RULES_ALWAYS: Final = tuple(
    row for row in CASE_RULES if not any(row in rows for rows in _CASE_RULES_ABOUT.values())
)


_ALL_TESTING_RULES: Final = (*DEFINITION_RULES, *TESTING_RULES)
_CASE_RULES_OF_PROMPTS: Final = tuple(row for row in _CASE_RULES_ALWAYS if row[0].code != "utterance-empty")


def rules_for_definition(
    definition: Definition,
) -> tuple[tuple[Rule, Callable[[DefinitionScope], Iterator[Finding]]], ...]:
    """Gives the rules that a definition of its type can break as a whole."""
    return _ALL_TESTING_RULES if definition.type == TESTING_DEFINITION else DEFINITION_RULES


def rules_for_case(
    case: TestCase, *, subject_type: str
) -> Iterator[tuple[Rule, Callable[[TestCase], Iterator[Finding]]]]:
    """Gives the rules that a test case with what it has can break."""
    yield from _CASE_RULES_OF_PROMPTS if subject_type == "PROMPT" else _CASE_RULES_ALWAYS
    if case.inputs.context_variables:
        yield from _CASE_RULES_ABOUT["variables"]
    if case.inputs.conversation_history:
        yield from _CASE_RULES_ABOUT["history"]


_RULES_BY_NAME: Final = {name: _RULES_BY_NEED[kind.needs] for name in known_names() if (kind := expectation_kind(name))}


def rules_for(
    expectation: Expectation, kind: MetadataType
) -> tuple[tuple[Rule, Callable[[Expectation], Iterator[Finding]]], ...]:
    """Gives the rules that an expectation of its kind can break in a definition of a type."""
    if kind == TESTING_DEFINITION:
        return _CUSTOM_SCORER_RULES if expectation.is_custom else SCORER_RULES
    return _RULES_BY_NAME.get(expectation.name, _RULES_BY_NEED["unknown"])


PROJECT_RULES: Final[tuple[tuple[Rule, Callable[[Sequence[NamedFile]], Iterator[tuple[NamedFile, str, str]]]], ...]] = (
    (Rule("name-duplicate", _ERROR, _WARNING), definition_rules.find_names_twice),
)
"""Rules about the definitions of a project together."""


FIXED_CODES: Final = {
    "xml-malformed": "The file is well-formed XML.",
    "xml-doctype": "The file has no DOCTYPE.",
    "xml-encoding": "The file is UTF-8.",
    "xml-too-large": "The file is within the limits of size and number of elements.",
    "xml-too-deep": "Elements are nested within the depth limit.",
    "xml-root": "The root element and its namespace are the type's.",
    "element-unknown": "Every element is one the type has.",
    "element-missing": "Every required element is there.",
    "element-repeated": "An element that may stand once stands once.",
    "attribute-unknown": "Elements have no attributes.",
    "text-stray": "No text stands between elements.",
    "value-invalid": "Numbers, booleans and listed values are what they should be.",
    "number-duplicate": "A test case's number is unique in its definition.",
    "full-name-duplicate": "A full name stands for one file of a project.",
    "full-name-unsafe": "A full name can be the name of a file, and a file's name a full name.",
    "manifest-type-other": "A manifest that others read too may name their types.",
    "manifest-type-unknown": "A manifest names metadata types that evalmeta handles.",
    "manifest-member-missing": "A manifest's member has a file.",
    "manifest-member-empty": "A manifest's member is not blank.",
    "manifest-selects-nothing": "A manifest selects something.",
    "destructive-wildcard": "Destructive changes name every component that is to be deleted.",
    "manifest-version-missing": "A manifest says its API version.",
    "manifest-version-invalid": "A manifest's version is an API version.",
    "manifest-version-old": "A manifest's version knows the types it names.",
    "refused": "The org takes what is deployed.",
    "conflict": "Nothing is overwritten that somebody else has changed.",
    "forceignore-backslash": "Folders in .forceignore are parted by slashes.",
}
"""Codes that no setting and no profile changes, with the rule they stand for."""


def all_rules() -> tuple[tuple[Rule, str], ...]:
    """Lists every configurable rule with the first line of what it demands."""
    tables = (DEFINITION_RULES, TESTING_RULES, CASE_RULES, EXPECTATION_RULES, SCORER_RULES[:1], PROJECT_RULES)
    return tuple((rule, (check.__doc__ or "").partition("\n")[0]) for table in tables for rule, check in table)


CODES: Final = frozenset(rule.code for rule, _ in all_rules())


def _no_settings() -> Mapping[str, RuleSetting]:
    return {}


@dataclass(frozen=True, slots=True)
class Judgement:
    """How findings are weighed: a profile, and severities of single codes that override it."""

    profile: Profile = "documented"
    rules: Mapping[str, RuleSetting] = field(default_factory=_no_settings)

    @property
    def is_complete(self) -> bool:
        """Says whether no rule is switched off."""
        return "off" not in self.rules.values()

    def severity(self, rule: Rule) -> Severity | None:
        """Gives a rule's severity, None when it is switched off."""
        setting = self.rules.get(rule.code)
        if setting == "off":
            return None
        return Severity(setting) if setting else rule.severity(self.profile)


def judgement_of(settings: Settings | None) -> Judgement:
    """Takes the judgement from a project's settings, or the default one when there are none.

    Raises:
        SettingsError: a code that is no rule, or one that cannot be set.
    """
    if settings is None:
        return Judgement()
    for code in settings.validate_.rules:
        if code not in CODES:
            raise _no_rule(code)
    return Judgement(settings.validate_.profile, settings.validate_.rules)


def _no_rule(code: str) -> SettingsError:
    if code in FIXED_CODES:
        return SettingsError(
            f"evalmeta.toml: [validate.rules] sets {code!r}, which nothing changes", actions=[f"Remove {code!r}."]
        )
    close = get_close_matches(code, CODES, n=1)
    action = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(sorted(CODES))}."
    return SettingsError(f"evalmeta.toml: [validate.rules] names no rule {code!r}", actions=[action])


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
