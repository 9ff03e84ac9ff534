"""The tests in folders, tests in other formats than a definition's, and the specs that definitions were made from."""

from __future__ import annotations

import os
import re
from collections import ChainMap
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from evalmeta import limits
from evalmeta.errors import (
    EvalmetaError,
    FormatError,
    InvalidMetadata,
    NotFound,
    ProjectError,
    SettingsError,
    Suggestion,
)
from evalmeta.formats.document import SPEC_NAMES, TABLE_NAMES, Document, Reading, read_bytes, reading_of
from evalmeta.formats.files import format_of, kind_of_file, read_document
from evalmeta.formats.registry import FileKind, settings_files
from evalmeta.formats.testing_center_csv import read_testing_center_csv
from evalmeta.model.difference import compare
from evalmeta.model.evaluation import ended_problem, review_problem, today
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.agent_files import DOUBLES, RULES, agents_of
from evalmeta.package.files import parse_test_name, shown, slash_hint
from evalmeta.package.folders import files_below, find_components
from evalmeta.package.project import PROJECT_FILE, find_project
from evalmeta.report.problems import excerpts_text
from evalmeta.report.text import and_more
from evalmeta.validation.other_tests import check_expectations, check_subject
from evalmeta.validation.rules import RulePolicy, rule_policy
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from evalmeta.formats.testspec import Spec
    from evalmeta.model.definition import Definition
    from evalmeta.package.agent_files import AgentFiles
    from evalmeta.validation.other_tests import FindPlace


_Test = TypeVar("_Test")

_FOUND: Final = """\
A test is a definition (XML), a test spec (YAML), a table or JSON Lines with the keys of test cases, a table of the \
Testing Center (CSV), or an eval set (JSON)."""
_SHOWN_FILES: Final = 3
_NO_COLUMNS: Final[Mapping[str, str]] = MappingProxyType({})


class FoundTests(NamedTuple):
    """The tests in files and folders, each once, and the other YAML, JSON, JSON Lines and CSV files, and why.

    `sources` are the specs and tables in folders that are not run, because their definitions are, which are the values.
    """

    paths: list[Path]
    sources: Mapping[Path, Path]
    others: Mapping[Path, str]


def find_tests(paths: Sequence[Path]) -> FoundTests:
    """Find the tests in files and folders: definitions, and other files that are tests, also those with mistakes.

    The definitions of a project's root are those of the project. A spec or table in a folder is not run if its
    definition is found too, nor a file with test cases that a spec names.
    """
    searched = [_tests_in(path) for path in paths]
    named = {os.path.realpath(path) for path in paths}
    tests, others = without_parts(all_of(searched), named)
    sources = sources_of(tests, searched=(path for path in tests if os.path.realpath(path) not in named))
    return FoundTests([path for path in tests if path not in sources], sources, others)


class Searched(NamedTuple):
    """The tests among files, and the other YAML, JSON, JSON Lines and CSV files with the reason why they are not."""

    tests: list[Path]
    others: dict[Path, str]


def search(files: Iterable[Path]) -> Searched:
    """Tell the tests in other formats than a definition's, also those with mistakes, from other files of a folder."""
    kinds = {path: kind for path in files if (kind := kind_in_folder(path))}
    tests = [path for path, kind in kinds.items() if kind.is_test]
    return Searched(tests, {path: kind.why_not for path, kind in kinds.items() if not kind.is_test})


def kind_in_folder(path: Path) -> FileKind | None:
    """Return what a file in a folder is; None for definitions, settings, baselines, and files that are not searched."""
    is_settings = path.name == PROJECT_FILE or path.name in settings_files()
    kind = None if is_settings else kind_of_file(path)
    return None if kind and kind.is_baseline else kind


def all_of(searched: Iterable[Searched]) -> Searched:
    """Return the files of several searches together."""
    every = [*searched]
    return Searched([path for part in every for path in part.tests], dict(ChainMap(*(part.others for part in every))))


