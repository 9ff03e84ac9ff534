"""Accepting an answer of a run as the new expectation, in the file that defines the test.

`propose` returns the change without making it, and `write` makes it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from evalmeta import limits
from evalmeta.api.agent_tests import file_of_run
from evalmeta.api.file_checks import validate_and_read
from evalmeta.api.judging.accepted_calls import accepting_calls
from evalmeta.api.runs.comparisons import find_run
from evalmeta.api.runs.finding import run_id_of
from evalmeta.errors import Conflict, FormatError, InvalidMetadata, NotFound, Suggestion, UsageError
from evalmeta.formats.expectation_edits import (
    check_unchanged,
    find_expectation,
    is_only_change,
    read_evaluation,
    replace_calls,
    replace_value,
)
from evalmeta.model.aggregation import NamedResult, named_results, results_called, shown_names
from evalmeta.model.checks import WHOLE_ANSWERS
from evalmeta.model.expectations import ACTIONS, OPERATORS, OUTCOME, TOPIC, canonical_name
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import CaseResult, Run, TestResult, Verdict
from evalmeta.package.files import parse_file_name, read_file, shown, write_below
from evalmeta.package.folders import find_components
from evalmeta.report.details import exchange_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.formats.expectation_edits import ExpectationPlace
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject
    from evalmeta.package.project import Project


_NOUNS: Final = {TOPIC: "topic", ACTIONS: "actions", OUTCOME: "response", "agent_handoff_match": "agent"}
_HELD_AS_VALUE: Final = frozenset({*_NOUNS, "response_match", *WHOLE_ANSWERS})
_SHOWN_ANSWERS: Final = 3
_SHOWN_CHARS: Final = 60


def is_acceptable(result: TestResult) -> bool:
    """Return whether a result compares the answer with a value that can be replaced."""
    name = canonical_name(result.name)
    return not result.is_measured and (name in _HELD_AS_VALUE or name in OPERATORS)


def _show_results(run: Run) -> Suggestion:
    return Suggestion("Show the results", "test", "results", "--job-id", run.id)


def _choose(run: Run, cases: Sequence[CaseResult], name: str | None, turn: int | None) -> NamedResult:
    """Return the result with a name in the iterations of a case, or else the only one that did not pass."""
    number = cases[0].number
    all_results = [result for case in cases for result in named_results(case) if turn in {None, result.turn}]
    if not all_results:
        reason = next((f": {case.error}" for case in cases if case.error), "")
        message = f"nothing was judged in case {number} of run {run.id}{reason}"
        raise UsageError(message, actions=[_show_results(run)])
    found = _failed(number, all_results) if name is None else _called(number, all_results, name)
    if len(found) > 1:
        turns = ", ".join(str(turn) for turn in sorted({turn for turn, _ in found}) if turn)
        in_turns = f" in the turns {turns}" if turns else ""
        message = f"case {number} has several such results: {shown_names(found.values())}{in_turns}"
        raise UsageError(message, actions=[f"Choose one with --expectation NAME{' and --turn N' if turns else ''}."])
    [chosen] = found.values()
    if not is_acceptable(chosen.result):
        what = f"the expectation {chosen.result.label or chosen.name}"
        message = f"{what} has no expected value that an answer can replace"
        raise UsageError(message, actions=["Edit the test by hand."])
    return chosen


def _called(number: int, results: Sequence[NamedResult], name: str) -> dict[tuple[int, int], NamedResult]:
    """Return the results with a name, by position."""
    found = {named_result.position: named_result for named_result in results_called(results, name)}
    if not found:
        raise NotFound(f"case {number} has no result {name!r}", actions=[f"Its results: {shown_names(results)}."])
    return found


def _failed(number: int, results: Sequence[NamedResult]) -> dict[tuple[int, int], NamedResult]:
    """Return the acceptable results that did not pass in any iteration, by position."""
    acceptable = [result for result in results if is_acceptable(result.result)]
    found = {
        named_result.position: named_result
        for named_result in acceptable
        if named_result.result.verdict is not Verdict.PASS
    }
    if not found:
        names = " or ".join(dict.fromkeys(named_result.name for named_result in acceptable))
        way_out = f"Name one that passed: --expectation {names}" if names else "Edit the test by hand."
        message = f"no failed result of case {number} has an expected value to replace"
        raise UsageError(message, actions=[way_out])
    return found


def _agreed(run: Run, results: dict[int, NamedResult]) -> NamedResult:
    """Return one of the results of the iterations, which all have the same answer."""
    answers = Counter(named_result.result.actual for named_result in results.values())
    if len(answers) > 1:
        few = ", ".join(f"{_short(text)} ({times}x)" for text, times in answers.most_common(_SHOWN_ANSWERS))
        listed = " or ".join(map(str, sorted(results)[:_SHOWN_ANSWERS]))
        message = f"the iterations have different answers: {few}"
        raise UsageError(message, actions=[f"Choose one with --iteration, such as {listed}."])
    chosen = next(iter(results.values()))
    result = chosen.result
    if result.verdict is Verdict.ERROR:
        message = f"{result.name} ended in an error: {result.error or result.explanation}"
        raise UsageError(message, actions=[_show_results(run)])
    if not result.actual.strip():
        message = f"the agent returned or reported nothing that {result.label or result.name} could expect"
        raise UsageError(message, actions=[_show_results(run)])
    return chosen


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of one expectation in one file, which `write` makes: as bytes, as a unified diff and in words."""

    path: Path
    before: bytes
    after: bytes
    diff: str
    what: str


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
    """Return the change that makes the answer of a result the new expectation; raise UsageError if it cannot.

    `expectation` is a name or label, or `NAME#2` for the second of that name in its turn; None if only one did not
    pass. `iteration` is None if all have the same answer. `org_url` is empty for the project's own org, None for any.
    """
    run = find_run(project, run_id_of(project, run_id, org_url=org_url), org_url=org_url)
    cases = [case for case in run.cases if case.number == number and iteration in {None, case.iteration}]
    if not cases:
        of_iteration = f" in iteration {iteration}" if iteration else ""
        message = f"run {run.id} has no result of case {number}{of_iteration}"
        raise NotFound(message, actions=[_show_results(run)])
    position = _choose(run, cases, expectation, turn).position
    results = ((case.iteration, result) for case in cases for result in named_results(case))
    chosen = _agreed(run, {iteration: result for iteration, result in results if result.position == position})
    path = _file_of(project, run)
    before, notes = _read(path), list[str]()
    evaluation = read_evaluation(path, before)
    place = find_expectation(evaluation, cases[0], chosen, label=shown(path))
    if "calls" in place.expectation.terms:
        after = _with_calls(path, before, evaluation, place, cases, chosen, notes)
    else:
        check_unchanged(place, cases[0], chosen, label=shown(path))
        after = replace_value(path, before, place, chosen.result.actual)
        if not is_only_change(evaluation, read_evaluation(path, after), place, chosen.result.actual):
            raise _not_alone(path)
    noun = _NOUNS.get(canonical_name(chosen.result.name), "value")
    what = f"Case {number} of {run.definition} would expect the {noun} of run {run.id}"
    if place.case.review:
        what += " and would still be marked for review"
    what = "; ".join((what, *notes))
    return Proposal(path, before, after, _diff(path, before, after), what)


