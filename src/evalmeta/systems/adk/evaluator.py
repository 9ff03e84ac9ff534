"""Evaluations with ADK's files, ADK's `AgentEvaluator`, and the error that lists the failures of all runs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, cast

from evalmeta.api.evaluating import evaluate as evaluations
from evalmeta.api.evaluating.inputs import check_keywords
from evalmeta.errors import FormatError, UsageError
from evalmeta.formats.document import Reading
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.package.files import put_file
from evalmeta.report.text import count
from evalmeta.systems.adk.live import LiveAgent, is_adk
from evalmeta.systems.adk.modules import agent_in, live_agent, module_named, sub_agent
from evalmeta.systems.adk.output_file import add_to_output_file, check_output_file
from evalmeta.systems.adk.reader import read_adk_file
from evalmeta.systems.adk.sources import Source, bytes_of, name_of, read_folder, read_object, session_in
from evalmeta.systems.adk.writer import write_adk_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from evalmeta.api.runs.finished import FinishedRun, FinishedRuns
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.settings import AdkDialect, MissingData
    from evalmeta.systems.adk.cases import Session


__tracebackhide__ = True  # pytest's tracebacks end where the test calls


NUM_RUNS: Final = 2
"""The number of times that ADK runs every case."""


class How(TypedDict, total=False):
    """The keywords of `evaluate`; all are optional.

    Attributes:
        dialect: The meaning of the rows of legacy files; `auto` detects it from their keys.
        missing: How to score a turn without the data of a criterion: `undecided` ignores it, `adk` assumes no calls
            or an empty reference. The default is the setting in test_config.json.
        config: A file with the criteria of all files, instead of the test_config.json next to each.
        initial_session_file: A JSON file with the initial sessions of legacy files.
        options: How to run; the iterations are `num_runs`.
        rater: The rater, as in `evalmeta.evaluate`.
        root: The project's folder; by default the one around the current folder.
        print_detailed_results: Whether to print the report. The default is True for `AgentEvaluator`, and False for
            `evaluate` and `evaluate_async`.
        agent_name: The sub-agent of google-adk to ask instead of the root agent.
        artifact_service: What the agent's tools load artifacts with; by default a new one in memory for each case.
        output_file: A CSV file to which the results are added, as ADK's `AgentEvaluator` does it: a row for each
            metric in each turn of each run.
        app_name: Accepted for ADK's tests. It has no effect, because no results manager is called.
    """

    dialect: AdkDialect
    missing: MissingData
    config: str | Path | None
    initial_session_file: str | Path | None
    options: RunOptions
    rater: object
    root: Path
    print_detailed_results: bool
    agent_name: str | None
    artifact_service: object
    output_file: str | Path | None
    app_name: str | None


_REFUSED: Final = {"eval_set_results_manager": 'Save the runs that are returned: runs.save("results.json").'}
"""The keywords of ADK's `AgentEvaluator` that evalmeta refuses unless they are empty, and what to do instead."""


_IN_ORDER: Final = (
    *("agent_name", "initial_session_file", "print_detailed_results", "artifact_service", "output_file", "app_name"),
    "eval_set_results_manager",
)
"""The parameters of ADK's `AgentEvaluator.evaluate` after `num_runs`."""


def evaluate(agent: object, path: str | Path, num_runs: int = NUM_RUNS, **how: Unpack[How]) -> FinishedRuns:
    """Evaluate an agent with a file, or with every `*.test.json` in a folder and its subfolders.

    The `test_config.json` next to each file has its criteria; without one, ADK's defaults
    apply. A metric passes if its mean over all turns and runs of a case reaches the
    threshold. Missing or outdated parts of a file are warnings.

    Args:
        agent: The name of a module with an agent of google-adk (`root_agent` or `get_agent_async`, in it or in its
            module `agent`), such an agent, App or Runner, a function, an object with `open` or `ask`, a table of
            settings, `module:name`, a name that `evalmeta.toml` binds, or None for the agent that it binds to the app
            of the files.
        path: The file or folder.
        num_runs: The number of times to run every case.
        how: See `How`.

    Raises:
        EvaluationFailed: A metric failed, or a case could not be evaluated; the message lists all of them.
        NotFound: The file cannot be found, or the folder has no `*.test.json`.
        FormatError: A file cannot be read, or would be evaluated in another way than intended; nothing was run.
        UsageError: A keyword is unknown or not supported, or the agent cannot be called.
        EvalmetaError: As in `evalmeta.evaluate`.
    """
    sources = _sources(path, how, of="adk.evaluate")
    asked, subject, keywords = _arguments(agent, sources, num_runs, how)
    try:
        runs = evaluations.evaluate(asked, subject, **keywords)
    except UsageError as error:
        raise error.with_traceback(None) from None
    return _reported(runs, sources, how, prints=False)


