"""Run tests as options say: the tests in files or in the org, with their agent, and what they report."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api
from evalmeta.cli.options import PATH, option_group
from evalmeta.cli.orgs import run_async
from evalmeta.cli.output import note, print_warnings
from evalmeta.cli.runs.confirmations import confirm_suspects
from evalmeta.cli.runs.options import CaseSelection
from evalmeta.cli.runs.reports import report_outcome
from evalmeta.cli.runs.starting import RunRequest, RunsOutcome, make_plan, print_plan, run_tests
from evalmeta.errors import Suggestion, UsageError
from evalmeta.model.run_options import OFFLINE_RATER
from evalmeta.package.files import shown
from evalmeta.report.text import count, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.discovery import FoundTests
    from evalmeta.api.org_targets import Target
    from evalmeta.api.runs.verification import Checking
    from evalmeta.cli.options import Decorator
    from evalmeta.cli.runs.baselines import Comparator
    from evalmeta.cli.runs.options import Values
    from evalmeta.cli.runs.reports import Output
    from evalmeta.formats.document import Document
    from evalmeta.model.run_options import RunOptions
    from evalmeta.package.project import Project


_FUNCTION: Final = re.compile(r"^(?:async )?def ([A-Za-z]\w*)\(", re.MULTILINE)


class AgentOptions(NamedTuple):
    """The agent under test of files, and the criteria of ADK's eval sets.

    Attributes:
        subject: a name that the project binds, `module:name` of a Python object, or a URL; None for the file's agent.
        model: the model to ask, if the subject is a URL.
        api_key_env: the environment variable with the endpoint's key, if the subject is a URL.
        config: the file with the criteria; None for the project's.
    """

    subject: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    config: Path | None = None


_AGENT: Sequence[Decorator] = (
    click.option(
        "--subject",
        metavar="AGENT",
        help="Agent under test for file runs: module:function, http://HOST/v1, or an agent of evalmeta.toml.  "
        "[default: the file's]",
    ),
    click.option("--model", metavar="NAME", help="With --subject URL: the model to ask."),
    click.option(
        "--api-key-env", metavar="NAME", help="With --subject URL: the environment variable with the API key."
    ),
    click.option(
        "--config",
        type=PATH,
        help="Criteria of ADK's eval sets.  [default: test_config.json beside each file]",
        metavar="FILE",
    ),
)
agent_options = option_group("agent", AgentOptions, _AGENT)


class RunCall(NamedTuple):
    """A call of a command that runs tests.

    Attributes:
        target: the org with the tests; None for the embedded one, which also runs files.
        wait: seconds; None starts runs without waiting for them.
        paths: files and folders; empty to run the tests in the org.
        names: the tests in the org; empty for all.
        given: the options that replace what files say.
        dry_run: whether to print the cases only.
        checking: how the verdicts of a Salesforce org are checked.
    """

    project: Project
    target: Target | None
    options: RunOptions
    wait: float | None
    paths: tuple[Path, ...]
    names: tuple[str, ...]
    agent: AgentOptions
    selection: CaseSelection
    given: Values
    dry_run: bool
    checking: Checking | None = None


def run_call(call: RunCall, output: Output, comparator: Comparator | None) -> int:
    """Run the tests of a call, or print them with --dry-run, and return the exit code."""
    found = _find_tests(call.paths)
    try:
        return _run_found(call, found, output, comparator)
    finally:
        if output.detail != "verdict" and (
            text := api.discovery.others_note(found.others, verbose=output.detail == "all")
        ):
            note(text)


def _find_tests(paths: Sequence[Path]) -> FoundTests:
    for path in paths:
        _refuse_python(path)
    return api.discovery.find_tests(paths)


def _run_found(call: RunCall, found: FoundTests, output: Output, comparator: Comparator | None) -> int:
    project, target, selection, agent = call.project, call.target, call.selection, call.agent
    endpoint = api.endpoints.endpoint_settings(agent.subject, model=agent.model, api_key_env=agent.api_key_env)
    read = partial(
        api.agent_tests.read_test,
        project,
        subject=agent.subject,
        endpoint=endpoint,
        is_asked=not call.dry_run,
        config=agent.config,
    )
    files = _read_files(found, call.paths, read, given=call.given)
    _note_criteria(files, agent.config)
    _note_unjudged(files, call.options, project)
    if project.settings.quarantine:
        print_warnings(api.quarantines.listed_problems(project))
    choice = selection.choose(project, call.names, files)
    if choice is None:
        note("Nothing was run.")
        return report_outcome(project, RunsOutcome([], [], []), output, comparator)
    will_confirm = comparator is not None and comparator.must_confirm
    request = RunRequest(choice, call.options, call.wait, not output.is_human, files, will_confirm, call.checking)
    if call.dry_run:
        planned = run_async(make_plan(project, target, request))
        if not any(each.cases for each in planned):
            _refuse_no_cases(call, request)
        print_plan(project, target, planned, request, as_json=output.as_json)
        return 0
    outcome = run_async(run_tests(project, target, request))
    if not any(outcome):
        _refuse_no_cases(call, request)
    if comparator:
        comparator = confirm_suspects(project, target, request, outcome, comparator)
    return report_outcome(project, outcome, output, comparator)


def _read_files(
    found: FoundTests, paths: Sequence[Path], read: Callable[[Path], FileTest], *, given: Values
) -> tuple[FileTest, ...]:
    """Read the tests in files and folders, and print the notes about them; options override what files say."""
    for pair in found.sources.items():
        note(api.discovery.source_note(*pair))
    tests = api.discovery.read_all(found.paths, read)
    api.agent_tests.refuse_same_names(tests)
    for test in tests:
        for problem in test.document.notes:
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
    used = list(dict.fromkeys(file.document.criteria for file in files if file.document.criteria))
    if config is not None and not used:
        raise UsageError("--config is only for eval sets of ADK, and there are none among the files")
    if used:
        note(f"Criteria: {', '.join(used)}")


def _note_unjudged(files: Sequence[FileTest], options: RunOptions, project: Project) -> None:
    """Print how many expectations of the tests only a language model can judge, if the run has none."""
    rater = project.settings.raters.get(options.scoring.rater)
    if (rater.adapter if rater else options.scoring.rater) != OFFLINE_RATER:
        return
    from evalmeta.engine.metrics import needs_model

    cases = [case for file in files for case in file.document.evaluation.cases]
    expectations = (expectation for case in cases for turn in case.turns for expectation in turn.expectations)
    names = Counter(expectation.name for expectation in expectations)
    if lacking := sum(number for name, number in names.items() if needs_model(name)):
        share = f"{lacking:,} of {count(names.total(), 'expectation')} ({percent(lacking / names.total())})"
        note(
            f"Only an LLM rater can judge {share}; without one they are undecided. Add one to evalmeta.toml"
            " (docs/rating.md) and use --rater."
        )


def _without(document: Document, given: Values) -> Document:
    if "iterations" in given:
        document = replace(document, iterations=None)
    return replace(document, min_pass_rate=None) if "min_pass_rate" in given else document


def _refuse_no_cases(call: RunCall, request: RunRequest) -> None:
    """Say that nothing was run if that may be so; else raise UsageError: the files or the selection are wrong."""
    if call.selection.may_be_empty and _matches(call, request):
        shard = call.options.shard
        where = f"no case is in shard {shard[0]}/{shard[1]}" if shard else "no case is left"
        note(f"Nothing was run: {where}.")
        return
    if call.selection == CaseSelection():
        named = ", ".join(map(str, call.paths)) or "the tests"
        raise UsageError(
            f"there are no test cases in {named}",
            actions=["Add test cases: utterances, and what you expect of the answers."],
        )
    subject = call.agent.subject
    words = [*map(str, call.paths), *(("--subject", subject) if subject else ()), "--dry-run"]
    way_out = Suggestion("See all cases, without --case and --tag", "test", "run", *words)
    raise UsageError("no test case matches the selection", actions=[way_out])


def _matches(call: RunCall, request: RunRequest) -> bool:
    """Return whether cases match what was selected by itself: not by a shard, and not by failures."""
    chosen = call.selection._replace(shard=None, failed_from=(), last_failed=False)
    choice = chosen.choose(call.project, call.names, request.files)
    if choice is None:
        return False
    whole = request._replace(choice=choice, options=replace(call.options, shard=None))
    planned = run_async(make_plan(call.project, call.target, whole))
    return any(each.cases for each in planned)
