"""`evalmeta test run`: run tests that are deployed, or tests in files."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.baselines import confirming_option
from evalmeta.cli.confirmations import confirm_suspects
from evalmeta.cli.groups import RenamedOptionsCommand
from evalmeta.cli.jobs import wait_option
from evalmeta.cli.options import PATH
from evalmeta.cli.orgs import choose_target, run_async, target_org_option
from evalmeta.cli.output import note, print_warnings
from evalmeta.cli.reruns import extend_run, find_run
from evalmeta.cli.run_options import (
    CaseSelection,
    case_options,
    policy_options,
    results_need_wait,
    run_options,
    running_options,
    scoring_options,
)
from evalmeta.cli.run_reports import Output, report_options, report_outcome
from evalmeta.cli.runs import RunRequest, RunsOutcome, make_plan, print_plan, run_tests
from evalmeta.errors import Suggestion, UsageError
from evalmeta.package.files import shown
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.cli.baselines import BaselineOption
    from evalmeta.cli.run_options import Values
    from evalmeta.formats.document import Document


_FUNCTION: Final = re.compile(r"^(?:async )?def ([A-Za-z]\w*)\(", re.MULTILINE)


@click.command(
    "run",
    cls=RenamedOptionsCommand,
    renamed={"--num-runs": "--iterations", "--runs": "--iterations", "--config_file_path": "--config"},
)
@results_need_wait
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=PATH)
@click.option(
    "-n",
    "--api-name",
    "names",
    multiple=True,
    help="A test to run, or Type:Name if tests of two types have the name; repeatable.  [default: all]",
)
@click.option(
    "--subject",
    metavar="NAME_OR_MODULE:NAME",
    help="Agent under test for file runs: an agent of evalmeta.toml, or a Python function.  [default: the file's]",
)
@click.option(
    "--config",
    type=PATH,
    help="Criteria of ADK's eval sets.  [default: test_config.json beside each file]",
    metavar="FILE",
)
@wait_option("do not wait; the run continues in the background")
@case_options
@running_options
@policy_options
@scoring_options
@click.option("--dry-run", is_flag=True, help="Print the cases that would run, without running them.")
@click.option("--extend", metavar="RUN", help="Add iterations to a run that is over, up to the total of --iterations.")
@click.option(
    "--ignore-changes", is_flag=True, help="With --extend: use the definition as it was, even if it has changed."
)
@target_org_option
@confirming_option
@report_options
def run(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    *,
    subject: str | None,
    config: Path | None,
    wait: float | None,
    selection: CaseSelection,
    running: Values,
    policy: Values,
    scoring: Values,
    dry_run: bool,
    extend: str | None,
    ignore_changes: bool,
    target_org: str | None,
    baseline: BaselineOption | None,
    output: Output,
) -> int:
    """Run agent tests that are in the org, or in files of any format.

    For a folder, evalmeta runs the tests in it: definitions, test specs (YAML), tables of the Testing Center (CSV),
    *.test.json and *.evalset.json. Files are not deployed; they run in the embedded org.

    \b
    evalmeta test run --wait
    evalmeta test run evaluation/ --subject my_agent:answer --wait
    evalmeta test run eval_set.jsonl --wait
    evalmeta test run --wait 10
    evalmeta test run -n Order_Desk --case 3 --wait
    evalmeta test run --wait --result-format junit --output-dir results
    evalmeta test run --wait --iterations 5 --min-pass-rate 0.9 --baseline baseline.json
    evalmeta test run --wait --baseline baseline.json --confirm 5
    evalmeta test run --wait --iterations 10 --extend 4KB000000000001GAA

    Defaults of the options are set under [run] and [score] in evalmeta.toml.
    """
    project = find_project(Path.cwd(), or_folder=bool(paths))
    options = run_options(project, scoring, running, policy, selection=selection)
    comparator = baseline.open(project) if baseline else None
    if extend is not None:
        selects = bool(paths or names or dry_run) or selection != CaseSelection()
        _check_extend(running, others=selects or bool(policy or scoring))
        if baseline and baseline.confirm:
            raise UsageError("--extend adds iterations to all cases: leave out --confirm")
        first, is_quiet = find_run(extend, target_org), not output.is_human
        outcome = extend_run(
            first, iterations=options.iterations, wait=wait, ignore_changes=ignore_changes, is_quiet=is_quiet
        )
        return report_outcome(project, outcome, output, comparator)
    _check_files(paths, names, target_org, subject, ignore_changes=ignore_changes)
    target = None if paths else choose_target(project, target_org)
    read = partial(api.agent_tests.read_test, project, subject=subject, is_asked=not dry_run, config=config)
    files = _read_files(paths, read, given={**running, **policy})
    _note_criteria(files, config)
    choice = selection.choose(project, names, files)
    if choice is None:
        return report_outcome(project, RunsOutcome([], [], []), output, comparator)
    will_confirm = comparator is not None and comparator.confirm is not None
    request = RunRequest(choice, options, wait, not output.is_human, files, will_confirm=will_confirm)
    if dry_run:
        planned = run_async(make_plan(project, target, request))
        if not any(each.cases for each in planned):
            _refuse_no_cases(selection, paths, subject)
        print_plan(project, target, planned, request, as_json=output.as_json)
        return 0
    outcome = run_async(run_tests(project, target, request))
    if not any(outcome):
        _refuse_no_cases(selection, paths, subject)
    if comparator and comparator.confirm:
        confirm_suspects(project, target, request, outcome, comparator)
    return report_outcome(project, outcome, output, comparator)


def _check_extend(running: Values, *, others: bool) -> None:
    if "iterations" not in running:
        raise UsageError("--extend needs --iterations: the total number of iterations")
    if others or len(running) > 1:
        raise UsageError(
            "--extend runs the same cases with the same options as the first run",
            actions=["Leave out the options for selecting, running and scoring cases."],
        )


def _check_files(
    paths: Sequence[Path], names: Sequence[str], target_org: str | None, subject: str | None, *, ignore_changes: bool
) -> None:
    if ignore_changes:
        raise UsageError("--ignore-changes needs --extend: other runs always use what is deployed")
    if paths and (names or target_org not in {None, "embedded"}):
        raise UsageError("files run in the embedded org: leave out --api-name and --target-org")
    if subject is not None and not paths:
        raise UsageError("--subject is only for files: deployed tests name their agent")


def _read_files(paths: Sequence[Path], read: Callable[[Path], FileTest], *, given: Values) -> tuple[FileTest, ...]:
    """Read the tests in files and folders, and print the notes about them; options override what files say."""
    if not paths:
        return ()
    for path in paths:
        _refuse_python(path)
    found = api.discovery.find_tests(paths)
    for pair in found.sources.items():
        note(api.discovery.source_note(*pair))
    tests = [read(path) for path in found.paths]
    api.agent_tests.refuse_same_names(tests)
    for each in tests:
        for problem in each.document.notes:
            note(f"{problem}\n  → {problem.hint}" if problem.hint else str(problem))
    print_warnings([problem for each in tests for problem in each.warnings], paths=[*map(str, paths)])
    return tuple(replace(each, document=_without(each.document, given)) for each in tests)


def _refuse_python(path: Path) -> None:
    """Refuse a Python file, which is more likely to be the agent than a test."""
    if path.suffix != ".py" or not path.is_file():
        return
    functions = _FUNCTION.findall(path.read_text(encoding="utf-8", errors="replace"))
    name = "answer" if "answer" in functions or not functions else functions[0]
    module = ".".join(path.with_suffix("").parts)
    raise UsageError(
        f"{shown(path)} is not a test file",
        actions=[f"If it is the agent, name it in an option: evalmeta test run TEST_FILE --subject {module}:{name}"],
    )


def _note_criteria(files: Sequence[FileTest], config: Path | None) -> None:
    """Print which files' criteria apply; refuse a configuration that no file uses."""
    used = list(dict.fromkeys(each.document.criteria for each in files if each.document.criteria))
    if config is not None and not used:
        raise UsageError("--config is only for eval sets of ADK, and there are none among the files")
    if used:
        note(f"Criteria: {', '.join(used)}")


def _without(document: Document, given: Values) -> Document:
    if "iterations" in given:
        document = replace(document, iterations=None)
    return replace(document, min_pass_rate=None) if "min_pass_rate" in given else document


def _refuse_no_cases(selection: CaseSelection, paths: tuple[Path, ...], subject: str | None) -> None:
    if selection.may_be_empty:
        note("No cases are left to run.")
        return
    if selection == CaseSelection():
        named = ", ".join(map(str, paths)) or "the tests"
        raise UsageError(
            f"there are no test cases in {named}",
            actions=["Add test cases: utterances, and what you expect of the answers."],
        )
    words = [*map(str, paths), *(("--subject", subject) if subject else ()), "--dry-run"]
    way_out = Suggestion("See all cases, without --case and --tag", "test", "run", *words)
    raise UsageError("no test case matches the selection", actions=[way_out])