async def evaluate_async(agent: object, path: str | Path, num_runs: int = NUM_RUNS, **how: Unpack[How]) -> FinishedRuns:
    """Do what `evaluate` does, in the running event loop."""
    return await _evaluated(agent, _sources(path, how, of="adk.evaluate_async"), num_runs, how, prints=False)


class AgentEvaluator:
    """ADK's class of this name: its tests need another import, and an agent that evalmeta can call."""

    @staticmethod
    async def evaluate(
        agent_module: object,
        eval_dataset_file_path_or_dir: str | Path,
        num_runs: int = NUM_RUNS,
        *more: object,
        **how: Unpack[How],
    ) -> FinishedRuns:
        """Do what `evaluate_async` does, and print the report; `more` are further parameters in the order of ADK."""
        how = _with_positional(how, more, _IN_ORDER, of="AgentEvaluator.evaluate")
        sources = _sources(eval_dataset_file_path_or_dir, how, of="AgentEvaluator.evaluate")
        return await _evaluated(agent_module, sources, num_runs, how, prints=True)

    @staticmethod
    async def evaluate_eval_set(
        agent_module: object,
        eval_set: object,
        criteria: Mapping[str, object] | None = None,
        eval_config: object = None,
        num_runs: int = NUM_RUNS,
        *more: object,
        **how: Unpack[How],
    ) -> FinishedRuns:
        """Evaluate an eval set that is a mapping, or an object with `model_dump_json`.

        `eval_config` is the content of a test_config.json; `criteria` is its value of this name; `more` are further
        parameters in the order of ADK.
        """
        names = [name for name in _IN_ORDER if name != "initial_session_file"]
        how = _with_positional(how, more, names, of="AgentEvaluator.evaluate_eval_set")
        _check_keywords(how, of="AgentEvaluator.evaluate_eval_set")
        sources = [read_object(eval_set, criteria, eval_config, _reading(how), _session(how))]
        return await _evaluated(agent_module, sources, num_runs, how, prints=True)

    @staticmethod
    def migrate_eval_data_to_new_schema(
        old_eval_data_file: str | Path, new_eval_data_file: str | Path, initial_session_file: str | Path | None = None
    ) -> None:
        """Do what the function of this name does."""
        migrate_eval_data_to_new_schema(old_eval_data_file, new_eval_data_file, initial_session_file)


def migrate_eval_data_to_new_schema(
    old_eval_data_file: str | Path,
    new_eval_data_file: str | Path,
    initial_session_file: str | Path | None = None,
    *,
    dialect: AdkDialect = "auto",
) -> None:
    """Convert a legacy file to an eval set, in the spelling of its own dialect.

    Args:
        old_eval_data_file: The file with the array.
        new_eval_data_file: The file to write; it is overwritten.
        initial_session_file: A JSON file with the initial session of cases that have none.
        dialect: The meaning of the rows; `auto` detects it from the keys of their tools.

    Raises:
        FormatError: The old file cannot be read, or is an eval set already.
        NotFound: A file cannot be found.
        ProjectError: The new file cannot be written.
    """
    old = Path(old_eval_data_file)
    file = read_adk_file(bytes_of(old), label=str(old), dialect=dialect)
    if file.dialect is None:
        raise FormatError(f"{old} is an eval set already; nothing was written")
    session = None if initial_session_file is None else session_in(Path(initial_session_file))
    cases = [replace(case, session=case.session or session) for case in file.cases]
    put_file(Path(new_eval_data_file), write_adk_cases(cases, name=name_of(old.name), dialect=file.dialect))


