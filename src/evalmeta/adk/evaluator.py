"""An agent evaluated by ADK's files, in the words of ADK's `AgentEvaluator`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from evalmeta.adk.failures import passed
from evalmeta.adk.migration import migrate_eval_data_to_new_schema
from evalmeta.adk.sources import agent_named, read_folder, read_object, session_in
from evalmeta.api import evaluate as evaluations
from evalmeta.errors import UsageError
from evalmeta.formats.document import Reading
from evalmeta.model.run import RunOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from evalmeta.adk.sources import Source
    from evalmeta.api.runs import FinishedRuns
    from evalmeta.formats.adk.cases import Session
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.settings import AdkDialect, MissingData


__tracebackhide__ = True  # pytest's tracebacks end where the test calls

NUM_RUNS: Final = 2
"""How often ADK asks every case."""


class How(TypedDict, total=False):
    """The keywords of `evaluate`; any of them may be left out.

    Attributes:
        dialect: what the rows of files mean that came before eval sets; `auto` tells it by their keys.
        missing: what becomes of a turn without the data of a criterion: `undecided` leaves it out, `adk` takes it
            for no calls or an empty reference; without it, what test_config.json says.
        initial_session_file: a JSON file with what the sessions of such files begin with.
        options: how to run, but for the iterations.
        rater: judges answers, as `evalmeta.evaluate` takes it.
        root: the project's folder; the one around the current folder without it.
    """

    dialect: AdkDialect
    missing: MissingData
    initial_session_file: str | Path | None
    options: RunOptions
    rater: object
    root: Path


def evaluate(agent: object, path: str | Path, num_runs: int = NUM_RUNS, **how: Unpack[How]) -> FinishedRuns:
    """Evaluates an agent by a file, or by every `*.test.json` in a folder and the folders in it.

    The `test_config.json` beside each file says what judges it, and ADK's defaults hold where
    there is none. A metric passes when its mean over all turns and runs of a case reaches the
    threshold. What is missing or outdated in a file is a warning.

    Args:
        agent: a function, an object with `open` or `ask`, a table of settings, `module:name`, a module that has
            `answer`, `root_agent` or `agent`, the name that `evalmeta.toml` binds, or None for what it binds to the
            app that the files name.
        path: the file or folder.
        num_runs: how often every case is asked.
        how: see `How`.

    Raises:
        EvaluationFailed: a metric failed, or a case could not be evaluated; it lists all of them.
        NotFound: there is no such file, or no `*.test.json` in the folder.
        FormatError: files cannot be read, or would not be evaluated as they are meant; nothing was asked.
        EvalmetaError: as `evalmeta.evaluate` does.
    """
    sources = _sources(Path(path), how)
    call = _call(agent, sources, num_runs, how)
    try:
        runs = evaluations.evaluate(call.evaluations, call.subject, **call.how)
    except UsageError as error:
        raise error.with_traceback(None) from None
    return _passed(runs, sources)


async def evaluate_async(agent: object, path: str | Path, num_runs: int = NUM_RUNS, **how: Unpack[How]) -> FinishedRuns:
    """Does what `evaluate` does, in the event loop that is running; takes, gives and raises the same."""
    sources = _sources(Path(path), how)
    return _passed(await _asked(agent, sources, num_runs, how), sources)


class AgentEvaluator:
    """ADK's class of this name: its tests need another import, and an agent that can be asked here."""

    @staticmethod
    async def evaluate(
        agent_module: object,
        eval_dataset_file_path_or_dir: str | Path,
        num_runs: int = NUM_RUNS,
        *,
        print_detailed_results: bool = True,
        **how: Unpack[How],
    ) -> FinishedRuns:
        """Does what `evaluate_async` does, and prints the report."""
        sources = _sources(Path(eval_dataset_file_path_or_dir), how)
        runs = await _asked(agent_module, sources, num_runs, how)
        _print(runs, wanted=print_detailed_results)
        return _passed(runs, sources)

    @staticmethod
    async def evaluate_eval_set(
        agent_module: object,
        eval_set: object,
        criteria: Mapping[str, object] | None = None,
        eval_config: object = None,
        num_runs: int = NUM_RUNS,
        *,
        print_detailed_results: bool = True,
        **how: Unpack[How],
    ) -> FinishedRuns:
        """Evaluates an eval set that is in no file: a mapping, or an object with `model_dump_json`.

        `criteria` is what test_config.json has under this name, `eval_config` all that it has.
        """
        sources = [read_object(eval_set, criteria, eval_config, _reading(how), _session(how))]
        runs = await _asked(agent_module, sources, num_runs, how)
        _print(runs, wanted=print_detailed_results)
        return _passed(runs, sources)

    @staticmethod
    def migrate_eval_data_to_new_schema(
        old_eval_data_file: str | Path, new_eval_data_file: str | Path, initial_session_file: str | Path | None = None
    ) -> None:
        """Does what the function of this name does."""
        migrate_eval_data_to_new_schema(old_eval_data_file, new_eval_data_file, initial_session_file)


