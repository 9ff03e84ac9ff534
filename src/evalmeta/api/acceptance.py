"""Accepting an answer of a run as the new expectation, in the file that defines the test.

`propose` returns the change without making it, and `write` makes it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from difflib import unified_diff
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from evalmeta import limits
from evalmeta.api.agent_tests import file_of_run
from evalmeta.api.comparisons import find_run
from evalmeta.api.files import validate_and_read
from evalmeta.api.run_names import run_id_of
from evalmeta.errors import Conflict, InvalidMetadata, NotFound, Suggestion, UsageError
from evalmeta.formats.diagnostics import foreign_character
from evalmeta.formats.files import format_of
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.expectations import (
    ACTIONS,
    OPERATORS,
    OUTCOME,
    TOPIC,
    canonical_name,
    expectation_kind,
    parse_actions,
)
from evalmeta.model.registry import TESTING_DEFINITION, type_of_run
from evalmeta.model.run import Verdict
from evalmeta.package.files import parse_file_name, read_file, shown, write_below
from evalmeta.package.resolver import find_components
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import local_name, read_xml
from evalmeta.xmlio.text_edits import replace_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run import CaseResult, Run, TestResult
    from evalmeta.package.project import Project


_NOUNS: Final = {TOPIC: "topic", ACTIONS: "actions", OUTCOME: "response", "agent_handoff_match": "agent"}
_HELD_AS_VALUE: Final = frozenset({*_NOUNS, "response_match", "equals"})
_SHOWN_ANSWERS: Final = 3
_SHOWN_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of one expectation in one file, which `write` makes.

    Attributes:
        path: the file.
        before: its bytes now.
        after: its bytes with the new expectation.
        diff: the change as a unified diff.
        what: the change in words.
    """

    path: Path
    before: bytes
    after: bytes
    diff: str
    what: str


class _Position(NamedTuple):
    """The position of a result in a case: its turn, as in `TestResult`, and its place among those of the turn."""

    turn: int
    place: int


def propose(
    project: Project,
    run_id: str,
    number: int,
    *,
    expectation: str | None = None,
    turn: int | None = None,
    iteration: int | None = None,
    org_url: str | None = None,
) -> Proposal:
    """Return the change that makes the answer of a result the new expectation; nothing is written.

    Args:
        project: the project that remembers the run and has the file.
        run_id: the run's id or name, as for `run_id_of`.
        number: the number of the case.
        expectation: the name or label of the expectation; None if only one did not pass.
        turn: the turn of the result, from 1; None if the expectation is judged in one turn.
        iteration: the iteration with the answer; None if all iterations have the same.
        org_url: the address of the run's org, empty for the project's own; None for any.

    Raises:
        NotFound: the run, the result or the file does not exist.
        UsageError: the answer cannot become the expectation; the message says why.
        InvalidMetadata: the file is not valid.
        StoreError: the project's database cannot be used.
    """
    run = find_run(project, run_id_of(project, run_id, org_url=org_url), org_url=org_url)
    cases = [each for each in run.cases if each.number == number and iteration in {None, each.iteration}]
    if not cases:
        of_iteration = f" in iteration {iteration}" if iteration else ""
        raise NotFound(f"run {run.id} has no result of case {number}{of_iteration}", actions=[_show(run)])
    position = _choose(run, cases, expectation, turn)
    result = _agreed(run, cases, position)
    path = _file_of(project, run)
    before = _read(path)
    evaluation = _evaluation(path, before)
    case, index = _expected_in(evaluation, cases[0], result, position, label=shown(path))
    after = _edited(path, before, case, position, index, result.actual)
    if not _is_only_change(evaluation, _evaluation(path, after), (number, position.turn, index), result.actual):
        _refuse(f"{shown(path)} cannot be changed at this place alone", f"Edit {shown(path)} with a text editor.")
    noun = _NOUNS.get(canonical_name(result.name), "value")
    what = f"Case {number} of {run.definition} would expect the {noun} of run {run.id}"
    return Proposal(path, before, after, _diff(path, before, after), what)


