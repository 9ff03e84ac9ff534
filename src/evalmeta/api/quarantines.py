"""Quarantines in `evalmeta.toml` that have ended, or that name no test or case of the project."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.api.discovery import search
from evalmeta.errors import EvalmetaError
from evalmeta.formats.document import Document, read_bytes, reading_of
from evalmeta.formats.files import read_document
from evalmeta.model.evaluation import ended_problem, evaluation_of, names_of_test, today
from evalmeta.model.problem import Location, Problem, Severity, quote
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.package.files import parse_test_name, shown
from evalmeta.package.folders import files_below, list_files
from evalmeta.package.project import SETTINGS_FILE, Project
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from evalmeta.model.settings import QuarantineSettings


class _Test(NamedTuple):
    """A test of the project: its name in runs, its type, and its file."""

    name: str
    kind: str
    path: Path


def listed_problems(project: Project) -> list[Problem]:
    """Return warnings about quarantines in `evalmeta.toml` that have ended, or that no test or case has."""
    listed = project.settings.quarantine
    if not listed:
        return []
    tests, keys_of = list(_tests(project)), cache(partial(_keys_of, project))
    entries = enumerate(listed)
    return [problem for place, entry in entries for problem in _problems(project, tests, keys_of, place, entry)]


def _problems(
    project: Project,
    tests: Sequence[_Test],
    keys_of: Callable[[_Test], frozenset[int | str] | None],
    place: int,
    entry: QuarantineSettings,
) -> Iterator[Problem]:
    from evalmeta.package.settings import place_of_key

    file = project.root / SETTINGS_FILE
    location = Location(shown(file), *place_of_key(file, ("quarantine", place)))
    found = [test for test in tests if entry.test in names_of_test(test.name, test.kind)]
    if not found:
        names = {name for test in tests for name in names_of_test(test.name, test.kind)}
        near = get_close_matches(entry.test, names, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "A test that only an org has is not checked."
        message = f"the quarantine names {quote(entry.test)}, and the project has no such test"
        yield Problem("quarantine-test", Severity.WARNING, location, message, hint)
    elif all(keys is not None and entry.case not in keys for keys in map(keys_of, found)):
        case = entry.case if isinstance(entry.case, int) else quote(entry.case)
        message = f"the quarantine names case {case}, which {entry.test} does not have"
        hint = "Correct its number, utterance or label, or remove the quarantine."
        yield Problem("quarantine-case", Severity.WARNING, location, message, hint)
    if entry.until < today():
        case = f"case {entry.case} of {entry.test}" if isinstance(entry.case, int) else f"a case of {entry.test}"
        yield ended_problem(location, case, entry.until)


def _tests(project: Project) -> Iterator[_Test]:
    for component in list_files(project):
        if component.type.is_test:
            yield _Test(component.full_name, component.type.name, component.path)
    for path in search(sorted(files_below(project.root))).tests:
        yield _Test(path.relative_to(project.root).as_posix(), EVALUATION_DEFINITION.name, path)


def _keys_of(project: Project, test: _Test) -> frozenset[int | str] | None:
    """Return the numbers, labels and utterances of a test's cases; None if it has errors."""
    try:
        cases = _document(project, test).evaluation.cases
    except EvalmetaError:
        return None
    keys: set[int | str] = set()
    for case in cases:
        keys.update((case.number, case.label), (turn.utterance for turn in case.turns))
    return frozenset(keys)


def _document(project: Project, test: _Test) -> Document:
    label = shown(test.path)
    if parse_test_name(test.path.name):
        definition = read_leniently(read_xml(read_bytes(test.path, limits.MAX_XML_BYTES), label=label))
        return Document(evaluation_of(definition, name=test.name))
    reading = reading_of(project.settings, root=project.root, is_asked=False)
    return read_document(test.path, label=label, name=test.name, reading=reading)
