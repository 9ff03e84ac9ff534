"""The YAML test specs of the sf CLI, Testing Center's and Agentforce Studio's, and those with evalmeta's own keys.

Source: Agentforce DX, "Customize the Agent Test Spec", and the types TestSpec and NgtTestSpec of
@salesforce/agents. A spec of Agentforce Studio is recognised by the `inputs` or `scorers` of its first test case.
Keys that a spec omits expect nothing; sf writes an empty topic, response and action list for them instead.

A spec may have keys that sf does not know, such as `contains`; then it needs neither a name nor a subject. Definitions
cannot hold all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.formats.case_files import keys_by_title, named_files, read_case_file
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.diagnostics import Diagnostics, Loss
from evalmeta.formats.document import CASE_FILES, Document, is_file, read_bytes
from evalmeta.formats.spec_cases import (
    INPUT_HINT,
    Defaults,
    own_keys,
    read_case,
    read_defaults,
    read_history,
    read_iterations,
    read_pair,
    read_variables,
    refuse_both,
)
from evalmeta.formats.yaml_source import YamlRecord, YamlScalar, read_yaml
from evalmeta.model.definition import Definition, Expectation, Inputs, PromptInput, TestCase
from evalmeta.model.evaluation import Case, Evaluation, evaluation_of, title_of
from evalmeta.model.registry import EVALUATION_DEFINITION, TEST_TYPES, TESTING_DEFINITION, MetadataType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.problem import Problem


_SF_KEYS: Final = ("name", "description", "subjectType", "subjectName", "subjectVersion", "testCases")
_SPEC_KEYS: Final = ("subject", "defaults", "cases", "columns", "iterations", "min_pass_rate")
_SPEC_HINTS: Final = {
    **dict.fromkeys(("agentType", "topics"), "This is an agent spec; a test spec has testCases."),
    **dict.fromkeys(("tests", "scenarios", "evals", "questions", "examples"), "Use testCases."),
    **dict.fromkeys(("input", "utterance", "turns"), "Write it in a test case: put '- ' before it, under testCases."),
    **dict.fromkeys(("defaultTest", "default"), "Use defaults."),
    **dict.fromkeys(("repeat", "runs", "num_runs"), "Use iterations."),
    **dict.fromkeys(("threshold", "confidence", "pass_rate"), "Use min_pass_rate."),
    **dict.fromkeys(("providers", "provider", "agent", "target", "targets"), "Use subject."),
}
_EXAMPLE: Final = "Write at least one: an input, and a check such as contains."


@dataclass(frozen=True, slots=True)
class Spec:
    """A test spec that was read; iterations and pass rate are None if it does not say."""

    definition: Definition  # what sf knows of it; without test cases if the spec has keys of evalmeta
    cases: tuple[Case, ...]  # of a spec with keys of evalmeta
    lines: Mapping[int, int]  # the line of each test case by its number
    is_own: bool  # whether the spec has keys of evalmeta
    iterations: int | None = None
    min_pass_rate: float | None = None
    files: Mapping[int, str] = field(default_factory=dict)  # files with some of the test cases, by their numbers
    notes: tuple[Problem, ...] = ()  # warnings

    def document(self, name: str) -> Document:
        """Return it as the engine runs it."""
        header = self.definition
        if not self.is_own:
            return Document(evaluation_of(header, name=name), lines=self.lines)
        known = header.subject_name, self.cases, header.subject_version, header.subject_type
        evaluation = Evaluation(name, *known, title_of(header, name=name))
        return Document(
            evaluation, self.iterations, self.min_pass_rate, notes=self.notes, lines=self.lines, files=self.files
        )

    @property
    def is_held_by_definitions(self) -> bool:
        """Return whether a definition can hold all expectations."""
        if not self.is_own:
            return True
        if any(case.review or case.approve for case in self.cases):
            return False
        expected = sum(len(turn.expectations) for case in self.cases for turn in case.turns)
        return expected == sum(len(case.expectations) for case in spec_definition(self)[0].test_cases)


def read_spec(data: bytes, *, label: str, folder: Path | None = None, needs_cases: bool = False) -> Spec:
    """Read a test spec of any kind; its test cases are numbered from 1 in the order of the file.

    A spec without a name is called after `label`. `folder` has the files that it may name; None is the current one.
    """
    diagnostics = Diagnostics(label)
    file = read_yaml(data, label=label, folder=folder)
    if isinstance(file.value, list):
        line, column = file.place(())
        message, hint = "a test spec is a list, not a mapping", "Write testCases: above the list."
        diagnostics.error("spec-type", message, line=line, column=column, hint=hint)
        diagnostics.check()
    root = YamlRecord(file, (), file.value, diagnostics, called="a test spec")
    kind = _kind(root.values.get("testCases"), root.text("subjectType") or "")
    is_own = kind != TESTING_DEFINITION and _is_own(root)
    root.check_keys(*_SF_KEYS, *(_SPEC_KEYS if kind != TESTING_DEFINITION else ()), hints=_SPEC_HINTS)
    header = _header(root, kind, label, is_own=is_own)
    if kind == TESTING_DEFINITION:
        read_cases = list(_studio_cases(root))
        diagnostics.check()
        lines = {case.number or 0: line for case, line in read_cases}
        return Spec(replace(header, test_cases=tuple(case for case, _ in read_cases)), (), lines, is_own=False)
    iterations, min_pass_rate = read_iterations(root), _min_pass_rate(root)
    read = _Cases(root, folder or Path(), is_own=is_own)
    cases = tuple(read.cases())
    key = root.key("testCases", "cases")
    is_empty = key in root.values and root.values[key] in (None, [])
    if needs_cases and not (cases or read.others) and (is_empty or not diagnostics.has_errors):
        root.error("spec-missing", "a test spec has no test cases", key, hint=_EXAMPLE)
    diagnostics.check()
    for other in read.others:
        other.check()
    if is_own:
        notes = tuple(note for other in read.others for note in other.notes)
        return Spec(header, cases, read.lines, True, iterations, min_pass_rate, read.files, notes)
    return Spec(replace(header, test_cases=tuple(map(_test_case, cases))), (), read.lines, is_own=False)


def read_spec_file(
    path: Path, *, label: str, needs_cases: bool = False, columns: Iterable[tuple[str, str]] = ()
) -> Spec:
    """Read a test spec, or a file with test cases as a spec with nothing else; raise as `read_spec`, and NotFound.

    `columns` are keys of test cases, each with its column in a file with test cases.
    """
    data = read_bytes(path, limits.MAX_SPEC_BYTES)
    if path.suffix.lower() not in CASE_FILES:
        return read_spec(data, label=label, folder=path.parent, needs_cases=needs_cases)
    diagnostics = Diagnostics(label)
    keys = keys_by_title(
        columns, lambda code, _, message, hint: diagnostics.error(code, f"'columns': {message}", line=1, hint=hint)
    )
    diagnostics.check()
    records = enumerate(read_case_file(path, diagnostics, keys), 1)
    read = {number: (read_case(record, number, Defaults(), own_keys=True), record) for number, record in records}
    if needs_cases and not (read or diagnostics.has_errors):
        diagnostics.error("spec-missing", "the file has no test cases", line=1, hint=_EXAMPLE)
    diagnostics.check()
    lines = {number: record.source.place(())[0] for number, (_, record) in read.items()}
    cases = tuple(case for case, _ in read.values())
    return Spec(Definition(path.stem, ""), cases, lines, is_own=True, notes=diagnostics.notes)


def read_testspec(data: bytes, *, label: str, folder: Path | None = None) -> Definition:
    """Read a test spec as a definition, without what definitions cannot hold; arguments and errors as `read_spec`."""
    return spec_definition(read_spec(data, label=label, folder=folder))[0]


def spec_definition(
    spec: Spec, *, name: str | None = None, subject_name: str | None = None, kept_checks: Collection[str] = ()
) -> tuple[Definition, tuple[Loss, ...]]:
    """Return the definition of a spec, and what it cannot hold; the names replace those of the spec.

    `kept_checks` names checks that are kept although definitions cannot hold them.
    """
    header = replace(spec.definition, name=name or spec.definition.name)
    if not spec.is_own:
        return header, ()
    document = spec.document(header.name)
    definition, losses = definition_of(document, subject_name=subject_name, is_metadata=True, kept_checks=kept_checks)
    return replace(definition, description=header.description), losses


def _header(root: YamlRecord, kind: MetadataType, label: str, *, is_own: bool) -> Definition:
    required = YamlRecord.text if is_own else YamlRecord.required_text
    subject_type = required(root, "subjectType")
    if subject_type and subject_type not in kind.subject_types:
        message = f"'subjectType' is {subject_type!r}, not {' or '.join(kind.subject_types)}"
        root.error("spec-value", message, "subjectType")
    if "testCases" not in root.values and not root.has("cases"):
        root.require("testCases")
    if root.has("subject") and root.has("subjectName"):
        refuse_both(root, "subjectName", "subject")
    name = required(root, "name")
    return Definition(
        name=PurePath(label).stem if name is None else name,
        subject_name=root.text("subject") or required(root, "subjectName") or "",
        subject_type=subject_type or "AGENT",
        subject_version=root.text("subjectVersion"),
        description=root.text("description"),
        type=kind,
    )


def _min_pass_rate(root: YamlRecord) -> float | None:
    rate = root.number("min_pass_rate")
    if rate is not None and not 0 <= rate <= 1:
        root.error("spec-value", f"'min_pass_rate' is {rate:g}; numbers from 0 to 1 are allowed", "min_pass_rate")
    return rate


def _is_own(root: YamlRecord) -> bool:
    """Return whether a spec has keys that sf does not know, or none of those that name its subject."""
    keys = root.values.keys()
    if not keys.isdisjoint(_SPEC_KEYS) or keys.isdisjoint(("subjectName", "subjectType")):
        return True
    cases = root.values.get("testCases")
    mappings = (case for case in (cases if isinstance(cases, list) else ()) if isinstance(case, dict))
    return any(not case.keys().isdisjoint(own_keys()) for case in mappings)


def _kind(cases: JsonValue, subject_type: str) -> MetadataType:
    if not isinstance(cases, list) or not cases:
        return next((row for row in TEST_TYPES if subject_type in row.subject_types), EVALUATION_DEFINITION)
    first = cases[0]
    is_studio = isinstance(first, dict) and ("scorers" in first or isinstance(first.get("inputs"), list))
    return TESTING_DEFINITION if is_studio else EVALUATION_DEFINITION


def _columns(root: YamlRecord) -> Mapping[str, str]:
    """Return the keys of test cases by the columns of files that have other titles."""
    titles = ((key, root.to_text(value, "columns", key)) for key, value in root.object("columns").items())
    columns = keys_by_title(
        ((key, title) for key, title in titles if title is not None),
        lambda code, key, message, hint: root.error(code, message, "columns", key, hint=hint),
    )
    if columns and not any(named_files(root.raw("cases"))):
        message = "'columns' is for files with test cases, and the spec names none"
        root.error("spec-value", message, "columns", hint="Name a file in cases: questions.csv.")
    return columns


class _Cases:
    """The test cases of a spec with those of the files that it names."""

    def __init__(self, root: YamlRecord, folder: Path, *, is_own: bool) -> None:
        self.lines: dict[int, int] = {}  # of each test case by its number, in its own file
        self.files: dict[int, str] = {}  # the other files, by the numbers of their test cases
        self.others: list[Diagnostics] = []  # of the other files
        self._root = root
        self._folder = folder
        self._is_own = is_own
        self._bytes = 0
        self._columns = _columns(root)

    def cases(self) -> Iterator[Case]:
        defaults = self._root.record("defaults", called="a mapping of defaults") if self._is_own else None
        kept = Defaults() if defaults is None else read_defaults(defaults)
        for number, (record, file) in enumerate(self._records(), 1):
            self.lines[number] = line = record.source.place(record.path)[0]
            case = read_case(record, number, kept, own_keys=self._is_own)
            if file:
                self.files[number] = file
                case = replace(case, label=case.label or f"{file}:{line}")
            yield case

    def _records(self) -> Iterator[tuple[YamlRecord, str]]:
        for record in self._root.records("testCases", called="a test case", hint=INPUT_HINT):
            yield record, ""
        cases = self._root.raw("cases")
        if cases is not None and not isinstance(cases, list | YamlScalar):
            self._root.mistyped(cases, "a list or the name of a file", "cases")
        for place, case in enumerate(cases if isinstance(cases, list) else ()):
            if not isinstance(case, YamlScalar):
                yield self._root.at(case, "cases", place, called="a test case", hint=INPUT_HINT), ""
        for number, (index, name) in enumerate(named_files(cases), 1):
            if number > limits.MAX_CASE_FILES:
                message = f"more than {limits.MAX_CASE_FILES} files with test cases"
                self._root.error("spec-limit", message, "cases", hint="Put the test cases into fewer files.")
                return
            yield from self._in_file(name, ("cases",) if index is None else ("cases", index))

    def _in_file(self, name: str, steps: tuple[str | int, ...]) -> Iterator[tuple[YamlRecord, str]]:
        path = self._folder / name
        if path.suffix.lower() not in CASE_FILES:
            hint = "Name a file that ends in .csv, .tsv or .jsonl."
            self._root.error("spec-value", f"{name!r} is not a file with test cases", *steps, hint=hint)
            return
        if not is_file(path):
            hint = "Write a path relative to the folder of the spec."
            if "\\" in name:
                hint = f"Write / between folders: {name.replace(chr(92), '/')}."
            self._root.error("spec-value", f"the file {str(path)!r} cannot be found", *steps, hint=hint)
            return
        was_too_large = self._bytes > limits.MAX_CASE_FILES_BYTES
        self._bytes += path.stat().st_size
        if self._bytes > limits.MAX_CASE_FILES_BYTES:
            message = f"the files with test cases have more than {limits.MAX_CASE_FILES_BYTES:,} bytes in all"
            if not was_too_large:
                self._root.error("spec-limit", message, *steps, hint="Divide them among several specs.")
            return
        diagnostics = Diagnostics(str(PurePath(self._root.diagnostics.label).parent / name))
        self.others.append(diagnostics)
        record = None
        for record in read_case_file(path, diagnostics, self._columns):
            yield record, name
        if record is None and not diagnostics.has_errors:
            diagnostics.error("spec-missing", "the file has no test cases", line=1, hint=_EXAMPLE)


def _test_case(case: Case) -> TestCase:
    [turn] = case.turns
    return TestCase(Inputs(turn.utterance, case.context_variables, case.history), turn.expectations, case.number)


def _studio_cases(root: YamlRecord) -> Iterator[tuple[TestCase, int]]:
    """Yield the test cases of Agentforce Studio with their lines: one for each input, with the scorers of its group."""
    number = 0
    for case in root.records("testCases", called="a test case of Agentforce Studio"):
        case.check_keys("inputs", "scorers")
        scorers = []
        for record in case.records("scorers", called="a scorer"):
            record.check_keys("name", "expected")
            scorers.append(Expectation(record.required_text("name"), record.text("expected")))
        if not case.items("inputs"):
            case.error("spec-missing", f"{case.called} needs 'inputs'")
        if "scorers" not in case.values:
            case.require("scorers")
        for inputs in case.records("inputs", called="an input"):
            number += 1
            yield TestCase(_studio_inputs(inputs), tuple(scorers), number), inputs.source.place(inputs.path)[0]


def _studio_inputs(record: YamlRecord) -> Inputs:
    record.check_keys("utterance", "contextVariables", "conversationHistory", "promptInput")
    prompts = record.records("promptInput", called="an input")
    prompt_inputs = tuple(PromptInput(*read_pair(prompt, "referenceName")) for prompt in prompts)
    utterance = record.text("utterance") if prompt_inputs else record.required_text("utterance")
    history = read_history(record, numbers_messages=False)
    return Inputs(utterance or "", read_variables(record), history, prompt_inputs)
