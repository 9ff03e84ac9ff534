"""Definitions in, problems out, every one with its place.

What every check of a file begins with: its root and its extent; and how many of its problems are told.

Files that were found to be without problems, so that the same bytes need not be checked twice by one process.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import NEWEST_API_VERSION, TESTING_DEFINITION
from evalmeta.validation.definition_rules import DefinitionScope, NamedFile
from evalmeta.validation.finding import Complaint
from evalmeta.validation.rules import PROJECT_RULES, Judgement, Rule, rules_for, rules_for_case, rules_for_definition
from evalmeta.validation.structure import check_schema, tell_count
from evalmeta.xmlio.lenient_reader import sketch_definition
from evalmeta.xmlio.reader import NAMESPACE, local_name, read_xml

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from evalmeta.model.definition import Definition
    from evalmeta.model.registry import ApiVersion, MetadataType
    from evalmeta.validation.finding import Finding
    from evalmeta.xmlio.reader import Document, Step


# The end of xsi:type under any prefix; a namespace may be spelt with character references, a name may not.
_TYPE_ATTRIBUTE: Final = b":type"
_FAR_DOWN: Final = 10_000


class Checked(NamedTuple):
    """What a check found: a file's problems, and the file as others of its project see it.

    Attributes:
        clean: the key to remember the file by when no rule found anything.
    """

    problems: tuple[Problem, ...]
    file: NamedFile | None
    clean: bytes | None = None


def validate_component(
    kind: MetadataType,
    content: bytes,
    *,
    label: str,
    full_name: str,
    judgement: Judgement = Judgement(),  # noqa: B008 - immutable
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
        document = read_rooted(content, label, f"{{{NAMESPACE}}}{kind.name}")
    except InvalidMetadata as error:
        return Checked(tuple(_name_component(error.problems, component)), None)
    definition, complaints = _structure(document, kind)
    unread = {complaint.unread for complaint in complaints}
    scope = DefinitionScope(definition, full_name, api_version)
    found = first_problems(_weighed(scope, document, judgement, unread))
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


def read_rooted(data: bytes, label: str, root: str) -> Document:
    """Reads a file whose root element is known.

    Raises:
        InvalidMetadata: it is no XML, has another root, or an element with too many others in it.
    """
    document = read_xml(data, label=label)
    _check_root(document, root)
    # Every element has its tag: nothing needs counting where there are few.
    if data.count(b"<") > limits.MAX_XML_CHILDREN:
        _check_extent(document)
    return document


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


def first_problems(found: Iterable[Problem]) -> list[Problem]:
    """Takes as many problems as are told of one file, in its order; the last of them says when there are more."""
    found = iter(found)
    problems = sorted(islice(found, limits.MAX_PROBLEMS), key=lambda each: each.location)
    if next(found, None):
        more = f"There are more problems: {limits.MAX_PROBLEMS:,} are told of a file at a time."
        problems[-1] = replace(problems[-1], hint=f"{problems[-1].hint} {more}".lstrip())
    return problems


_CLEAN: Final[set[bytes]] = set()


def verdict_key(kind: MetadataType, content: bytes, *, full_name: str, api_version: ApiVersion) -> bytes:
    """Gives what a verdict depends on, as a hash: nothing else changes what the rules find in a file."""
    head = f"{kind.name} {full_name} {api_version}\n".encode("utf-8", "surrogatepass")
    return sha256(head + content).digest()


def is_clean(key: bytes) -> bool:
    """Tells whether a file was found to be without problems, whatever the profile."""
    return key in _CLEAN


def remember_clean(keys: Iterable[bytes]) -> None:
    """Remembers files that all rules were applied to, and none found anything in."""
    if len(_CLEAN) > limits.MAX_VERDICTS:
        _CLEAN.clear()
    _CLEAN.update(keys)
