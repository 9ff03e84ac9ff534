"""Accepting an answer of a run as the new expectation, in the file that defines the test.

`propose` returns the change without making it, and `write` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.api.accepted_results import choose_result, noun_of, show_results
from evalmeta.api.agent_tests import file_of_run
from evalmeta.api.comparisons import find_run
from evalmeta.api.expectation_edits import find_expectation, is_only_change, read_evaluation, replace_value
from evalmeta.api.files import validate_and_read
from evalmeta.api.run_names import run_id_of
from evalmeta.errors import Conflict, InvalidMetadata, NotFound, Suggestion, UsageError
from evalmeta.model.registry import type_of_run
from evalmeta.package.files import parse_file_name, read_file, shown, write_below
from evalmeta.package.resolver import find_components

if TYPE_CHECKING:
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project


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
        expectation: the name or label of the expectation, or `NAME#2` for the second of that name in its turn; None if
            only one did not pass.
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
    cases = [case for case in run.cases if case.number == number and iteration in {None, case.iteration}]
    if not cases:
        of_iteration = f" in iteration {iteration}" if iteration else ""
        message = f"run {run.id} has no result of case {number}{of_iteration}"
        raise NotFound(message, actions=[show_results(run)])
    chosen = choose_result(run, cases, name=expectation, turn=turn)
    path, answer = _file_of(project, run), chosen.result.actual
    before = _read(path)
    evaluation = read_evaluation(path, before)
    place = find_expectation(evaluation, cases[0], chosen, label=shown(path))
    after = replace_value(path, before, place, answer)
    if not is_only_change(evaluation, read_evaluation(path, after), place, answer):
        message = f"{shown(path)} cannot be changed at this place alone"
        raise UsageError(message, actions=[f"Edit {shown(path)} with a text editor."])
    what = f"Case {number} of {run.definition} would expect the {noun_of(chosen.result)} of run {run.id}"
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
    old, new = ([*map(_ended, data.decode("utf-8-sig").splitlines(keepends=True))] for data in (before, after))
    return "".join(unified_diff(old, new, f"a/{name}", f"b/{name}"))


def _ended(line: str) -> str:
    return f"{line.rstrip(chr(10) + chr(13))}\n"
