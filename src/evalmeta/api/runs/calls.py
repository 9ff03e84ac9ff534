"""A call that runs tests: read the files, choose the cases, check, start, wait, and ask suspect cases again."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta.api.agent_tests import FileTest, read_test, refuse_same_names
from evalmeta.api.discovery import FoundTests, find_tests, read_all, source_note
from evalmeta.api.endpoints import endpoint_settings, is_url
from evalmeta.api.quarantines import listed_problems
from evalmeta.api.runs.confirmation import confirm_suspects
from evalmeta.api.runs.matrix import Agent, agents_of, check_matrix, with_agent
from evalmeta.api.runs.selection import CaseSelection, PlannedRun, split_cases
from evalmeta.api.runs.starting import RunCall, make_plan, run_tests
from evalmeta.engine.metrics import needs_model
from evalmeta.errors import Suggestion, UsageError
from evalmeta.formats.document import check_columns
from evalmeta.model.run_options import OFFLINE_RATER
from evalmeta.package.files import shown
from evalmeta.report.text import count, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.runs.comparisons import Comparator
    from evalmeta.api.runs.observer import Observer
    from evalmeta.api.runs.selection import CaseChoice
    from evalmeta.api.runs.waiting import RunsOutcome
    from evalmeta.formats.document import Document
    from evalmeta.model.evaluation import CaseList
    from evalmeta.package.project import Project

_FUNCTION: Final = re.compile(r"^(?:async )?def ([A-Za-z]\w*)\(", re.MULTILINE)


def on_cluster(project: Project, on: str | None) -> Project:
    """Return a project whose cases a cluster asks: `on`, by default that of EVALMETA_ON; check that it can be reached.

    Raise UsageError if the cluster is none, or Ray is not installed, and ClusterError if it does not answer.
    """
    if not (on or project.on):
        return project
    from evalmeta.engine.remote.ray_cluster import check_address

    check_address(on or project.on)
    return replace(project, on=on or project.on)


@contextmanager
def prepared(call: RunCall, observer: Observer) -> Iterator[RunCall | None]:
    """Read the files of a call and choose its cases, for the block; None if nothing is to run.

    When the block ends, also with an error, the observer receives the files that are not tests.
    """
    paths, selection = split_cases(call.paths, call.selection)
    call = replace(call, paths=paths, selection=selection)
    for path in call.paths:
        _refuse_python(path)
    found = find_tests(call.paths)
    try:
        yield _prepared(call, found, observer)
    finally:
        observer.show_others(found.others)


def _prepared(call: RunCall, found: FoundTests, observer: Observer) -> RunCall | None:
    check_matrix(call)
    every = files = _read_files(call, found, observer)
    affected: tuple[CaseList, ...] = ()
    if since := call.selection.changed_since:
        files, affected = _changed(call, files, since, observer)
        if not files:
            observer.note(f"Nothing was run: nothing that the tests depend on changed since {since}.")
            return None
    _note_criteria(files, call.agent.config, observer)
    check_columns(call.agent.columns, [file.path for file in files])
    _note_unjudged(files, call, observer)
    if call.project.settings.quarantine:
        observer.warn_of(listed_problems(call.project))
    choice = call.selection.choose(call.project, call.names, every, observer)
    if choice is None:
        observer.note("Nothing was run.")
        return None
    return replace(call, files=files, choice=choice.narrowed(affected))


def _changed(
    call: RunCall, files: tuple[FileTest, ...], since: str, observer: Observer
) -> tuple[tuple[FileTest, ...], tuple[CaseList, ...]]:
    """Return the tests and the cases that a change since a commit may affect, and say what is left out.

    Raise UsageError if no case of any test, left out or not, matches the selection.
    """
    if not files:
        raise UsageError(
            "--changed-since is for tests in files, which git knows",
            actions=["Name files or folders: evalmeta test run tests --changed-since REF"],
        )
    selected = _selected(call, files, observer)
    if selected is None or not selected.has_cases_of(files):
        raise _no_match(call)
    from evalmeta.api.runs.changed_tests import choose_changed

    chosen = choose_changed(call.project, files, since, match=call.options.scoring.action_match)
    for text in chosen.notes:
        observer.note(text)
    return chosen.tests, chosen.cases


def plan(call: RunCall, observer: Observer) -> list[PlannedRun]:
    """Return what a prepared call would ask; raise UsageError if that is nothing by mistake."""
    planned = observer.run(make_plan(call, observer))
    if not any(run.cases for run in planned):
        _refuse_no_cases(call, observer)
    return planned


def carry_out(call: RunCall, observer: Observer) -> tuple[RunsOutcome, Comparator | None]:
    """Run the tests of a prepared call; return how that ended, and the comparator that decides about it."""
    outcome, comparator = observer.run(run_tests(call, observer)), call.comparator
    if not any(outcome):
        _refuse_no_cases(call, observer)
    if comparator:
        comparator = confirm_suspects(call, outcome, comparator, observer)
    return outcome, comparator


def _read_files(call: RunCall, found: FoundTests, observer: Observer) -> tuple[FileTest, ...]:
    """Read the tests in files and folders, once for each agent of a matrix; options override what they say."""
    for pair in found.sources.items():
        observer.note(source_note(*pair))
    agents = agents_of(call.agent)
    tests, *others = [_read_with(call, found, agent) for agent in agents]
    refuse_same_names(tests)
    for test in tests:
        for problem in test.document.notes:
            observer.note(f"{problem}\n  → {problem.hint}" if problem.hint else str(problem))
    observer.warn_of([problem for test in tests for problem in test.warnings], call.paths)
    # The runs of a test follow each other.
    every = [test for of_test in zip(tests, *others, strict=True) for test in of_test]
    return tuple(replace(test, document=_without(test.document, call.given)) for test in every)


def _read_with(call: RunCall, found: FoundTests, agent: Agent) -> list[FileTest]:
    """Read the tests with an agent."""
    options, is_matrix = call.agent, bool(call.agent.matrix)
    # In a matrix, the model may be that of an agent of the settings.
    model = agent.model if not is_matrix or is_url(agent.subject) else None
    read = partial(
        read_test,
        call.project,
        subject=agent.subject,
        endpoint=endpoint_settings(agent.subject, model=model, api_key_env=options.api_key_env),
        is_asked=is_matrix or not call.is_plan,
        config=options.config,
        columns=options.columns,
    )
    tests = read_all(found.paths, read)
    return [with_agent(call.project, test, agent) for test in tests] if is_matrix else list(tests)


def _refuse_python(path: Path) -> None:
    """Refuse a Python file, which is more likely to be the agent than a test."""
    if path.suffix != ".py" or not path.is_file():
        return
    functions = _FUNCTION.findall(path.read_text(encoding="utf-8", errors="replace"))
    name = "answer" if "answer" in functions or not functions else functions[0]
    module = ".".join(path.with_suffix("").parts)
    raise UsageError(
        f"{shown(path)} is not a test file",
        actions=[f"If it is the agent, name it in an option: evalmeta test run TEST_FILE --agent {module}:{name}"],
    )


def _note_criteria(files: Sequence[FileTest], config: Path | None, observer: Observer) -> None:
    """Say which files' criteria apply; refuse a configuration that no file uses."""
    used = list(dict.fromkeys(file.document.criteria for file in files if file.document.criteria))
    if config is not None and not used:
        raise UsageError("--config is only for eval sets of ADK, and there are none among the files")
    if used:
        observer.note(f"Criteria: {', '.join(used)}")