def write(proposal: Proposal) -> None:
    """Write a proposed change atomically; a definition that is then not valid is restored.

    Raises:
        Conflict: the file has changed since `propose`.
        InvalidMetadata: the definition would not be valid; `problems` says why.
        ProjectError: the file cannot be written.
    """
    target = Path(realpath(proposal.path))
    if _read(proposal.path) != proposal.before:
        raise Conflict(f"{shown(proposal.path)} has changed meanwhile; nothing was written", problems=())
    write_below(target.parent, target, proposal.after)
    if parse_file_name(proposal.path.name) is None:
        return
    validation, _ = validate_and_read([proposal.path])
    if errors := [each for each in validation.problems if each.is_error]:
        write_below(target.parent, target, proposal.before)
        message = f"{shown(proposal.path)} would not be valid with this expectation; it was not changed: {errors[0]}"
        raise InvalidMetadata(message, problems=errors)


def _choose(run: Run, cases: Sequence[CaseResult], name: str | None, turn: int | None) -> _Position:
    """Return the position of the named result, or else of the only one that did not pass."""
    found = {place: result for case in cases for place, result in _positions(case) if turn in {None, place.turn}}
    if not found:
        reason = next((f": {each.error}" for each in cases if each.error), "")
        _refuse(f"nothing was judged in case {cases[0].number} of run {run.id}{reason}", _show(run))
    if name is not None:
        chosen = {place: each for place, each in found.items() if is_called(each, name)}
        if not chosen:
            known = ", ".join(dict.fromkeys(each.label or each.name for each in found.values()))
            raise NotFound(f"case {cases[0].number} has no result {name!r}", actions=[f"Its results: {known}."])
    else:
        failed = {place for case in cases for place, each in _positions(case) if each.verdict is not Verdict.PASS}
        chosen = {place: each for place, each in found.items() if place in failed and is_acceptable(each)}
        if not chosen:
            names = " or ".join(dict.fromkeys(each.name for each in found.values() if is_acceptable(each)))
            way_out = f"Name one that passed: --expectation {names}" if names else "Edit the test by hand."
            _refuse(f"no failed result of case {cases[0].number} has an expected value to replace", way_out)
    if len(chosen) > 1:
        names = ", ".join(dict.fromkeys(each.label or each.name for each in chosen.values()))
        turns = ", ".join(str(each) for each in sorted({place.turn for place in chosen}) if each)
        _refuse(
            f"case {cases[0].number} has several such results: {names}{f' in the turns {turns}' if turns else ''}",
            "Choose one with --expectation NAME" + (" and --turn N." if turns else "."),
        )
    [(position, result)] = chosen.items()
    if not is_acceptable(result):
        _refuse(
            f"the expectation {result.label or result.name} has no expected value that an answer can replace",
            "Edit the test by hand.",
        )
    return position


def _agreed(run: Run, cases: Sequence[CaseResult], position: _Position) -> TestResult:
    """Return the result at a position, whose answer all iterations have."""
    results = {case.iteration: found for case in cases if (found := dict(_positions(case)).get(position))}
    answers = Counter(each.actual for each in results.values())
    if len(answers) > 1:
        few = ", ".join(f"{_short(each)} ({times}x)" for each, times in answers.most_common(_SHOWN_ANSWERS))
        listed = " or ".join(map(str, sorted(results)[:_SHOWN_ANSWERS]))
        _refuse(f"the iterations have different answers: {few}", f"Choose one with --iteration, such as {listed}.")
    result = next(iter(results.values()))
    if result.verdict is Verdict.ERROR:
        _refuse(f"{result.name} ended in an error: {result.error or result.explanation}", _show(run))
    if not result.actual.strip():
        _refuse(f"the agent returned or reported nothing that {result.label or result.name} could expect", _show(run))
    return result


def _file_of(project: Project, run: Run) -> Path:
    if (file := file_of_run(project, run.id)) is not None:
        path = project.root / file
        if not path.is_file():
            raise NotFound(f"the file of run {run.id}, {shown(path)}, does not exist any more")
        return path
    kind = type_of_run(run.id)
    for each in find_components(project):
        if each.type == kind and each.full_name.casefold() == run.definition.casefold():
            return each.path
    name = f"{kind.name}:{run.definition}" if kind else run.definition
    retrieve = Suggestion("If it is in the org, get it first", "retrieve", "--metadata", name)
    raise NotFound(f"the project has no file of {run.definition}, the test of run {run.id}", actions=[retrieve])


