"""`evalmeta run`: run the tests in files and report them, the short form of `evalmeta test run PATH... --wait`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.groups import CallOptions
from evalmeta.cli.jobs import wait_option
from evalmeta.cli.options import PATH
from evalmeta.cli.runs.baselines import confirming_option
from evalmeta.cli.runs.calls import agent_options, run_call
from evalmeta.cli.runs.options import (
    OPTION_SECTIONS,
    RenamedOptionsCommand,
    case_options,
    policy_options,
    run_options,
    running_options,
    scoring_options,
)
from evalmeta.cli.runs.reports import Output, report_options
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from evalmeta.api.runs.selection import CaseSelection
    from evalmeta.api.runs.starting import AgentOptions
    from evalmeta.cli.runs.baselines import BaselineOption
    from evalmeta.cli.runs.options import Values


@click.command(
    cls=RenamedOptionsCommand,
    sections=OPTION_SECTIONS,
    renamed={
        "--num-runs": "--iterations",
        "--runs": "--iterations",
        "--config_file_path": "--config",
        "--api-name": "`evalmeta test run --api-name`",
        "-n": "`evalmeta test run -n`",
    },
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=PATH)
@agent_options
@wait_option("until it is done")
@case_options
@running_options
@policy_options
@scoring_options
@click.option("--watch", is_flag=True, help="Run again what changed, whenever a test or the agent's files change.")
@click.option("--dry-run", is_flag=True, help="Print the cases that would run, without running them.")
@confirming_option
@report_options
def run(
    paths: tuple[Path, ...],
    *,
    agent: AgentOptions,
    wait: float | None,
    selection: CaseSelection,
    running: Values,
    policy: Values,
    scoring: Values,
    watch: bool,
    dry_run: bool,
    baseline: BaselineOption | None,
    output: Output,
) -> int:
    """Run the tests in files and folders, and show their results.

    By default, evalmeta runs all tests in the project, or in the current folder if it does not belong to a project.
    Tests are definitions (XML), test specs (YAML), tables (CSV), JSON Lines and eval sets (JSON).
    They are not deployed. To run deployed tests, use `evalmeta test run`.

    \b
    evalmeta run
    evalmeta run tests/answers.yaml --case 3
    evalmeta run --agent my_agent:answer
    evalmeta run --agent http://127.0.0.1:8000/v1 --model my-model
    evalmeta run --last-failed
    evalmeta run --watch
    evalmeta run --result-format junit --output-dir results

    Defaults of the options are set under [run] and [score] in evalmeta.toml.
    """
    project = find_project(Path.cwd(), or_folder=True)
    # The project's folder, relative to the current folder if that is in it.
    found = paths or (Path() if project.root == Path.cwd().resolve() else project.root,)
    if watch:
        from evalmeta.cli.watching import watch_tests

        left_out = {"--watch", "--", *map(str, paths)}
        words = click.get_current_context().ensure_object(CallOptions).words or ()
        return watch_tests(project.root, found, [word for word in words if word not in left_out])
    options = run_options(project, scoring, running, policy, selection=selection)
    comparator = baseline.open(project) if baseline else None
    call = api.runs.starting.RunCall(
        project=project,
        options=options,
        wait=math.inf if wait is None else wait,
        paths=found,
        agent=agent,
        selection=selection,
        given={**running, **policy},
        is_plan=dry_run,
        comparator=comparator,
    )
    return run_call(call, output)
