"""Validation of definitions and manifests: structure and rules, as problems with their locations."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.agent_scorer import AgentScorer
from evalmeta.model.problem import Location, Problem, Severity, quote
from evalmeta.model.registry import (
    EVALUATION_DEFINITION,
    NEWEST_API_VERSION,
    SCORER_DEFINITION,
    TESTING_DEFINITION,
    TYPES,
    WILDCARD,
    is_other_type,
    metadata_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.plugins import is_check
from evalmeta.validation.case_rules import CASES
from evalmeta.validation.definition_rules import PROJECTS, DefinitionScope, NamedFile
from evalmeta.validation.org_rules import ORGS, OrgScope
from evalmeta.validation.rules import RulePolicy, rules_for, rules_for_case, rules_for_definition
from evalmeta.xmlio.agent_scorers import read_agent_scorer
from evalmeta.xmlio.definitions import MANIFEST_ROOT, parse_definition, read_manifest
from evalmeta.xmlio.reader import NAMESPACE, Document, Step, local_name, read_xml
from evalmeta.xmlio.repetitions import read_repetitions
from evalmeta.xmlio.structure import StructureProblem, check_structure

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.definition import Definition
    from evalmeta.model.evaluation import Case
    from evalmeta.model.registry import ApiVersion, Manifest, MetadataType
    from evalmeta.validation.rule import Check, Finding, Rule


_Thing = TypeVar("_Thing")
_FAR_DOWN: Final = 10_000
# The hashes of files without problems, so that one process does not check the same bytes twice.
_CLEAN: Final[set[bytes]] = set()


class CheckedFile(NamedTuple):
    """A checked file: its problems, and what other files of the project need to know about it."""

    problems: tuple[Problem, ...]
    file: NamedFile | None = None  # None if the definition has no name
    clean: bytes | None = None  # the key for `remember_clean`; None if the file has problems, or a rule is off
    definition: Definition | None = None  # None if the file is not XML with the root element of its type


def validate_component(
    kind: MetadataType,
    content: bytes,
    *,
    label: str,
    full_name: str,
    policy: RulePolicy = RulePolicy(),  # noqa: B008 - immutable
    api_version: ApiVersion = NEWEST_API_VERSION,
) -> list[Problem]:
    """Return every problem of a component's file, in the order of the file; `label` is its name in messages.

    Bytes in which this process has found no problem before are not checked again.
    """
    if is_clean(clean_key(kind, content, full_name=full_name, api_version=api_version)):
        return []
    checked = check_component(kind, content, label=label, full_name=full_name, policy=policy, api_version=api_version)
    if checked.clean:
        remember_clean([checked.clean])
    return list(checked.problems)


def check_component(
    kind: MetadataType, content: bytes, *, label: str, full_name: str, policy: RulePolicy, api_version: ApiVersion
) -> CheckedFile:
    """Validate a component's file as `validate_component` does, and return what `validate_together` needs."""
    component = f"{kind.name}:{full_name}"
    usual = read_repetitions(content, label=label) if kind == EVALUATION_DEFINITION else None
    if usual:
        document, structure = Document(label=label, data=content), list[StructureProblem]()
        definition, place_of_name = usual.definition, Location(label, *usual.place_of_name)
    else:
        try:
            document = read_rooted(content, label, f"{{{NAMESPACE}}}{kind.name}")
        except InvalidMetadata as error:
            return CheckedFile(tuple(_of_component(error.problems, component)))
        definition, structure = parse_definition(document, kind)
        place_of_name = _location_of_name(document)
    unreadable = {problem.unreadable for problem in structure}
    scorer = read_agent_scorer(document) if kind == SCORER_DEFINITION else AgentScorer()
    scope = DefinitionScope(definition, full_name, api_version, scorer)
    of_subject = policy.for_subject(definition.subject_name)
    # How orgs run the other types has not been measured.
    checks_of_orgs = ORGS.checks() if definition.type == EVALUATION_DEFINITION else ()
    of_orgs = list(_applied(checks_of_orgs, OrgScope(definition, policy.declared_variables)))
    by_rules = first_problems(_rule_problems(chain(_findings(scope), of_orgs), document, of_subject, unreadable))
    problems = _of_component([*(problem.problem for problem in structure), *by_rules], component)
    name = definition.name.strip()
    file = NamedFile(component, name, place_of_name) if name else None
    # Findings about orgs that are off here are not off everywhere.
    if problems or of_orgs or not policy.is_complete:
        return CheckedFile(tuple(problems), file, definition=definition)
    clean = clean_key(kind, content, full_name=full_name, api_version=api_version)
    return CheckedFile((), file, clean, definition)