def _read(path: Path) -> bytes:
    return read_file(path, max_bytes=max(limits.MAX_XML_BYTES, limits.MAX_SPEC_BYTES))


def _evaluation(path: Path, data: bytes) -> Evaluation:
    label, found = shown(path), format_of(path, label=shown(path))
    if found == "definition":
        return evaluation_of(read_definition(read_xml(data, label=label)), name=path.name)
    if found != "testspec":
        _refuse(f"{label} is neither a definition nor a test spec", f"Edit {label} with another program.")
    from evalmeta.formats.testspec import read_spec  # noqa: PLC0415 - YAML, which definitions do not need

    spec = read_spec(data, label=label, folder=path.parent)
    if spec.definition.type == TESTING_DEFINITION:
        _refuse(
            f"{label} has scorers that several inputs share, so that one answer cannot replace their value",
            f"Edit {label} with a text editor.",
        )
    return spec.document(path.name).evaluation


def _expected_in(
    evaluation: Evaluation, judged: CaseResult, result: TestResult, position: _Position, *, label: str
) -> tuple[Case, int]:
    """Return the case in the file, and the index of the expectation in its turn; refuse a case that has changed."""
    case = next((each for each in evaluation.cases if each.number == judged.number), None)
    asked = [*(each.utterance for each in judged.earlier), judged.utterance]
    if case is None or [each.utterance.strip() for each in case.turns] != [each.strip() for each in asked]:
        _changed(judged, "its utterance is another one", label)
    place = max(position.turn, 1) - 1
    expectations = case.turns[place].expectations if place < len(case.turns) else ()
    of_turn = [each for each in judged.results if each.turn == position.turn]
    indexes = [at for at, each in enumerate(expectations) if _is_result_of(each, result)]
    if len(of_turn) == len(expectations) and position.place in indexes:
        indexes = [position.place]
    if len(indexes) != 1:
        _changed(judged, f"{result.label or result.name} is not one of its expectations", label)
    now = _expected(expectations[indexes[0]]) or ""
    if _same(result, now, result.actual):
        _refuse(f"{label} already expects this", "Run the test again.")
    if not _same(result, now, result.expected):
        _changed(judged, f"{result.label or result.name} expects something else", label)
    return case, indexes[0]


def _edited(path: Path, data: bytes, case: Case, position: _Position, index: int, value: str) -> bytes:
    if foreign := foreign_character(value):
        reason = "which definitions and test specs cannot contain"
        _refuse(f"the answer contains the character {foreign}, {reason}", "Edit the test by hand.")
    place, label = max(position.turn, 1) - 1, shown(path)
    expectation = case.turns[place].expectations[index]
    if canonical_name(expectation.name) in OPERATORS:
        _check_operator(expectation)
    if format_of(path, label=label) == "definition":
        return _edited_definition(path, data, case, expectation, index, value)
    from evalmeta.formats.spec_edits import replace_expected  # noqa: PLC0415 - as above

    where = {"number": case.number, "turn": place, "place": index}
    return replace_expected(data, label=label, expectation=expectation, value=value, **where)


def _edited_definition(path: Path, data: bytes, case: Case, expectation: Expectation, index: int, value: str) -> bytes:
    document = read_xml(data, label=shown(path))
    definition = read_definition(document)
    cases = evaluation_of(definition, name="").cases
    place = next(at for at, each in enumerate(cases) if each.number == case.number)
    steps = [("testCase", place), (definition.type.expectation, index)]
    names = [each.name for each in expectation.parameters]
    is_custom = canonical_name(expectation.name) in OPERATORS
    inner = [("parameter", names.index("expected")), ("value", 0)] if is_custom else [("expectedValue", 0)]
    element = document.find([*steps, *inner])
    if local_name(element) != inner[-1][0]:
        line = document.location(element).line
        _refuse(
            f"{shown(path)}:{line}: {expectation.name} has no <{inner[-1][0]}> to write the answer into",
            f"Add <{inner[-1][0]}></{inner[-1][0]}> there, and run this command again.",
        )
    return replace_text(document, element, value)


