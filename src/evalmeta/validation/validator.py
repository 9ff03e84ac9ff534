"""Definitions and manifests in, problems out, every one with its place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import InvalidMetadata, SettingsError
from evalmeta.model.manifest import WILDCARD
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import (
    NEWEST_API_VERSION,
    TESTING_DEFINITION,
    TYPES,
    is_other_type,
    metadata_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.validation.definition_rules import DefinitionScope
from evalmeta.validation.finding import Complaint, quote
from evalmeta.validation.project_rules import NamedFile
from evalmeta.validation.rules import (
    CODES,
    FIXED_CODES,
    PROJECT_RULES,
    Rule,
    rules_for,
    rules_for_case,
    rules_for_definition,
)
from evalmeta.validation.schema import check_schema
from evalmeta.validation.verdicts import is_clean, remember_clean, verdict_key
from evalmeta.validation.wording import tell_count
from evalmeta.xmlio.document import local_name
from evalmeta.xmlio.reader import NAMESPACE, read_xml
from evalmeta.xmlio.sketch import sketch_definition

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.definition import Definition
    from evalmeta.model.manifest import Manifest
    from evalmeta.model.registry import ApiVersion, MetadataType
    from evalmeta.model.settings import Profile, RuleSetting, Settings
    from evalmeta.validation.finding import Finding
    from evalmeta.xmlio.document import Document, Step

__all__ = [
    "Checked",
    "Judgement",
    "check_component",
    "judgement_of",
    "validate_component",
    "validate_manifest",
    "validate_together",
]

# The end of xsi:type under any prefix; a namespace may be spelt with character references, a name may not.
_TYPE_ATTRIBUTE: Final = b":type"
_MANIFEST_XSD: Final = "package.xsd"
_FAR_DOWN: Final = 10_000


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


class Checked(NamedTuple):
    """What a check found: a file's problems, and the file as others of its project see it.

    Attributes:
        clean: the key to remember the file by when no rule found anything.
    """

    problems: tuple[Problem, ...]
    file: NamedFile | None
    clean: bytes | None = None


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


def validate_component(
    kind: MetadataType,
    content: bytes,
    *,
    label: str,
    full_name: str,
    judgement: Judgement = Judgement(),
    api_version: ApiVersion = NEWEST_API_VERSION,
) -> list[Problem]:
    """Lists every problem of a component's file, in the order of the file.

    Args:
        kind: the component's type.
        content: the file's bytes.
        label: the file's name as messages show it.
        full_name: the component's full name, which the file's name gives.
        judgement: which findings are errors.
        api_version: the version in force.

    Bytes that this process has found to be without problems are not checked again.
    """
    if is_clean(verdict_key(kind, content, full_name=full_name, api_version=api_version)):
        return []
    checked = check_component(
        kind, content, label=label, full_name=full_name, judgement=judgement, api_version=api_version
    )
    if checked.clean:
        remember_clean([checked.clean])
    return list(checked.problems)


def check_component(
    kind: MetadataType, content: bytes, *, label: str, full_name: str, judgement: Judgement, api_version: ApiVersion
) -> Checked:
    """Does what `validate_component` does, and gives what `validate_together` needs of the file."""
    component = f"{kind.name}:{full_name}"
    try:
        document = _read(content, label, f"{{{NAMESPACE}}}{kind.name}")
    except InvalidMetadata as error:
        return Checked(tuple(_name_component(error.problems, component)), None)
    definition, complaints = _structure(document, kind)
    unread = {complaint.unread for complaint in complaints}
    scope = DefinitionScope(definition, full_name, api_version)
    found = _first(_weighed(scope, document, judgement, unread))
    problems = _name_component([*(complaint.problem for complaint in complaints), *found], component)
    name = definition.name.strip()
    file = NamedFile(component, name, _name_place(document)) if name else None
    if problems or not judgement.is_complete:
        return Checked(tuple(problems), file)
    return Checked((), file, verdict_key(kind, content, full_name=full_name, api_version=api_version))


def validate_together(files: Sequence[NamedFile], judgement: Judgement) -> list[Problem]:
    """Lists what is wrong with the definitions of a project taken together."""
    problems = []
    for rule, find in PROJECT_RULES:
        severity = judgement.severity(rule)
        if severity is not None:
            problems += [
                Problem(rule.code, severity, file.location, message, hint, file.component)
                for file, message, hint in find(files)
            ]
    return problems


def validate_manifest(
    data: bytes, *, label: str, destructive: bool = False, mixed: bool = False
) -> tuple[Manifest | None, list[Problem]]:
    """Reads a manifest and lists its problems; the manifest is None when it cannot be read.

    Args:
        data: the file's bytes.
        label: the file's name as messages show it.
        destructive: whether it says what to delete: every component by its name, and no version is needed.
        mixed: whether it may name types of Salesforce's own that evalmeta does not handle, with a warning.
    """
    from evalmeta.xmlio.manifests import MANIFEST_ROOT, read_manifest  # noqa: PLC0415 - definitions do without

    try:
        document = _read(data, label, MANIFEST_ROOT)
    except InvalidMetadata as error:
        return None, list(error.problems)
    complaints = check_schema(document, _MANIFEST_XSD)
    if complaints:
        return None, [complaint.problem for complaint in complaints]
    manifest = read_manifest(document)
    check_rest = _check_wildcards if destructive else _check_version
    found = chain(_check_types(manifest, document, mixed=mixed), check_rest(manifest, document))
    return manifest, _first(found)


def _read(data: bytes, label: str, root: str) -> Document:
    document = read_xml(data, label=label)
    _check_root(document, root)
    # Every element has its tag: nothing needs counting where there are few.
    if data.count(b"<") > limits.MAX_XML_CHILDREN:
        _check_extent(document)
    return document


def _structure(document: Document, kind: MetadataType) -> tuple[Definition, list[Complaint]]:
    """Reads a definition, or what can be read of it, and lists what does not fit the type."""
    definition = sketch_definition(document)
    complaints = check_schema(document, kind.xsd)
    if kind == TESTING_DEFINITION:
        complaints += islice(_count_inputs(document), limits.MAX_PROBLEMS)
    if not complaints and _is_beyond_doubt(document, definition):
        return definition, []
    if not complaints:
        from evalmeta.xmlio.definitions import read_definition  # noqa: PLC0415 - for documents in doubt only

        try:
            return read_definition(document), []
        except InvalidMetadata as error:
            # Stricter than libxml2, which takes -0 for another number than 0 and obeys xsi:type.
            complaints = [Complaint(problem, problem.location) for problem in error.problems]
    return definition, complaints


def _count_inputs(document: Document) -> Iterator[Complaint]:
    """Finds test cases without inputs, or with more than one: no schema can say it where agents and prompts differ."""
    inputs = f"{{{NAMESPACE}}}inputs"
    for case in document.root.iterfind(f"{{{NAMESPACE}}}testCase"):
        if len(case.findall(inputs)) != 1:
            yield from tell_count(document, case, "inputs")


def _is_beyond_doubt(document: Document, definition: Definition) -> bool:
    """Tells whether libxml2's word is enough: no xsi:type, no number that stands twice."""
    numbers = [case.number for case in definition.test_cases if case.number is not None]
    return _TYPE_ATTRIBUTE not in document.data and len(set(numbers)) == len(numbers)