def without_parts(searched: Searched, named: Container[str] = ()) -> Searched:
    """Leave out the files with test cases that a spec names, unless they are `named`, and files that come twice.

    The rules and doubles of agents in Agent Script are parts of a project as its scripts are, and no `others`.
    """
    parts = _case_files_of(searched.tests)
    tests: dict[str, Path] = {}
    for path in searched.tests:
        if (real := os.path.realpath(path)) in named or real not in parts:
            tests.setdefault(real, path)
    parts |= _agent_inputs(searched.others)
    others = {path: why for path, why in searched.others.items() if os.path.realpath(path) not in parts}
    return Searched([*tests.values()], others)


def _agent_inputs(paths: Iterable[Path]) -> set[str]:
    """Return the real paths of files with the rules of an agent of their project, or that answer for its actions."""
    by_folder: dict[Path, list[Path]] = {}
    for path in (Path(os.path.realpath(path)) for path in paths):
        if path.suffix == ".yaml" and not {RULES, DOUBLES}.isdisjoint(path.parts[-3:-1]):
            by_folder.setdefault(path.parent, []).append(path)
    inputs: set[str] = set()
    agents: dict[Path, AgentFiles] = {}
    for folder, files in by_folder.items():
        # A project below the searched folder may have settings that are not valid.
        with suppress(ProjectError, SettingsError):
            project = find_project(folder)
            known = agents.setdefault(project.root, agents_of(project))
            inputs.update(str(file) for file in files if known.reads(file.relative_to(project.root)))
    return inputs


def _tests_in(path: Path) -> Searched:
    if not path.is_dir():
        if not path.exists():
            is_name = not (os.sep in str(path) or "." in str(path))
            actions = [f"To run a test in the org, use -n {path}"] if is_name else slash_hint(path)
            raise NotFound(f"the file {str(path)!r} cannot be found", actions=actions)
        return Searched([path], {})
    below = sorted(files_below(path))
    # A project may have definitions outside of its package directories only.
    definitions = _components_of(path) or [file for file in below if parse_test_name(file.name) and file.is_file()]
    searched = search(below)
    if not (definitions or searched.tests):
        reasons = [f"{shown(file)}: {why}" for file, why in islice(searched.others.items(), _SHOWN_FILES)]
        way_out = Suggestion("Or write the first tests", "init")
        raise NotFound(f"there are no tests in {str(path)!r}", actions=[*reasons, _FOUND, way_out])
    return searched._replace(tests=[*definitions, *searched.tests])


def _case_files_of(tests: Iterable[Path]) -> set[str]:
    """Return the real paths of the files with test cases that the test specs among files name."""
    specs = [test for test in tests if test.suffix.lower() in SPEC_NAMES]
    if not specs:
        return set()
    from evalmeta.formats.case_files import files_of

    return {os.path.realpath(file) for spec in specs for file in files_of(spec)}


def others_note(others: Mapping[Path, str], *, verbose: bool) -> str:
    """Return how many files are not tests, and which; with the reason of each if `verbose`; empty if there are none."""
    if not others:
        return ""
    were = "1 file was not a test" if len(others) == 1 else f"{len(others):,} files were not tests"
    if verbose:
        return "\n".join([f"{were}:", *(f"  {shown(path)}: {why}" for path, why in others.items())])
    return f"{were}: {and_more([*map(shown, others)], _SHOWN_FILES)}; -v says why"


def _components_of(folder: Path) -> list[Path]:
    """Return the definitions of the project whose root a folder is."""
    try:
        project = find_project(folder)
    except ProjectError:
        return []
    if project.root != folder.resolve():
        return []
    return [component.path for component in find_components(project) if component.type.is_test]


def check_other_test(path: Path, columns: Mapping[str, str] = _NO_COLUMNS, *, policy: RulePolicy) -> Sequence[Problem]:
    """Return the problems of a test in another format; `columns` are those of `Reading`."""
    label, reading = shown(path), reading_at(path, columns)
    try:
        document = read_document(path, label=label, name=label, reading=reading)
        return [*document.notes, *find_rule_problems(path, document, reading, policy=policy)]
    except FormatError as error:
        return problems_of(error, label)