def validate_together(files: Sequence[NamedFile], policy: RulePolicy) -> list[Problem]:
    """Return the problems that only the definitions of a project together have."""
    return [
        Problem(rule.code, severity, file.location, message, hint, file.component)
        for rule, find in PROJECTS.checks()
        if (severity := policy.severity(rule)) is not None
        for file, message, hint in find(files)
    ]


_EXPECTATIONS_MISSING: Final = CASES.rules()["expectations-missing"]


def check_expectations(
    cases: Iterable[Case], policy: RulePolicy, *, label: str, lines: Mapping[int, int], files: Mapping[int, str]
) -> list[Problem]:
    """Return the problems of the expectations of cases that no definition contains, also that a case has none.

    `lines` has the line of each case by its number, and `files` the other files that have some of them.
    """
    problems: list[Problem] = []
    for case in cases:
        location = Location(files.get(case.number, label), lines.get(case.number, 0))
        severity = policy.severity(_EXPECTATIONS_MISSING)
        expectations = [expectation for turn in case.turns for expectation in turn.expectations]
        if severity and not expectations:
            hint = "Add a check, such as contains; without one, nothing is tested."
            message = "the test case has no expectation"
            problems.append(Problem(_EXPECTATIONS_MISSING.code, severity, location, message, hint))
        for expectation in expectations:
            if is_check(expectation.name):
                continue
            kind = TESTING_DEFINITION if expectation.scorer_type else EVALUATION_DEFINITION
            for rule, finding in _applied(rules_for(expectation, kind), expectation):
                if severity := policy.severity(rule):
                    hint = _hint(rule, finding, severity, policy)
                    problems.append(Problem(rule.code, severity, location, finding.message, hint))
    return problems


def read_rooted(data: bytes, label: str, root: str) -> Document:
    """Return the document of a file; raise InvalidMetadata if it cannot be read or has another root."""
    document = read_xml(data, label=label)
    if document.root.tag != root:
        actual, name = local_name(document.root), root.rpartition("}")[2]
        message = f"the root element is <{actual}>, not <{name}>"
        if actual == name:
            message = f"<{name}> is not in the namespace {NAMESPACE}"
        raise _invalid("xml-root", document.location(), message, f'Begin the file with <{name} xmlns="{NAMESPACE}">.')
    # Every element has its tag: a file with few tags cannot have an element with many children.
    if data.count(b"<") > limits.MAX_XML_CHILDREN:
        widest = max(document.root.iter(), key=len)
        if len(widest) > limits.MAX_XML_CHILDREN:
            count = f"<{local_name(widest)}> contains {len(widest):,} elements"
            message = f"{count}; at most {limits.MAX_XML_CHILDREN:,} are allowed"
            raise _invalid("xml-too-large", document.location(widest), message, "Split the file into several files.")
    return document


def first_problems(reported: Iterable[Problem]) -> list[Problem]:
    """Return the problems that are reported of one file, by location; the last one says if there are more."""
    reported = iter(reported)
    problems = sorted(islice(reported, limits.MAX_PROBLEMS), key=lambda problem: problem.location)
    if next(reported, None):
        more = f"There are more problems; at most {limits.MAX_PROBLEMS:,} of a file are reported at a time."
        problems[-1] = replace(problems[-1], hint=f"{problems[-1].hint} {more}".lstrip())
    return problems


