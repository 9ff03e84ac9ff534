"""`evalmeta test run`: run tests that are deployed, or tests in files."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.completions import complete_runs, complete_tests
from evalmeta.cli.jobs import wait_option
from evalmeta.cli.options import PATH, on_option, target_org_option
from evalmeta.cli.orgs import choose_target
from evalmeta.cli.runs.baselines import BaselineOption, confirming_option
from evalmeta.cli.runs.calls import agent_options, estimate_option, run_call
from evalmeta.cli.runs.options import (
    OPTION_SECTIONS,
    RenamedOptionsCommand,
    case_options,
    checking_options,
    chosen_checking,
    policy_options,
    results_need_wait,
    run_options,
    running_options,
    scoring_options,
)
from evalmeta.cli.runs.reports import Output, report_options, report_outcome
from evalmeta.errors import UsageError
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.runs.selection import CaseSelection
    from evalmeta.api.runs.starting import AgentOptions
    from evalmeta.api.runs.verification import Checking
    from evalmeta.cli.runs.options import Values


@click.command(
    "run",
    cls=RenamedOptionsCommand,
    sections=OPTION_SECTIONS,
    renamed={"--num-runs": "--iterations", "--runs": "--iterations", "--config_file_path": "--config"},
)
@results_need_wait
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=PATH)
@click.option(
    "-n",
    "--api-name",
    "names",
    multiple=True,
    shell_complete=complete_tests,
    help="A test to run, or Type:Name if tests of two types have the name; repeatable.  [default: all]",
)
@click.option("--bound", is_flag=True, help="Leave out tests whose agent evalmeta.toml does not bind, and name them.")
@agent_options
@wait_option("do not wait; the run continues in the background")
@case_options
@running_options
@policy_options
@scoring_options
@checking_options
@click.option("--dry-run", is_flag=True, help="Print the cases that would run, without running them.")
@estimate_option
@click.option(
    "--extend",
    metavar="RUN",
    shell_complete=complete_runs,
    help="Add iterations to a run that is over, up to the total of --iterations.",
)
@click.option(
    "--ignore-changes", is_flag=True, help="With --extend: use the definition as it was, even if it has changed."
)
@click.option("--mixed", is_flag=True, help="With --extend: continue even if the agent has changed.")
@target_org_option
@on_option
@confirming_option
@report_options
def run(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    *,
    bound: bool,
    agent: AgentOptions,
    wait: float | None,
    selection: CaseSelection,
    running: Values,
    policy: Values,
    scoring: Values,
    checking: Checking,
    dry_run: bool,
    estimate: bool,
    extend: str | None,
    ignore_changes: bool,
    mixed: bool,
    target_org: str | None,
    on: str | None,
    baseline: BaselineOption | None,
    output: Output,
) -> int:
    """Run agent tests that are in the org, or in files of any format.

    For a folder, evalmeta runs the tests in it: definitions (XML), test specs (YAML), tables (CSV), JSON Lines and
    eval sets (JSON). Files are not deployed; they run in the embedded org.

    \b
    evalmeta test run --wait
    evalmeta test run evaluation/ --agent my_agent:answer --wait
    evalmeta test run eval_set.jsonl --wait
    evalmeta test run --wait 10
    evalmeta test run -n Order_Desk --case 3 --wait
    evalmeta test run --wait --result-format junit --output-dir results
    evalmeta test run --wait --iterations 5 --min-pass-rate 0.9 --baseline baseline.json
    evalmeta test run --wait --baseline baseline.json --suspect fail
    evalmeta test run --wait --iterations 10 --extend 4KB000000000001GAA

    Defaults of the options are set under [run] and [score] in evalmeta.toml.
    """
    project = api.runs.calls.on_cluster(find_project(Path.cwd(), or_folder=bool(paths)), on)
    options = run_options(project, scoring, running, policy, selection=selection, checking=checking)
    checking = chosen_checking(project, checking, scoring=scoring, running=running)
    comparator = baseline.open(project) if baseline else None
    if extend is not None:
        selects = bool(paths or names or bound or dry_run or estimate or agent.matrix)
        selects = selects or selection != api.runs.selection.CaseSelection()
        _check_extend(running, others=selects or bool(policy or scoring))
        if baseline and baseline.must_confirm:
            raise UsageError("--extend adds iterations to all cases: leave out --confirm")
        extended = api.runs.reruns.find_run(Path.cwd(), extend, named=target_org)
        outcome = api.runs.reruns.extend_run(
            replace(extended, project=replace(extended.project, on=project.on)),
            output.printer(),
            iterations=options.iterations,
            wait=wait,
            ignore_changes=ignore_changes,
            mixed=mixed,
        )
        return report_outcome(project, outcome, output, comparator)
    if mixed:
        raise UsageError("--mixed needs --extend: other runs have no earlier answers")
    _check_files(paths, names, target_org, agent, ignore_changes=ignore_changes)
    target = None if paths else choose_target(project, target_org)
    if on and target is not None:
        raise UsageError("--on is only for the embedded org: other orgs ask their agents themselves")
    call = api.runs.starting.RunCall(
        project=project,
        target=target,
        options=options,
        wait=wait,
        paths=paths,
        names=names,
        bound=bound,
        agent=agent,
        selection=selection,
        given={**running, **policy},
        is_plan=dry_run or estimate,
        estimates=estimate,
        checking=checking,
        comparator=comparator,
    )
    return run_call(call, output)


def _check_extend(running: Values, *, others: bool) -> None:
    if "iterations" not in running:
        raise UsageError("--extend needs --iterations: the total number of iterations")
    if others or len(running) > 1:
        raise UsageError(
            "--extend runs the same cases with the same options as the first run",
            actions=["Leave out the options for selecting, running and scoring cases."],
        )


def _check_files(
    paths: Sequence[Path], names: Sequence[str], target_org: str | None, agent: AgentOptions, *, ignore_changes: bool
) -> None:
    if ignore_changes:
        raise UsageError("--ignore-changes needs --extend: other runs always use what is deployed")
    if paths and (names or target_org not in {None, "embedded"}):
        raise UsageError("files run in the embedded org: leave out --api-name and --target-org")
    words = ("--agent", agent.subject) if agent.subject is not None else ("--matrix", *agent.matrix[:1])
    if len(words) > 1 and not paths:
        raise UsageError(
            f"{words[0]} is only for files: deployed tests name their agent",
            actions=[f"Run the tests in the project's files: evalmeta run {shlex.join(words)}"],
        )
