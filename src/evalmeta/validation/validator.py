"""Validation of definitions and manifests: structure and rules, as problems with their locations."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.agent_scorer import AgentScorer
from evalmeta.model.bundle_content import split_files
from evalmeta.model.problem import Location, Problem, Severity, quote
from evalmeta.model.registry import (
    EVALUATION_DEFINITION,
    NEWEST_API_VERSION,
    SCORER_DEFINITION,
    TYPES,
    WILDCARD,
    is_other_type,
    metadata_type,
    nearest_type_name,
    parse_api_version,
)
from evalmeta.validation.agent_rules import AGENTS, SUBJECTS, VARIABLES, AgentScope, SubjectScope, VariableScope
from evalmeta.validation.bundle_rules import Bundle, check_bundle
from evalmeta.validation.definition_rules import PROJECTS, DefinitionScope, NamedFile
from evalmeta.validation.org_rules import ORGS, OrgScope, expectations_of_cases
from evalmeta.validation.rules import OF_ALL_EXPECTATIONS, RulePolicy, rules_for, rules_for_case, rules_for_definition
from evalmeta.xmlio.agent_scorers import read_agent_scorer
from evalmeta.xmlio.definitions import MANIFEST_ROOT, parse_definition, read_manifest
from evalmeta.xmlio.reader import NAMESPACE, Document, Step
from evalmeta.xmlio.repetitions import read_repetitions
from evalmeta.xmlio.structure import StructureProblem, check_structure, read_rooted

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from evalmeta.model.definition import Definition, TestCase
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
    """Return every problem of a component, in the order of its file; `label` is the name of the file in messages.

    The content of a bundle is that of all its files (`model/bundle_content.py`), and its label the name of its folder.

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
    """Validate a component as `validate_component` does, and return what `validate_together` needs."""
    component = f"{kind.name}:{full_name}"
    if kind.is_bundle:
        return _check_bundle(kind, content, label=label, full_name=full_name, policy=policy, api_version=api_version)
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
    org_scope = OrgScope(definition, expectations_of_cases(definition), policy.agents)
    of_orgs = [*applied(checks_of_orgs, org_scope), *_agent_findings(definition, policy)]
    by_rules = first_problems(_rule_problems(chain(_findings(scope), of_orgs), document, of_subject, unreadable))
    problems = _of_component([*(problem.problem for problem in structure), *by_rules], component)
    name = definition.name.strip()
    file = NamedFile(component, name, place_of_name) if name else None
    # Findings about orgs that are off here are not off everywhere.
    if problems or of_orgs or not policy.is_complete:
        return CheckedFile(tuple(problems), file, definition=definition)
    clean = clean_key(kind, content, full_name=full_name, api_version=api_version)
    return CheckedFile((), file, clean, definition)


def _check_bundle(
    kind: MetadataType, content: bytes, *, label: str, full_name: str, policy: RulePolicy, api_version: ApiVersion
) -> CheckedFile:
    bundle = Bundle(kind, full_name, split_files(content))
    problems = first_problems(check_bundle(bundle, label=label, severity_of=policy.severity))
    if problems or not policy.is_complete:
        return CheckedFile(tuple(_of_component(problems, f"{kind.name}:{full_name}")))
    return CheckedFile((), clean=clean_key(kind, content, full_name=full_name, api_version=api_version))


def validate_together(files: Sequence[NamedFile], policy: RulePolicy) -> list[Problem]:
    """Return the problems that only the definitions of a project together have."""
    return [
        Problem(rule.code, severity, file.location, message, hint, file.component)
        for rule, find in PROJECTS.checks()
        if (severity := policy.severity(rule)) is not None
        for file, message, hint in find(files)
    ]


def _agent_findings(definition: Definition, policy: RulePolicy) -> Iterator[tuple[Rule, Finding]]:
    """Yield what a definition names and the files of its agent do not have; once for expectations that are shared."""
    agent, agents = definition.subject_name.strip(), policy.agents
    if agents is None or not agent or definition.subject_type != "AGENT":
        return
    yield from applied(SUBJECTS.checks(), SubjectScope(agent, agents))
    for number, case in enumerate(definition.test_cases):
        for place, variable in enumerate(case.inputs.context_variables):
            for rule, finding in applied(VARIABLES.checks(), VariableScope(variable.name, agent, agents)):
                steps = (("testCase", number), ("inputs", 0), ("contextVariable", place), *finding.steps)
                yield rule, finding._replace(steps=steps)
    names = agents.agent_names(agent)
    if names is None:
        return
    for expectations, cases in expectations_of_cases(definition):
        for place, expectation in enumerate(expectations):
            for rule, finding in applied(AGENTS.checks(), AgentScope(expectation, agent, names)):
                steps = (("testCase", cases[0]), (definition.type.expectation, place), *finding.steps)
                yield rule, finding._replace(steps=steps)


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
            yield Problem(rule.code, severity, location, finding.message, hint_of(rule, finding, severity, policy))


def _findings(scope: DefinitionScope) -> Iterator[tuple[Rule, Finding]]:
    kind = scope.definition.type
    yield from applied(rules_for_definition(scope.definition), scope)
    # Test cases may share all their expectations, or some of them.
    known: _Known = {}
    for place, case in enumerate(scope.definition.test_cases):
        of_case = list(applied(rules_for_case(case, subject_type=scope.definition.subject_type), case))
        key = id(case.expectations)
        if key not in known:
            known[key] = list(_expectation_findings(case, kind, known))
        for rule, finding in (*of_case, *known[key]):
            yield rule, finding._replace(steps=(("testCase", place), *finding.steps))


_Known: TypeAlias = "dict[int, list[tuple[Rule, Finding]]]"


def _expectation_findings(case: TestCase, kind: MetadataType, known: _Known) -> Iterator[tuple[Rule, Finding]]:
    """Yield what is found in the expectations of a test case; `known` has the findings by the ids of expectations."""
    for rule, finding in applied(OF_ALL_EXPECTATIONS, case):
        # Rules call expectations by one name, files by the name of their type.
        (_, index), *below = finding.steps
        yield rule, finding._replace(steps=((kind.expectation, index), *below))
    for index, expectation in enumerate(case.expectations):
        key = id(expectation)
        if key not in known:
            known[key] = list(applied(rules_for(expectation, kind), expectation))
        for rule, finding in known[key]:
            yield rule, finding._replace(steps=((kind.expectation, index), *finding.steps))


def applied(checks: Iterable[tuple[Rule, Check[_Thing, Finding]]], thing: _Thing) -> Iterator[tuple[Rule, Finding]]:
    """Yield what rules find in a thing, each finding with its rule."""
    for rule, find in checks:
        for finding in find(thing):
            yield rule, finding


def hint_of(rule: Rule, finding: Finding, severity: Severity, policy: RulePolicy) -> str:
    """Return the hint of a finding; that of an error which orgs accept says how to accept it too."""
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
