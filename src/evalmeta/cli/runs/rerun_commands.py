"""The command that runs only the cases again that failed, as reports print it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.groups import CallOptions, completed
from evalmeta.cli.runs.report_files import split_reports
from evalmeta.errors import Suggestion
from evalmeta.report.human import has_failing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.run import Run
    from evalmeta.package.project import Project
    from evalmeta.report.report import Report


_PURPOSE: Final = "To run only these again"
_LAST_FAILED: Final = ("--last-failed", "--lf")


def rerun_commands(project: Project, reports: Sequence[Report], *, is_whole_call: bool) -> list[str]:
    """Return sentences with the commands that run exactly the cases again that fail these runs; none if none does.

    If these are all runs of the current command, the command is the same call with --last-failed. Otherwise it names
    the runs; those of files with different agents need a command each. Runs of other orgs and archives have none, and
    neither do runs whose test is gone or came as a payload.
    """
    if project.is_archive:
        return []
    runs = [report.run for report in reports if report.run.status.is_over and has_failing(report)]
    runs = [run for run in runs if api.runs.finding.is_here(project, run.id)]
    context = click.get_current_context(silent=True)
    if not runs or context is None:
        return []
    words = context.ensure_object(CallOptions).words
    # With a baseline, the last runs may be those of suspect cases that were asked again; with a matrix, each test has
    # several.
    is_matrix = any(report.matrix for report in reports)
    has_other_runs = context.params.get("extend") or context.params.get("baseline") or is_matrix
    if is_whole_call and words is not None and not has_other_runs:
        first = () if set(words) & set(_LAST_FAILED) else _LAST_FAILED[:1]
        # A report on some cases must not replace that on all.
        _, others = split_reports(words)
        return [f"{_PURPOSE}: {context.command_path} {shlex.join((*first, *others))}"]
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in (run for run in runs if api.runs.reruns.can_rerun(project, run)):
        groups.setdefault(api.runs.reruns.file_words(project, run, names_agent=is_matrix), []).append(run)
    return [completed(_by_runs(words, runs)) for words, runs in groups.items()]


def _by_runs(words: Sequence[str], runs: Sequence[Run]) -> Suggestion:
    named = [word for run in runs for word in ("--failed-from", run.id)]
    return Suggestion(_PURPOSE, "test", "run", *words, *named, "--wait")