def _note_unjudged(files: Sequence[FileTest], call: RunCall, observer: Observer) -> None:
    """Say how many expectations of the tests only a language model can judge, if the run has none."""
    name = call.options.scoring.rater
    rater = call.project.settings.raters.get(name)
    if (rater.adapter if rater else name) != OFFLINE_RATER:
        return
    names = sum((Counter(file.expectations) for file in files), Counter[str]())
    if lacking := sum(number for name, number in names.items() if needs_model(name)):
        share = f"{lacking:,} of {count(names.total(), 'expectation')} ({percent(lacking / names.total())})"
        observer.note(
            f"Only an LLM rater can judge {share}; without one they are undecided. Add one to evalmeta.toml"
            " (docs/rating.md) and use --rater."
        )


def _without(document: Document, given: Mapping[str, object]) -> Document:
    if "iterations" in given:
        document = replace(document, iterations=None)
    return replace(document, min_pass_rate=None) if "min_pass_rate" in given else document


def _refuse_no_cases(call: RunCall, observer: Observer) -> None:
    """Say that nothing was run if that may be so; else raise UsageError: the files or the selection are wrong."""
    # With --changed-since, cases of tests that are left out may match, as was checked before.
    if call.selection.changed_since or (call.selection.may_be_empty and _matches(call, observer)):
        shard = call.options.shard
        where = f"no case is in shard {shard[0]}/{shard[1]}" if shard else "no case is left"
        observer.note(f"Nothing was run: {where}.")
        return
    if call.selection == CaseSelection():
        named = ", ".join(map(str, call.paths)) or "the tests"
        raise UsageError(
            f"there are no test cases in {named}",
            actions=["Add test cases: utterances, and what you expect of the answers."],
        )
    raise _no_match(call)


def _no_match(call: RunCall) -> UsageError:
    subject = call.agent.subject
    words = [*map(str, call.paths), *(("--agent", subject) if subject else ()), "--dry-run"]
    way_out = Suggestion("See all cases, without --case and --tag", "test", "run", *words)
    return UsageError("no test case matches the selection", actions=[way_out])


def _matches(call: RunCall, observer: Observer) -> bool:
    """Return whether cases match what was selected by itself: not by a shard, and not by failures."""
    choice = _selected(call, call.files, observer)
    if choice is None:
        return False
    whole = replace(call, choice=choice, options=replace(call.options, shard=None))
    return any(run.cases for run in observer.run(make_plan(whole, observer)))


def _selected(call: RunCall, files: Sequence[FileTest], observer: Observer) -> CaseChoice | None:
    """Return the cases that were selected by themselves: not by a shard, and not by failures."""
    chosen = call.selection._replace(shard=None, failed_from=(), last_failed=False)
    return chosen.choose(call.project, call.names, files, observer)