def clean_key(kind: MetadataType, content: bytes, *, full_name: str, api_version: ApiVersion) -> bytes:
    """Return a hash of everything that decides what the rules find in a file."""
    head = f"{kind.name} {full_name} {api_version}\n".encode("utf-8", "surrogatepass")
    return sha256(head + content).digest()


def is_clean(key: bytes) -> bool:
    """Return whether this process has found no problem in a file, under any profile."""
    return key in _CLEAN


def remember_clean(keys: Iterable[bytes]) -> None:
    """Remember files in which no rule found a problem; every rule must have been applied."""
    if len(_CLEAN) > limits.MAX_VERDICTS:
        _CLEAN.clear()
    _CLEAN.update(keys)


def _invalid(code: str, location: Location, message: str, hint: str) -> InvalidMetadata:
    problem = Problem(code, Severity.ERROR, location, message, hint)
    return InvalidMetadata(str(problem), problems=[problem], actions=[hint])


def _rule_problems(
    findings: Iterable[tuple[Rule, Finding]],
    document: Document,
    policy: RulePolicy,
    unreadable: Container[Location | None],
) -> Iterator[Problem]:
    for rule, finding in findings:
        severity = policy.severity(rule)
        if severity is None:
            continue
        location = document.location(document.find(finding.steps))
        if not finding.steps or location not in unreadable:
            yield Problem(rule.code, severity, location, finding.message, _hint(rule, finding, severity, policy))


def _findings(scope: DefinitionScope) -> Iterator[tuple[Rule, Finding]]:
    kind = scope.definition.type
    yield from _applied(rules_for_definition(scope.definition), scope)
    # Test cases may share an expectation, and no rule looks at more than one.
    found: dict[int, list[tuple[Rule, Finding]]] = {}
    for place, case in enumerate(scope.definition.test_cases):
        case_step = ("testCase", place)
        for rule, finding in _applied(rules_for_case(case, subject_type=scope.definition.subject_type), case):
            # Rules call expectations by one name, files by the name of their type.
            below = ((kind.expectation if name == "expectation" else name, index) for name, index in finding.steps)
            yield rule, finding._replace(steps=(case_step, *below))
        for index, expectation in enumerate(case.expectations):
            key = id(expectation)
            if key not in found:
                found[key] = list(_applied(rules_for(expectation, kind), expectation))
            for rule, finding in found[key]:
                yield rule, finding._replace(steps=(case_step, (kind.expectation, index), *finding.steps))


def _applied(checks: Iterable[tuple[Rule, Check[_Thing, Finding]]], thing: _Thing) -> Iterator[tuple[Rule, Finding]]:
    for rule, find in checks:
        for finding in find(thing):
            yield rule, finding


def _hint(rule: Rule, finding: Finding, severity: Severity, policy: RulePolicy) -> str:
    is_by_profile = policy.profile == "documented" and rule.code not in policy.rules
    if not is_by_profile or severity is rule.orgs:
        return finding.hint
    setting = f'{rule.code} = "warning"'
    return f"{finding.hint} To accept it, as orgs do, set {setting} under [validate.rules] in evalmeta.toml."


def _of_component(problems: Iterable[Problem], component: str) -> list[Problem]:
    named = [replace(problem, component=component) for problem in problems]
    return sorted(named, key=lambda problem: problem.location)


def _location_of_name(document: Document) -> Location:
    """Return the location of `<name>` without indexing the whole file, as `Document.location` does on first use."""
    element = document.root.find(f"{{{NAMESPACE}}}name")
    line = 1 if element is None else element.sourceline or 1
    if line > _FAR_DOWN:
        return document.location(element)
    start = 0
    for _ in range(line - 1):
        start = document.data.find(b"\n", start) + 1
    end = document.data.find(b"<name", start)
    return Location(document.label, line, len(document.data[start:end].decode("utf-8", "replace")) + 1)