class _RunHow(TypedDict, total=False):
    """Keywords of `evalmeta.evaluate`."""

    options: RunOptions | None
    rater: object
    root: Path | None


class _Call(NamedTuple):
    """What `evalmeta.evaluate` is called with."""

    evaluations: list[Evaluation]
    subject: object
    how: _RunHow


async def _asked(agent: object, sources: Sequence[Source], num_runs: int, how: How) -> FinishedRuns:
    call = _call(agent, sources, num_runs, how)
    try:
        return await evaluations.evaluate_async(call.evaluations, call.subject, **call.how)
    except UsageError as error:
        raise error.with_traceback(None) from None


def _sources(path: Path, how: How) -> list[Source]:
    """Reads all files before anything is asked."""
    return read_folder(path, _reading(how), _session(how))


def _reading(how: How) -> Reading:
    return Reading(dialect=how.get("dialect", "auto"), missing=how.get("missing"))


def _session(how: How) -> Session | None:
    file = how.get("initial_session_file")
    return None if file is None else session_in(Path(file))


def _call(agent: object, sources: Sequence[Source], num_runs: int, how: How) -> _Call:
    options = replace(how.get("options", RunOptions()), iterations=num_runs)
    asked = [source.document.evaluation for source in sources]
    if isinstance(agent, str) and ":" not in agent:
        asked, agent = [replace(each, subject_name=agent) for each in asked], agent_named(agent, how.get("root"))
    elif agent is None and (
        unnamed := [source.label for source in sources if not source.document.evaluation.subject_name]
    ):
        raise UsageError(f"{unnamed[0]} names no app, and no agent was given", actions=["Give the agent to ask."])
    else:
        called = agent if isinstance(agent, str) else str(getattr(agent, "__name__", type(agent).__name__))
        asked = [replace(each, subject_name=each.subject_name or called) for each in asked]
    return _Call(asked, _subject(agent), {"options": options, "rater": how.get("rater"), "root": how.get("root")})


def _subject(agent: object) -> object:
    if isinstance(agent, str):
        return {"adapter": "python", "target": agent}
    if callable(agent) or callable(getattr(agent, "open", None)):
        return agent
    if hasattr(agent, "run_async"):
        raise UsageError(
            f"the agent is {type(agent).__name__}, which google-adk's Runner asks",
            actions=["Give a function that lets the Runner ask it; docs/coming-from-adk.md shows one."],
        )
    return getattr(agent, "ask", agent)


def _print(runs: FinishedRuns, *, wanted: bool) -> None:
    if wanted:
        sys.stdout.write(runs.report())


def _passed(runs: FinishedRuns, sources: Sequence[Source]) -> FinishedRuns:
    return passed(runs, [each.label for each in sources])