def _with_calls(
    path: Path,
    before: bytes,
    evaluation: Evaluation,
    place: ExpectationPlace,
    cases: Sequence[CaseResult],
    chosen: NamedResult,
    notes: list[str],
) -> bytes:
    """Return the bytes of a test spec that expects the calls of an answer; add to `notes` what it does not expect."""
    made, *others = (_calls_made(case, chosen) for case in cases)
    if any(_compared(other) != _compared(made) for other in others):
        # Their texts are shortened.
        listed = " or ".join(str(case.iteration) for case in cases[:_SHOWN_ANSWERS])
        message = "the iterations have different calls"
        raise UsageError(message, actions=[f"Choose one with --iteration, such as {listed}."])
    expected = cast("list[JsonObject]", place.expectation.terms["calls"])
    calls = accepting_calls(expected, made, notes)
    is_accepted = [call.kept for call in calls] == [*range(len(expected))]
    check_unchanged(place, cases[0], chosen, label=shown(path), is_accepted=is_accepted)
    after = replace_calls(path, before, place, calls)
    with suppress(FormatError):
        now = read_evaluation(path, after)
        if is_only_change(evaluation, now, place, "", calls=[call for call, _ in calls]):
            return after
    raise _not_alone(path)


def _not_alone(path: Path) -> UsageError:
    message = f"{shown(path)} cannot be changed at this place alone"
    return UsageError(message, actions=[f"Edit {shown(path)} with a text editor."])


def _calls_made(case: CaseResult, chosen: NamedResult) -> tuple[Action, ...]:
    """Return the calls in the turn that a result judges."""
    generated = exchange_of(case, chosen.result).generated
    return (generated.actions if generated else None) or ()


def _compared(calls: Sequence[Action]) -> list[Action]:
    return [replace(call, latency_ms=None) for call in calls]


def write(proposal: Proposal) -> None:
    """Write a proposed change atomically, unless the file has changed; restore a definition that is not valid then."""
    target = Path(realpath(proposal.path))
    if _read(proposal.path) != proposal.before:
        raise Conflict(f"{shown(proposal.path)} has changed meanwhile; nothing was written", problems=())
    write_below(target.parent, target, proposal.after)
    if parse_file_name(proposal.path.name) is None:
        return
    validation, _ = validate_and_read([proposal.path])
    if errors := [problem for problem in validation.problems if problem.is_error]:
        write_below(target.parent, target, proposal.before)
        message = f"{shown(proposal.path)} would not be valid with this expectation; it was not changed: {errors[0]}"
        raise InvalidMetadata(message, problems=errors)


def _file_of(project: Project, run: Run) -> Path:
    if (file := file_of_run(project, run.id)) is not None:
        path = project.root / file
        if not path.is_file():
            raise NotFound(f"the file of run {run.id}, {shown(path)}, does not exist any more")
        return path
    kind = type_of_run(run.id)
    for component in find_components(project):
        if component.type == kind and component.full_name.casefold() == run.definition.casefold():
            return component.path
    name = f"{kind.name}:{run.definition}" if kind else run.definition
    retrieve = Suggestion("If it is in the org, get it first", "retrieve", "--metadata", name)
    raise NotFound(f"the project has no file of {run.definition}, the test of run {run.id}", actions=[retrieve])


def _read(path: Path) -> bytes:
    return read_file(path, max_bytes=max(limits.MAX_XML_BYTES, limits.MAX_SPEC_BYTES))


def _diff(path: Path, before: bytes, after: bytes) -> str:
    name = shown(path)
    lines = (data.decode("utf-8-sig").splitlines(keepends=True) for data in (before, after))
    old, new = ([line.rstrip("\r\n") + "\n" for line in version] for version in lines)
    return "".join(unified_diff(old, new, f"a/{name}", f"b/{name}"))
