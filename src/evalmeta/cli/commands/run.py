"""`evalmeta run`: run the tests in files and report them, the short form of `evalmeta test run PATH... --wait`.

With `--watch`, a process of its own runs them again after each change.
"""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import click
from watchfiles import watch

from evalmeta import api
from evalmeta.cli.groups import CallOptions
from evalmeta.cli.jobs import wait_option
from evalmeta.cli.options import PATH
from evalmeta.cli.output import note
from evalmeta.cli.runs.baselines import BaselineOption, confirming_option
from evalmeta.cli.runs.calls import agent_options, estimate_option, run_call
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
from evalmeta.errors import EXIT_INTERRUPTED, EXIT_PASSED, EvalmetaError
from evalmeta.package.files import shown
from evalmeta.package.folders import files_below
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.api.runs.selection import CaseSelection
    from evalmeta.api.runs.starting import AgentOptions
    from evalmeta.cli.runs.options import Values

    _Events: TypeAlias = Iterator[set[Path]]


# Editors write several files: changes are reported when nothing has changed for this time.
_QUIET_MS: Final = 300
_MOST_MS: Final = 5_000
_WATCHED: Final = (".py", ".csv", ".json", ".jsonl", ".yaml", ".yml", ".xml", ".toml", "Definition")
# Runs write such files too: reports, and what agents remember.
_WRITTEN: Final = (".csv", ".json", ".jsonl", ".xml")


def watch_tests(root: Path, paths: Sequence[Path], words: Sequence[str]) -> int:
    """Run the tests in files, and again what changed, until Ctrl-C; return the exit code.

    Each run is a process of its own, so that it imports the agent's modules again. A change of a test runs that test.
    All other changes run all tests. Changes of other data files during a run are its own and are ignored. The files of
    the project in `root` are watched beside `paths`; `words` are the options of `evalmeta run` without --watch.
    """
    is_running, chosen = True, list(paths)
    try:
        while True:
            is_running = True
            # A new watch for each run: editors replace files, and the watch of a named file ends with the file.
            before, events = watched_files(root, paths), file_events(root, paths)
            changed = not_written(_run(chosen, words, events) & (before | watched_files(root, paths)), paths)
            is_running = False
            note(f"\nWatching {shown(root)} for changes. Press Ctrl-C to stop.")
            while not changed:
                changed = next(events) & (before | watched_files(root, paths))
            chosen = affected(changed, paths)
            note(f"\nChanged: {', '.join(str(shown(path)) for path in sorted(changed))}\n")
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED if is_running else EXIT_PASSED


def watched_files(root: Path, paths: Iterable[Path]) -> set[Path]:
    """Return the files that can change results."""
    files = (file for path in _places(root, paths) for file in (files_below(path) if path.is_dir() else [path]))
    return {file.resolve() for file in files if file.name.endswith(_WATCHED)}


def not_written(changed: Iterable[Path], paths: Sequence[Path]) -> set[Path]:
    """Return what changed during a run, without the files that the run may have written."""
    tests = _tests(paths)
    return {path for path in changed if path in tests or not path.name.endswith(_WRITTEN) or not path.exists()}


def affected(changed: set[Path], paths: Sequence[Path]) -> list[Path]:
    """Return the tests to run after changes: the changed ones, or all if another file has changed."""
    tests = _tests(paths)
    return [tests[path] for path in sorted(changed)] if changed <= tests.keys() else list(paths)


def _tests(paths: Sequence[Path]) -> dict[Path, Path]:
    """Return the tests in files and folders by their full paths; none if there is an error, which the run prints."""
    try:
        return {path.resolve(): path for path in api.discovery.find_tests(paths).paths}
    except EvalmetaError:
        return {}


def _places(root: Path, paths: Iterable[Path]) -> list[Path]:
    return [root, *(path for path in paths if path.exists() and not path.resolve().is_relative_to(root))]


def file_events(root: Path, paths: Sequence[Path]) -> _Events:
    """Yield the paths that change, an empty set if none does for a moment; the first call begins to watch."""
    places = [place.resolve() for place in _places(root, paths)]
    try:
        yield from _batches(places)
    except OSError:
        # The system limits the number of watched folders, and a project may have more.
        yield from _batches(places, force_polling=True)


def _batches(places: Iterable[Path], *, force_polling: bool | None = None) -> _Events:
    changes = watch(
        *places,
        watch_filter=None,
        debounce=_MOST_MS,
        step=_QUIET_MS,
        rust_timeout=_QUIET_MS,
        yield_on_timeout=True,
        ignore_permission_denied=True,
        force_polling=force_polling,
    )
    for batch in changes:
        yield {Path(path) for _, path in batch}


def _run(paths: Sequence[Path], words: Sequence[str], events: _Events) -> set[Path]:
    """Run tests, and return which files have changed meanwhile."""
    # -P: a file of the project must not replace a module of the standard library with the same name.
    with subprocess.Popen([sys.executable, "-P", "-m", "evalmeta", "run", *words, "--", *map(str, paths)]) as running:
        try:
            changed = next(events)
            running.wait()
        except KeyboardInterrupt:
            # Ctrl-C reaches the run too, which saves its finished results.
            running.wait()
            raise
    return changed | next(events)


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
@estimate_option
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
    estimate: bool,
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
        from evalmeta.cli.commands.run import watch_tests

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
        is_plan=dry_run or estimate,
        estimates=estimate,
        comparator=comparator,
    )
    return run_call(call, output)