def validate_manifest(
    data: bytes, *, label: str, destructive: bool = False, mixed: bool = False
) -> tuple[Manifest | None, list[Problem]]:
    """Return a manifest and its problems; the manifest is None if it cannot be read.

    A `destructive` manifest names every component to delete and needs no version. A `mixed` one may name Salesforce
    types that evalmeta does not support, with a warning.
    """
    try:
        document = read_rooted(data, label, MANIFEST_ROOT)
    except InvalidMetadata as error:
        return None, list(error.problems)
    structure = check_structure(document, "package.xsd")
    if structure:
        return None, [problem.problem for problem in structure]
    manifest = read_manifest(document)
    check_rest = _check_wildcards if destructive else _check_version
    problems = chain(_check_types(manifest, document, mixed=mixed), check_rest(manifest, document))
    return manifest, first_problems(problems)


def _check_types(manifest: Manifest, document: Document, *, mixed: bool) -> Iterator[Problem]:
    for place, types in enumerate(manifest.types):
        if metadata_type(types.name) is None:
            step = ("name", 0)
            if mixed and is_other_type(types.name):
                message = f"the type {quote(types.name)} is not supported by evalmeta and is skipped"
                hint = "Use the sf CLI for it."
                yield _manifest_problem(document, place, step, "manifest-type-other", message, hint, Severity.WARNING)
            else:
                near = nearest_type_name(types.name)
                supported = ", ".join(row.name for row in TYPES)
                hint = f"Did you mean {near}?" if near else f"Use a separate manifest for {supported}."
                message = f"the metadata type {quote(types.name)} is not supported by evalmeta"
                yield _manifest_problem(document, place, step, "manifest-type-unknown", message, hint)
        for index, member in enumerate(types.members):
            if not member:
                hint = "Name a component, or write * for all components of the type."
                yield _manifest_problem(
                    document, place, ("members", index), "manifest-member-empty", "a member is empty", hint
                )


def _check_wildcards(manifest: Manifest, document: Document) -> Iterator[Problem]:
    for place, types in enumerate(manifest.types):
        for index, member in enumerate(types.members):
            if WILDCARD in member:
                message = f"destructive changes cannot use wildcards, such as {quote(member)}"
                hint = "Name each component to delete."
                yield _manifest_problem(document, place, ("members", index), "destructive-wildcard", message, hint)


def _check_version(manifest: Manifest, document: Document) -> Iterator[Problem]:
    if manifest.version is None:
        hint = f"Add <version>{NEWEST_API_VERSION}</version>."
        location = document.location()
        yield Problem("manifest-version-missing", Severity.ERROR, location, "the manifest has no <version>", hint)
        return
    location = document.location(document.find([("version", 0)]))
    version = parse_api_version(manifest.version)
    if version is None:
        message = f"{quote(manifest.version)} is not a valid API version"
        yield Problem("manifest-version-invalid", Severity.ERROR, location, message, f"Write {NEWEST_API_VERSION}.")
        return
    known = [row for types in manifest.types if (row := metadata_type(types.name))]
    newest = max(known, key=lambda row: row.since, default=None if manifest.types else TYPES[0])
    if newest and version < newest.since:
        message = f"{newest.name} requires API version {newest.since} or later; the manifest has {version}"
        hint = f"Write <version>{newest.since}</version>."
        yield Problem("manifest-version-old", Severity.ERROR, location, message, hint)


def _manifest_problem(
    document: Document, place: int, step: Step, code: str, message: str, hint: str, severity: Severity = Severity.ERROR
) -> Problem:
    """Return a problem at an element of the manifest's nth `<types>`."""
    return Problem(code, severity, document.location(document.find([("types", place), step])), message, hint)