def _check_operator(expectation: Expectation) -> None:
    parameters = {each.name: each for each in expectation.parameters}
    operator, expected = parameters.get("operator"), parameters.get("expected")
    if operator is None or expected is None or operator.value.strip() != "equals":
        which = operator.value.strip() if operator else ""
        _refuse(
            f"the criterion {expectation.label} has the operator {which!r}; only equals has one expected value",
            "Edit the test by hand.",
        )
    if expected.is_reference:
        _refuse(
            f"the criterion {expectation.label} expects what {expected.value} refers to, not a fixed value",
            "Edit the test by hand.",
        )


def _is_only_change(before: Evaluation, after: Evaluation, where: tuple[int, int, int], value: str) -> bool:
    """Return whether two evaluations are the same except for one expected value, which is then this one."""
    number, turn, index = where
    old, new = tuple(before.cases), tuple(after.cases)
    if len(old) != len(new):
        return False
    for one, other in zip(old, new, strict=True):
        if one.number != number:
            if one != other:
                return False
            continue
        place = max(turn, 1) - 1
        changed = other.turns[place].expectations[index]
        if not _has_value(changed, value) or _without_value(one, place, index) != _without_value(other, place, index):
            return False
    return True


def _has_value(expectation: Expectation, value: str) -> bool:
    found = _expected(expectation) or ""
    if canonical_name(expectation.name) == ACTIONS:
        return parse_actions(found) == parse_actions(value)
    return found == value


def _without_value(case: Case, place: int, index: int) -> Case:
    """Return a case without one expected value; the labels of checks are made of their values."""
    turns, expectations = [*case.turns], [*case.turns[place].expectations]
    each = expectations[index]
    parameters = tuple(replace(one, value="") if one.name == "expected" else one for one in each.parameters)
    label = None if each.name == "equals" else each.label
    expectations[index] = replace(each, expected_value=None, parameters=parameters, label=label)
    turns[place] = replace(turns[place], expectations=tuple(expectations))
    return replace(case, turns=tuple(turns))


def _expected(expectation: Expectation) -> str | None:
    if canonical_name(expectation.name) not in OPERATORS:
        return expectation.expected_value
    return next((each.value for each in expectation.parameters if each.name == "expected"), None)


def _positions(case: CaseResult) -> Iterator[tuple[_Position, TestResult]]:
    seen: Counter[int] = Counter()
    for each in case.results:
        yield _Position(each.turn, seen[each.turn]), each
        seen[each.turn] += 1


def is_acceptable(result: TestResult) -> bool:
    """Return whether a result compares the answer with a value that can be replaced."""
    name = canonical_name(result.name)
    return not result.is_measured and (name in _HELD_AS_VALUE or name in OPERATORS)


def is_called(result: TestResult, name: str) -> bool:
    """Return whether a name means a result: its expectation's name, an alias or its label."""
    kind = expectation_kind(result.name)
    names = {result.name, canonical_name(result.name), result.label or result.name, kind.label if kind else ""}
    return name.casefold() in map(str.casefold, names) or canonical_name(name) == canonical_name(result.name)


def _is_result_of(expectation: Expectation, result: TestResult) -> bool:
    same_name = canonical_name(expectation.name) == canonical_name(result.name)
    return same_name and (expectation.label or "") == (result.label or "")


def _same(result: TestResult, one: str, other: str) -> bool:
    """Return whether two expected values are the same for a result, which may have one in another spelling."""
    if canonical_name(result.name) == ACTIONS:
        return parse_actions(one) == parse_actions(other) and (parse_actions(one) is not None or one == other)
    return one.strip() == other.strip()


def _diff(path: Path, before: bytes, after: bytes) -> str:
    name = shown(path)
    old, new = ([*map(_ended, data.decode("utf-8-sig").splitlines(keepends=True))] for data in (before, after))
    return "".join(unified_diff(old, new, f"a/{name}", f"b/{name}"))


def _ended(line: str) -> str:
    return f"{line.rstrip(chr(10) + chr(13))}\n"


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


def _show(run: Run) -> Suggestion:
    return Suggestion("Show the results", "test", "results", "--job-id", run.id)


def _changed(judged: CaseResult, how: str, label: str) -> NoReturn:
    way_out = Suggestion("Run the test again, and accept a new answer", "run", label)
    raise UsageError(f"case {judged.number} of {label} has changed since the run: {how}", actions=[way_out])


def _refuse(message: str, way_out: str) -> NoReturn:
    raise UsageError(message, actions=[way_out])