class _RunHow(TypedDict, total=False):
    """The keywords of `evalmeta.evaluate`."""

    options: RunOptions | None
    rater: object
    root: Path | None


async def _evaluated(
    agent: object, sources: Sequence[Source], num_runs: int, how: How, *, prints: bool
) -> FinishedRuns:
    asked, subject, keywords = _arguments(agent, sources, num_runs, how)
    try:
        runs = await evaluations.evaluate_async(asked, subject, **keywords)
    except UsageError as error:
        raise error.with_traceback(None) from None
    return _reported(runs, sources, how, prints=prints)


def _reported(runs: FinishedRuns, sources: Sequence[Source], how: How, *, prints: bool) -> FinishedRuns:
    """Return the runs if all of them succeeded; `prints` says whether the report is printed by default.

    The output file is written in any case.
    """
    if how.get("print_detailed_results", prints):
        sys.stdout.write(runs.report())
    if output_file := how.get("output_file"):
        add_to_output_file(Path(output_file), sources, runs)
    if runs.succeeded:
        return runs
    lines = [_counts(runs)]
    for source, run in zip(sources, runs, strict=True):
        if not run.succeeded:
            lines += [f"{source.label}:", *(f"  {failure}" for failure in _failures(run))]
    raise EvaluationFailed("\n".join(lines), runs)


def _with_positional(how: How, more: Sequence[object], names: Sequence[str], *, of: str) -> How:
    """Return the keywords with those that were passed by their position."""
    given = dict(zip(names, more, strict=False))
    if len(more) > len(names) or not given.keys().isdisjoint(how):
        raise UsageError(f"{of} was given a parameter twice, or too many", actions=["Pass parameters by their names."])
    return cast("How", {**given, **how})


def _check_keywords(how: How, *, of: str) -> None:
    check_keywords(how, (*How.__annotations__, *_REFUSED), of=of)
    for name, value in how.items():
        if value and name in _REFUSED:
            raise UsageError(f"evalmeta does not support the keyword {name!r} of ADK", actions=[_REFUSED[name]])
    if output_file := how.get("output_file"):
        check_output_file(Path(output_file))


def _sources(path: str | Path, how: How, *, of: str) -> list[Source]:
    _check_keywords(how, of=of)
    return read_folder(Path(path), _reading(how), _session(how))


def _reading(how: How) -> Reading:
    config = how.get("config")
    chosen = None if config is None else str(config)
    return Reading(dialect=how.get("dialect", "auto"), missing=how.get("missing"), config=chosen)


def _session(how: How) -> Session | None:
    file = how.get("initial_session_file")
    return None if file is None else session_in(Path(file))


def _arguments(
    agent: object, sources: Sequence[Source], num_runs: int, how: How
) -> tuple[list[Evaluation], object, _RunHow]:
    # As in ADK, turns without data for a metric do not count.
    options = replace(how.get("options", RunOptions(min_decided=0.0)), iterations=num_runs)
    asked = [source.document.evaluation for source in sources]
    unnamed = [source.label for source in sources if not source.document.evaluation.subject_name]
    if isinstance(agent, str) and ":" not in agent:
        asked = [replace(evaluation, subject_name=agent) for evaluation in asked]
    elif agent is None and unnamed:
        raise UsageError(f"{unnamed[0]} does not name an app, and no agent was passed", actions=["Pass the agent."])
    else:
        called = agent if isinstance(agent, str) else str(getattr(agent, "__name__", type(agent).__name__))
        asked = [replace(evaluation, subject_name=evaluation.subject_name or called) for evaluation in asked]
    return asked, _subject(agent, how), {"options": options, "rater": how.get("rater"), "root": how.get("root")}