def _name_place(document: Document) -> Location:
    """Places `<name>` without looking at the whole file, as `Document.location` would for the first problem."""
    element = document.root.find(f"{{{NAMESPACE}}}name")
    line = 1 if element is None else element.sourceline or 1
    start = 0
    if line > _FAR_DOWN:
        return document.location(element)
    for _ in range(line - 1):
        start = document.data.find(b"\n", start) + 1
    end = document.data.find(b"<name", start)
    return Location(document.label, line, len(document.data[start:end].decode("utf-8", "replace")) + 1)


def _weighed(
    scope: DefinitionScope, document: Document, judgement: Judgement, unread: Container[Location | None]
) -> Iterator[Problem]:
    for rule, finding in _findings(scope):
        severity = judgement.severity(rule)
        if severity is None:
            continue
        location = document.location(document.find(finding.steps))
        if not finding.steps or location not in unread:
            yield Problem(rule.code, severity, location, finding.message, _hint(rule, finding, judgement))


def _findings(scope: DefinitionScope) -> Iterator[tuple[Rule, Finding]]:
    kind = scope.definition.type
    for definition_rule, find_in_definition in rules_for_definition(scope.definition):
        for finding in find_in_definition(scope):
            yield definition_rule, finding
    for place, case in enumerate(scope.definition.test_cases):
        case_step = ("testCase", place)
        for case_rule, find_in_case in rules_for_case(case, subject_type=scope.definition.subject_type):
            for finding in find_in_case(case):
                yield case_rule, finding._replace(steps=(case_step, *_spelt(finding.steps, kind)))
        for index, expectation in enumerate(case.expectations):
            for expectation_rule, find_in_expectation in rules_for(expectation, kind):
                for finding in find_in_expectation(expectation):
                    steps = (case_step, (kind.expectation, index), *finding.steps)
                    yield expectation_rule, finding._replace(steps=steps)


def _spelt(steps: Sequence[Step], kind: MetadataType) -> Iterator[Step]:
    """Gives the way inside a test case with a type's own name for expectations."""
    return ((kind.expectation if name == "expectation" else name, index) for name, index in steps)