def problems_of(error: EvalmetaError, label: str) -> Sequence[Problem]:
    """Return the problems of an error about a file; one for the whole file if the error has no locations."""
    hint = " ".join(map(str, error.actions))
    return error.problems or [Problem("file-format", Severity.ERROR, Location(label, 1, 1), str(error), hint)]


def read_all(paths: Iterable[Path], read: Callable[[Path], _Test]) -> list[_Test]:
    """Read all files; raise one error with the problems of all files that are not valid."""
    tests: list[_Test] = []
    faults: dict[Path, FormatError | InvalidMetadata] = {}
    for path in paths:
        try:
            tests.append(read(path))
        except (FormatError, InvalidMetadata) as error:
            faults[path] = error
    first = next(iter(faults.values()), None)
    if first is None:
        return tests
    problems = [problem for path, error in faults.items() for problem in problems_of(error, shown(path))]
    if len(faults) > 1:
        first = type(first)(f"{len(faults):,} files are not valid; nothing was run", problems=problems)
    # Python shows it below the traceback.
    first.add_note(excerpts_text(problems, most=_SHOWN_FILES))
    raise first


def policy_at(path: Path) -> RulePolicy:
    """Return the policy of the project around a file; the default policy without a project."""
    try:
        project = find_project(path.parent)
    except ProjectError:
        return rule_policy(None)
    return rule_policy(project.declared, agents=agents_of(project))


def find_rule_problems(path: Path, document: Document, reading: Reading, *, policy: RulePolicy) -> list[Problem]:
    """Return what rules say about the checks of a test spec or a table, and the cases that need a person."""
    label = shown(path)
    if format_of(path, label=label, reading=reading) not in {"testspec", "csv"}:
        return []
    files = {number: shown(path.parent / name) for number, name in document.files.items()}
    evaluation = document.evaluation
    found = check_expectations(
        *(evaluation.cases, policy),
        label=label,
        lines=document.lines,
        files=files,
        subject=evaluation.subject_name,
        place_of=_places_in(path),
    )
    place = Location(label, _subject_line(path) if evaluation.subject_name else 0)
    of_subject = check_subject(evaluation.subject_name, policy, place)
    return [*of_subject, *found, *_cases_for_people(document, label, files)]


def _places_in(path: Path) -> FindPlace:
    """Return what finds words in a test spec, which is read again for the first word; nothing in other files."""
    from evalmeta.formats.spec_places import SpecPlaces

    places: list[SpecPlaces] = []

    def find(number: int, name: str, word: str) -> tuple[int, int] | None:
        if path.suffix.lower() not in SPEC_NAMES:
            return None
        if not places:
            places.append(SpecPlaces(read_bytes(path, limits.MAX_SPEC_BYTES)))
        return places[0].find(number, name, word)

    return find


def _subject_line(path: Path) -> int:
    """Return the line on which a test spec names its agent; 0 if it is not at the beginning of a line."""
    text = read_bytes(path, limits.MAX_SPEC_BYTES)
    match = re.search(rb"^subject(?:Name)?[ \t]*:", text, re.MULTILINE)
    return text.count(b"\n", 0, match.start()) + 1 if match else 0


def _cases_for_people(document: Document, label: str, files: Mapping[int, str]) -> Iterator[Problem]:
    """Yield the quarantines that have ended, and the cases that must be reviewed."""
    for case in document.evaluation.cases:
        location = Location(files.get(case.number, label), document.lines.get(case.number, 0))
        if case.review:
            yield review_problem(location, f"case {case.number}")
        if case.quarantine is not None and case.quarantine.until < today():
            yield ended_problem(location, f"case {case.number}", case.quarantine.until)


def reading_at(path: Path, columns: Mapping[str, str] = _NO_COLUMNS) -> Reading:
    """Return how a file is read that is not run: as its project says; `columns` replace those of the project."""
    try:
        project = find_project(path.parent)
    except ProjectError:
        project = None
    if project is None or project.declared is None:
        return Reading(columns=tuple(columns.items()))
    return reading_of(project.declared, root=project.root, is_asked=False, columns=columns)


