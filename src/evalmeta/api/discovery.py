"""The tests in folders, tests in other formats than a definition's, and the specs that definitions were made from."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import EvalmetaError, FormatError, NotFound, ProjectError, Suggestion
from evalmeta.formats.discovery import SPEC_NAMES, TABLE_NAMES, is_test
from evalmeta.formats.document import Reading, read_bytes, reading_of
from evalmeta.formats.files import format_of, looks_like_evaluation, read_document
from evalmeta.formats.testing_center_csv import read_testing_center_csv
from evalmeta.model.difference import compare
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.files import parse_test_name, shown, slash_hint
from evalmeta.package.folders import files_below
from evalmeta.package.project import find_project
from evalmeta.package.resolver import find_components
from evalmeta.validation.rules import rule_policy
from evalmeta.validation.validator import check_expectations
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.formats.document import Document
    from evalmeta.formats.testspec import Spec
    from evalmeta.model.definition import Definition


_FOUND: Final = """\
Name the files; folders are searched for definitions, test specs (YAML), tables of the Testing Center (CSV), \
*.test.json and *.evalset.json only."""


class FoundTests(NamedTuple):
    """The tests in files and folders.

    Attributes:
        paths: the files to run, each once.
        sources: the specs and tables in folders that are not run, because their definitions are, which are the values.
    """

    paths: list[Path]
    sources: Mapping[Path, Path]


def find_tests(paths: Sequence[Path]) -> FoundTests:
    """Find the tests in files and folders.

    A folder stands for its definitions, test specs (YAML), tables of the Testing Center (CSV), `*.test.json` and
    `*.evalset.json`. If it is a project's root, its definitions are those of the project. A spec or table in a folder
    is not run if its definition is found too.

    Raises:
        NotFound: a path does not exist, or a folder has no tests.
        ProjectError: the project cannot be read.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for file in _tests_in(path):
            found.setdefault(os.path.realpath(file), file)
    named = {os.path.realpath(path) for path in paths}
    sources = sources_of(found.values(), searched=(path for real, path in found.items() if real not in named))
    return FoundTests([path for path in found.values() if path not in sources], sources)


def _tests_in(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            is_name = not (os.sep in str(path) or "." in str(path))
            actions = [f"To run a test in the org, use -n {path}"] if is_name else slash_hint(path)
            raise NotFound(f"the file {str(path)!r} cannot be found", actions=actions)
        return [path]
    below = sorted(files_below(path))
    # A project may have definitions outside of its package directories only.
    definitions = _components_of(path) or [each for each in below if parse_test_name(each.name) and each.is_file()]
    if files := [*definitions, *filter(is_test, below)]:
        return files
    raise NotFound(
        f"there are no tests in {str(path)!r}", actions=[_FOUND, Suggestion("Or write the first tests", "init")]
    )


def _components_of(folder: Path) -> list[Path]:
    """Return the definitions of the project whose root a folder is."""
    try:
        project = find_project(folder)
    except ProjectError:
        return []
    if project.root != folder.resolve():
        return []
    return [each.path for each in find_components(project) if each.type.is_test]


def is_other_test(path: Path, *, is_named: bool = False) -> bool:
    """Return whether a file is a test in another format than a definition's.

    In folders, JSON files must have the keys of a known format. Raise FormatError if a file that the user named
    (`is_named`) is not a test.
    """
    if is_named:
        return format_of(path, label=shown(path)) != "definition"
    return is_test(path) and (path.suffix != ".json" or looks_like_evaluation(path))


def check_other_test(path: Path) -> Sequence[Problem]:
    """Return the problems of a test in another format."""
    label = shown(path)
    try:
        document = read_document(path, label=label, name=label, reading=_reading_of(path))
        return [*document.notes, *find_rule_problems(path, document)]
    except FormatError as error:
        hint = " ".join(map(str, error.actions))
        return error.problems or [Problem("file-format", Severity.ERROR, Location(label), str(error), hint)]


def find_rule_problems(path: Path, document: Document) -> list[Problem]:
    """Return what the rules of definitions say about the expectations of a test spec or a table."""
    label = shown(path)
    if format_of(path, label=label) not in {"testspec", "csv"}:
        return []
    try:
        policy = rule_policy(find_project(path.parent).declared)
    except ProjectError:
        policy = rule_policy(None)
    files = {number: shown(path.parent / name) for number, name in document.files.items()}
    return check_expectations(document.evaluation.cases, policy, label=label, lines=document.lines, files=files)


def _reading_of(path: Path) -> Reading:
    try:
        project = find_project(path.parent)
    except ProjectError:
        return Reading()
    return reading_of(project.declared, root=project.root, is_asked=False) if project.declared else Reading()


_NOT_IN_NAMES: Final = re.compile(r"[\W_]+")
# `sf agent generate test-spec` adds it to the agent's name.
_SPEC_ENDING: Final = re.compile(r"[-_]?test-?spec$", re.IGNORECASE)


def sources_of(tests: Iterable[Path], *, searched: Iterable[Path]) -> dict[Path, Path]:
    """Return the specs and tables among the `searched` files with the definitions that were made from them.

    A definition is made from a file that has its name, as a spec's name or as that of the file, and that names the same
    agent or none.
    """
    files = [each for each in searched if each.suffix in (*SPEC_NAMES, *TABLE_NAMES)]
    if not files:
        return {}
    made: dict[str, list[tuple[Path, str]]] = {}
    for path in tests:
        for name, subject_name in _names_of_definition(path):
            made.setdefault(name, []).append((path, subject_name))
    found: dict[Path, Path] = {}
    for path in files:
        names, subject_name = _names_of_source(path)
        same = (each for name in names for each in made.get(name, ()))
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
        if source.suffix in TABLE_NAMES:
            given = read_testing_center_csv(data, label=label, name=made.name, subject_name=made.subject_name)
        else:
            given = _definition_of(_read_spec(data, label, source.parent))
    except FormatError:
        return False
    changes = (each for each in compare(given, made) if each.case is not None and each.what[-1:] != ("index",))
    return any("".join((each.before or "").split()) != "".join((each.after or "").split()) for each in changes)


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
    if path.suffix in TABLE_NAMES:
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
    from evalmeta.formats.testspec import read_spec  # noqa: PLC0415 - yaml, and most projects have no specs

    return read_spec(data, label=label, folder=folder)


def _definition_of(spec: Spec) -> Definition:
    from evalmeta.formats.testspec import spec_definition  # noqa: PLC0415 - as above

    return spec_definition(spec)[0]