def _hint(rule: Rule, finding: Finding, judgement: Judgement) -> str:
    if rule.documented is rule.orgs or judgement.severity(rule) is Severity.WARNING:
        return finding.hint
    return f'{finding.hint} Orgs accept it; {rule.code} = "warning" under [validate.rules] in evalmeta.toml does too.'


def _name_component(problems: Iterable[Problem], component: str) -> list[Problem]:
    named = [Problem(each.code, each.severity, each.location, each.message, each.hint, component) for each in problems]
    return sorted(named, key=lambda problem: problem.location)


def _check_root(document: Document, expected: str) -> None:
    if document.root.tag == expected:
        return
    name = expected.rpartition("}")[2]
    found = local_name(document.root)
    if found == name:
        message = f"<{name}> is not in the namespace {NAMESPACE}"
    else:
        message = f"the root element is <{found}>; <{name}> is due"
    hint = f'Begin the file with <{name} xmlns="{NAMESPACE}">.'
    problem = Problem("xml-root", Severity.ERROR, document.location(), message, hint)
    raise InvalidMetadata(str(problem), problems=[problem], actions=[hint])


def _check_extent(document: Document) -> None:
    widest = max(document.root.iter(), key=len)
    if len(widest) <= limits.MAX_XML_CHILDREN:
        return
    message = f"<{local_name(widest)}> holds {len(widest):,} elements; at most {limits.MAX_XML_CHILDREN:,} are read"
    hint = "Split the file into several."
    problem = Problem("xml-too-large", Severity.ERROR, document.location(widest), message, hint)
    raise InvalidMetadata(str(problem), problems=[problem], actions=[hint])


def _first(found: Iterable[Problem]) -> list[Problem]:
    """Takes as many problems as are told of one file, in its order; the last of them says when there are more."""
    found = iter(found)
    problems = sorted(islice(found, limits.MAX_PROBLEMS), key=lambda each: each.location)
    if next(found, None):
        more = f"There are more problems: {limits.MAX_PROBLEMS:,} are told of a file at a time."
        problems[-1] = replace(problems[-1], hint=f"{problems[-1].hint} {more}".lstrip())
    return problems


def _check_types(manifest: Manifest, document: Document, *, mixed: bool) -> Iterator[Problem]:
    for place, types in enumerate(manifest.types):
        if metadata_type(types.name) is None:
            location = document.location(document.find([("types", place), ("name", 0)]))
            tell = _other_type if mixed and is_other_type(types.name) else _unknown_type
            yield tell(types.name, location)
        for index, member in enumerate(types.members):
            if not member:
                location = document.location(document.find([("types", place), ("members", index)]))
                hint = "Name a component, or write * for all of the type."
                yield Problem("manifest-member-empty", Severity.ERROR, location, "a member is empty", hint)


def _other_type(name: str, location: Location) -> Problem:
    message = f"the type {quote(name)} is left out: it is none that evalmeta handles"
    return Problem("manifest-type-other", Severity.WARNING, location, message, "Leave it to the sf CLI.")


def _unknown_type(name: str, location: Location) -> Problem:
    near = nearest_type_name(name)
    handled = ", ".join(row.name for row in TYPES)
    hint = f"Did you mean {near}?" if near else f"Keep a manifest of its own for {handled}."
    message = f"the metadata type {quote(name)} is not one that evalmeta handles"
    return Problem("manifest-type-unknown", Severity.ERROR, location, message, hint)


def _check_wildcards(manifest: Manifest, document: Document) -> Iterator[Problem]:
    for place, types in enumerate(manifest.types):
        for index, member in enumerate(types.members):
            if WILDCARD in member:
                location = document.location(document.find([("types", place), ("members", index)]))
                message = f"destructive changes take no wildcard, and {quote(member)} is one"
                hint = "Name each component that is to be deleted."
                yield Problem("destructive-wildcard", Severity.ERROR, location, message, hint)


def _check_version(manifest: Manifest, document: Document) -> Iterator[Problem]:
    if manifest.version is None:
        hint = f"Add <version>{NEWEST_API_VERSION}</version>."
        location = document.location()
        yield Problem("manifest-version-missing", Severity.ERROR, location, "the manifest has no <version>", hint)
        return
    location = document.location(document.find([("version", 0)]))
    version = parse_api_version(manifest.version)
    if version is None:
        message = f"{quote(manifest.version)} is no API version"
        hint = f"Write it as {NEWEST_API_VERSION}."
        yield Problem("manifest-version-invalid", Severity.ERROR, location, message, hint)
        return
    known = [row for types in manifest.types if (row := metadata_type(types.name))]
    newest = max(known, key=lambda row: row.since, default=None if manifest.types else TYPES[0])
    if newest and version < newest.since:
        message = f"{newest.name} needs API version {newest.since} or later; the manifest says {version}"
        hint = f"Write <version>{newest.since}</version>."
        yield Problem("manifest-version-old", Severity.ERROR, location, message, hint)