_NOT_IN_NAMES: Final = re.compile(r"[\W_]+")
# `sf agent generate test-spec` adds it to the agent's name.
_SPEC_ENDING: Final = re.compile(r"[-_]?test-?spec$", re.IGNORECASE)


def sources_of(tests: Iterable[Path], *, searched: Iterable[Path]) -> dict[Path, Path]:
    """Return the specs and tables among the `searched` files with the definitions that were made from them.

    A definition is made from a file that has its name, as a spec's name or as that of the file, and that names the same
    agent or none.
    """
    files = [file for file in searched if file.suffix.lower() in (*SPEC_NAMES, *TABLE_NAMES)]
    if not files:
        return {}
    made: dict[str, list[tuple[Path, str]]] = {}
    for path in tests:
        for name, subject_name in _names_of_definition(path):
            made.setdefault(name, []).append((path, subject_name))
    found: dict[Path, Path] = {}
    for path in files:
        names, subject_name = _names_of_source(path)
        same = (pair for name in names for pair in made.get(name, ()))
        definitions = (definition for definition, asked in same if subject_name in {"", asked})
        if definition := next(definitions, None):
            found[path] = definition
    return found


def source_note(source: Path, definition: Path) -> str:
    """Return why a spec or table is not run, and whether its test cases differ from those of its definition."""
    why = f"{shown(source)} is not run: {shown(definition)} is its definition"
    if _differ(source, definition):
        return f"{why}, but their test cases differ. Update the definition, or name the file to run it."
    return f"{why}. To run it, name the file."


def _differ(source: Path, definition: Path) -> bool:
    """Return whether test cases differ in more than blanks and what sf numbers itself."""
    made, label = _read_definition(definition), source.name
    if made is None:
        return False
    data = read_bytes(source, limits.MAX_SPEC_BYTES)
    try:
        if source.suffix.lower() in TABLE_NAMES:
            given = read_testing_center_csv(data, label=label, name=made.name, subject_name=made.subject_name)
        else:
            from evalmeta.formats.testspec import spec_definition

            given, _ = spec_definition(_read_spec(data, label, source.parent))
    except FormatError:
        return False
    changes = (change for change in compare(given, made) if change.case is not None and change.what[-1:] != ("index",))
    return any("".join((change.before or "").split()) != "".join((change.after or "").split()) for change in changes)


def _names_of_definition(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the full name and the name of a definition, each with its agent; nothing for other files."""
    if (parsed := parse_test_name(path.name)) is None:
        return
    definition = _read_definition(path)
    names = (parsed[1], definition.name) if definition else ()
    for name in dict.fromkeys(map(_comparable, names)):
        yield name, definition.subject_name if definition else ""


def _names_of_source(path: Path) -> tuple[list[str], str]:
    """Return the names that the definition of a spec or table can have, and the agent; empty for tables.

    A spec with checks that definitions cannot hold has no names, so that its checks are run in any case.
    """
    stem = _comparable(_SPEC_ENDING.sub("", path.stem))
    if path.suffix.lower() in TABLE_NAMES:
        return [stem], ""
    try:
        spec = _read_spec(read_bytes(path, limits.MAX_SPEC_BYTES), path.name, path.parent)
        if not spec.is_held_by_definitions:
            return [], ""
    except EvalmetaError:
        return [], ""
    return [_comparable(spec.definition.name), stem], spec.definition.subject_name


def _read_definition(path: Path) -> Definition | None:
    try:
        return read_leniently(read_xml(read_bytes(path, limits.MAX_XML_BYTES), label=path.name))
    except EvalmetaError:
        return None


def _comparable(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name).strip("_").casefold()


def _read_spec(data: bytes, label: str, folder: Path) -> Spec:
    from evalmeta.formats.testspec import read_spec

    return read_spec(data, label=label, folder=folder)