def _subject(agent: object, how: How) -> object:
    """Return what `evalmeta.evaluate` asks; agents of google-adk, and modules that have one, are asked live."""
    root, agent_name, artifacts = how.get("root") or Path.cwd(), how.get("agent_name"), how.get("artifact_service")
    if isinstance(agent, str) and ":" not in agent:
        module = module_named(agent, how.get("root"))
        if module is None:
            return None
        live = live_agent(module, root=root, agent_name=agent_name or "", artifacts=artifacts)
        agent = live or agent_in(module)
    elif is_adk(agent):
        chosen = sub_agent(agent, agent_name) if agent_name else agent
        return LiveAgent(lambda: chosen, root=root, artifacts=artifacts)
    if (agent_name or artifacts) and not isinstance(agent, LiveAgent):
        raise UsageError("agent_name and artifact_service need an agent of google-adk")
    if isinstance(agent, str):
        return {"adapter": "python", "target": agent}
    if callable(agent) or callable(getattr(agent, "open", None)):
        return agent
    return getattr(agent, "ask", agent)


class EvaluationFailed(AssertionError):
    """Raised if means did not reach their thresholds, or cases could not be evaluated; the message lists all of them.

    Attributes:
        runs: One run for each file.
    """

    def __init__(self, message: str, runs: FinishedRuns) -> None:
        super().__init__(message)
        self.runs = runs


def _counts(runs: FinishedRuns) -> str:
    """Return `2 metrics of 1 case failed; 1 case could not be evaluated`."""
    failed = {(place, *failure) for place, run in enumerate(runs) for failure in _failed(run)}
    broken = {(place, case.number) for place, run in enumerate(runs) for case in run.run.cases if any(_errors(case))}
    cases = count(len({failure[:2] for failure in failed}), "case")
    parts = [f"{count(len(failed), 'metric')} of {cases} failed"] if failed else []
    parts += [f"{count(len(broken), 'case')} could not be evaluated"] if broken else []
    return "; ".join(parts) or "the evaluation did not pass"


def _failed(run: FinishedRun) -> Iterator[tuple[int, str]]:
    for mean in run.summary.averages:
        if mean.verdict is Verdict.FAILURE:
            yield mean.number, mean.name
    yield from ((case.number, result.name) for case, result in _failed_alone(run))


def _failed_alone(run: FinishedRun) -> Iterator[tuple[CaseResult, TestResult]]:
    """Yield the results that failed by themselves, not by their mean."""
    for case in run.run.cases:
        for result in case.results:
            if result.verdict is Verdict.FAILURE and result.threshold is None:
                yield case, result


def _failures(run: FinishedRun) -> Iterator[str]:
    cases = run.run.cases
    if run.run.error:
        yield run.run.error
    yield from dict.fromkeys(error for case in cases for error in _errors(case))
    for mean in run.summary.averages:
        if mean.verdict is Verdict.FAILURE and mean.score is None:
            why = _reason(cases, mean.number, mean.name, Verdict.UNDECIDED)
            yield f"{mean.name} for {mean.label} was not evaluated, so its threshold {mean.threshold:g} is not met{why}"
        elif mean.verdict is Verdict.FAILURE and mean.score is not None:
            score = f"expected {mean.threshold:g}, got {round(mean.score, 3):g}"
            yield f"{mean.name} for {mean.label} failed: {score}{_reason(cases, mean.number, mean.name)}"
    alone = _failed_alone(run)
    yield from dict.fromkeys(f"{result.name} for {case.label} failed: {result.explanation}" for case, result in alone)
    if run.summary.pass_rate is None and not run.summary.errors:
        yield "nothing could be judged; the report of the runs says what is missing"


def _errors(case: CaseResult) -> Iterator[str]:
    if case.error:
        yield f"{case.label} could not be evaluated: {case.error}"
    for result in case.results:
        if result.error:
            yield f"{result.name} for {case.label} could not be judged: {result.error}"


def _reason(cases: Sequence[CaseResult], number: int, name: str, verdict: Verdict = Verdict.FAILURE) -> str:
    """Return the explanation of the first result with a verdict, by default that of a failed one."""
    for case in cases:
        for result in case.results:
            if case.number == number and result.name == name and result.verdict is verdict:
                turn = f"turn {result.turn}: " if result.turn else ""
                return f"\n    {turn}{result.explanation}"
    return ""
