"""Matrices of agents: which agents `--matrix subject=a,b` and `model=x,y` mean, and their results side by side."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.endpoints import is_url
from evalmeta.api.runs.comparisons import name_of, observed_cases
from evalmeta.engine.matrix import matrix_cases, pairs_of
from evalmeta.engine.statistics import percentiles
from evalmeta.errors import SubjectNotBound, UsageError
from evalmeta.model.generated_data import Tokens
from evalmeta.model.matrix import AgentRun, Cell, Matrix, labels_of
from evalmeta.model.settings import find_subject
from evalmeta.model.spending import merged
from evalmeta.package.files import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.api.runs.starting import AgentOptions, RunCall
    from evalmeta.model.statistics import CaseCounts
    from evalmeta.model.tally import DetailedTally
    from evalmeta.package.project import Project

_KEYS: Final = ("subject", "model")
_FORM: Final = "Write it like --matrix subject=desk,other_desk or --matrix model=small,large."
_FEWEST: Final = 2


class Agent(NamedTuple):
    """The agent of a cell; None for that of the call, or of the file."""

    subject: str | None
    model: str | None


def agents_of(options: AgentOptions) -> list[Agent]:
    """Return the agents of a call's matrix; without one, the agent that the call names, or that of each file."""
    if not options.matrix:
        return [Agent(options.subject, options.model)]
    values: dict[str, tuple[str, ...]] = {}
    for entry in options.matrix:
        key, names = _read(entry)
        if key in values:
            raise UsageError(f"--matrix has {key} twice", actions=[f"List all its values once: {key}=a,b"])
        values[key] = names
    for key, given in zip(_KEYS, (options.subject, options.model), strict=True):
        if key in values and given is not None:
            option = "--agent" if key == "subject" else "--model"
            raise UsageError(f"--matrix {key}=... and {option} cannot be combined", actions=[f"Leave out {option}."])
    subjects: Sequence[str | None] = values.get("subject", (options.subject,))
    models: Sequence[str | None] = values.get("model", (options.model,))
    agents = [Agent(*pair) for pair in product(subjects, models)]
    if len(agents) < _FEWEST:
        raise UsageError("--matrix needs at least two agents or models", actions=[_FORM])
    return agents


def _read(entry: str) -> tuple[str, tuple[str, ...]]:
    key, _, text = entry.partition("=")
    names = tuple(name.strip() for name in text.split(","))
    if key not in _KEYS or not all(names):
        raise UsageError(f"--matrix {entry!r} is not subject=NAME,... or model=NAME,...", actions=[_FORM])
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise UsageError(f"--matrix {key}: {twice[0]!r} is listed twice", actions=["Leave out one of them."])
    return key, names


def check_matrix(call: RunCall) -> None:
    """Refuse what means one agent: a baseline, the last failures, and shards, which are merged by their tests."""
    if not call.agent.matrix:
        return
    selection = call.selection
    refused = {
        "--baseline": (call.comparator is not None, "Compare one agent with it: --agent NAME --baseline FILE_OR_RUN"),
        "--last-failed": (selection.last_failed, "Name the run whose failures all agents get: --failed-from RUN"),
        "--shard": (selection.shard is not None, "Run the shards of one agent at a time: --agent NAME --shard 1/4"),
    }
    for option, (is_given, way_out) in refused.items():
        if is_given:
            what = f"--matrix and {option} cannot be combined: {option} is about one agent"
            raise UsageError(what, actions=[way_out])


def with_agent(project: Project, test: FileTest, agent: Agent) -> FileTest:
    """Return a test of a matrix that was read with its subject, and is asked with its model.

    Raise SubjectNotBound or UsageError before the first question if the agent is not known or has no model.
    """
    if test.unbound is not None:
        named = f"--matrix subject={agent.subject}: " if agent.subject else ""
        raise SubjectNotBound(f"{named}{test.unbound}", problems=test.unbound.problems, actions=test.unbound.actions)
    if agent.model is None:
        return test
    own, name = test.subject, test.subject_name
    if own is not None and is_url(name):
        own = {**own, "model": agent.model}
    elif own is not None or find_subject(project.settings.subjects, f"{name}@{agent.model}") is None:
        raise UsageError(
            f"--matrix model={agent.model}: the agent {name!r} of {shown(test.path)} has no model",
            actions=["Name an agent whose table in evalmeta.toml has a model, or a URL: --agent NAME"],
        )
    name = f"{name}@{agent.model}"
    evaluation = replace(test.document.evaluation, subject_name=name)
    return replace(test, subject=own, subject_name=name, document=replace(test.document, evaluation=evaluation))


def matrix_of(finished: Sequence[FinishedRun]) -> tuple[Matrix | None, list[str]]:
    """Return the agents of the runs of a command side by side, and the agent of each run; None without a matrix."""
    runs = [run.run for run in finished]
    labels = labels_of(
        [AgentRun.of(run.options.origin.suite, run.id, run.definition, run.subject_name) for run in runs]
    )
    if len(set(labels)) < _FEWEST:
        # Results that nobody compares are not read.
        return None, labels
    return side_by_side(finished, labels), labels


def side_by_side(finished: Sequence[FinishedRun], labels: Sequence[str]) -> Matrix:
    """Return runs side by side, those with the same label as one agent."""
    cells: dict[str, list[FinishedRun]] = {}
    for label, run in zip(labels, finished, strict=True):
        cells.setdefault(label, []).append(run.counted())
    observed = {label: _tests(runs, is_observed=True) for label, runs in cells.items()}
    counted = {label: _tests(runs, is_observed=False) for label, runs in cells.items()}
    rows = tuple(_cell(label, runs) for label, runs in cells.items())
    return Matrix(rows, tuple(pairs_of(observed)), tuple(matrix_cases(counted)))


def _tests(runs: Iterable[FinishedRun], *, is_observed: bool) -> Mapping[str, Sequence[CaseCounts]]:
    """Return the cases of each test; for statistics, iterations with the same answer and rating count once."""
    return {
        name_of(run.run): observed_cases(run.run)
        if is_observed and run.run.options.is_repeated
        else tuple(run.tally.cases() if run.tally else ())
        for run in runs
    }


def _cell(label: str, runs: Sequence[FinishedRun]) -> Cell:
    counts = [sum(getattr(run.summary, name) for run in runs) for name in ("passed", "failed", "errors", "undecided")]
    passed, failed, errors, undecided = counts
    tallies = [run.tally for run in runs if run.tally]
    latencies = array("d", (value for tally in tallies for value in tally.latencies))
    first_tokens = array("d", (value for tally in tallies for value in tally.first_tokens))
    return Cell(
        label,
        len(runs),
        passed,
        failed,
        errors,
        undecided,
        pass_rate=passed / (passed + failed) if passed + failed else None,
        latency=percentiles(latencies),
        first_token=percentiles(first_tokens),
        tokens=_tokens(tallies),
        spent=merged(row for tally in tallies for row in tally.spent),
    )


def _tokens(tallies: Sequence[DetailedTally]) -> Tokens | None:
    """Return the sums over the answers that report tokens; None if none does."""
    known = [tally.tokens for tally in tallies if tally.tokens]
    if not known:
        return None
    return Tokens(_sum([tokens.input for tokens in known]), _sum([tokens.output for tokens in known]))


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
