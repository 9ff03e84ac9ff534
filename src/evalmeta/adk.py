"""Evaluations as Google's ADK has them: eval sets in files, criteria beside them, an error when one is missed.

    from evalmeta.adk import AgentEvaluator

    async def test_weather():
        await AgentEvaluator.evaluate(answer, "evaluation/tests")

`evaluate` does the same without an event loop. Agents are those that `evalmeta.evaluate` takes.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

import orjson

from evalmeta import limits
from evalmeta.api import evaluations
from evalmeta.errors import FormatError, NotFound, UsageError
from evalmeta.interop.adk.cases import Session, read_session
from evalmeta.interop.adk.config import CONFIG_NAME, DEFAULT_CONFIG, read_test_config
from evalmeta.interop.adk.keys import Keys
from evalmeta.interop.adk.reader import LEGACY, read_adk, read_adk_file
from evalmeta.interop.adk.writer import write_adk_cases
from evalmeta.interop.findings import Findings
from evalmeta.interop.jsonreader import read_json
from evalmeta.interop.jsonrecords import JsonRecord
from evalmeta.model.run import RunOptions, Verdict
from evalmeta.package.files import put_file, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from evalmeta.api.results import FinishedRun, FinishedRuns
    from evalmeta.interop.adk.config import AdkConfig, Missing
    from evalmeta.interop.adk.reader import AdkDialect
    from evalmeta.interop.document import Document
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.problem import Problem
    from evalmeta.model.run import CaseResult

__all__ = [
    "NUM_RUNS",
    "AgentEvaluator",
    "EvaluationFailed",
    "How",
    "evaluate",
    "evaluate_async",
    "migrate_eval_data_to_new_schema",
]

NUM_RUNS: Final = 2
"""How often ADK asks every case."""
_TEST_FILES: Final = "*.test.json"
_SUFFIXES: Final = (".test.json", ".evalset.json", ".json")
_EVAL_SET: Final = "eval set"


class EvaluationFailed(AssertionError):
    """Means that did not reach their thresholds, and cases that could not be evaluated: all of them.

    Attributes:
        runs: what was asked and what came back, a run for each file.
    """

    def __init__(self, message: str, runs: FinishedRuns) -> None:
        super().__init__(message)
        self.runs = runs


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
    missing: Missing
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
        agent: a function, an object with `open` or `ask`, a table of settings, `module:name`, the name that
            `evalmeta.toml` binds, or None for what it binds to the app that the files name.
        path: the file or folder.
        num_runs: how often every case is asked.
        how: see `How`.

    Raises:
        EvaluationFailed: a metric failed, or a case could not be evaluated; it lists all of them.
        NotFound: there is no such file, or no `*.test.json` in the folder.
        FormatError: files cannot be read, or would not be evaluated as they are meant; nothing was asked.
        EvalmetaError: as `evalmeta.evaluate` does.
    """
    tests = _tests(Path(path), how)
    call = _call(agent, tests, num_runs, how)
    runs = evaluations.evaluate(call.evaluations, call.subject, **call.how)
    return _passed(runs, tests)


async def evaluate_async(agent: object, path: str | Path, num_runs: int = NUM_RUNS, **how: Unpack[How]) -> FinishedRuns:
    """Does what `evaluate` does, in the event loop that is running; takes, gives and raises the same."""
    tests = _tests(Path(path), how)
    return _passed(await _asked(agent, tests, num_runs, how), tests)


def migrate_eval_data_to_new_schema(
    old_eval_data_file: str | Path,
    new_eval_data_file: str | Path,
    initial_session_file: str | Path | None = None,
    *,
    dialect: AdkDialect = "auto",
) -> None:
    """Writes what a file has in the form before eval sets as an eval set, in the spelling of its own dialect.

    Args:
        old_eval_data_file: the file with the array.
        new_eval_data_file: the file to write; what it has is overwritten.
        initial_session_file: what the sessions begin with of cases that do not say.
        dialect: what rows mean; `auto` tells it by the keys of their tools.

    Raises:
        FormatError: the old file cannot be read, or is an eval set already.
        NotFound: a file is not there.
        ProjectError: the new file cannot be written.
    """
    old = Path(old_eval_data_file)
    file = read_adk_file(_bytes(old), label=str(old), dialect=dialect)
    if file.dialect is None:
        raise FormatError(f"{old} is an eval set already; nothing was written")
    session = _session(initial_session_file)
    cases = [replace(each, session=each.session or session) for each in file.cases]
    put_file(Path(new_eval_data_file), write_adk_cases(cases, name=_name(old.name), dialect=file.dialect))


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
        tests = _tests(Path(eval_dataset_file_path_or_dir), how)
        runs = await _asked(agent_module, tests, num_runs, how)
        _print(runs, wanted=print_detailed_results)
        return _passed(runs, tests)

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
        config = {"criteria": dict(criteria)} if criteria is not None else eval_config
        chosen = DEFAULT_CONFIG if config is None else read_test_config(_json(config), label=CONFIG_NAME)
        source = _Source(_EVAL_SET, _EVAL_SET, _json(eval_set), chosen)
        tests = [_Test(_EVAL_SET, _document(source, how, _session(how.get("initial_session_file"))))]
        runs = await _asked(agent_module, tests, num_runs, how)
        _print(runs, wanted=print_detailed_results)
        return _passed(runs, tests)

    @staticmethod
    def migrate_eval_data_to_new_schema(
        old_eval_data_file: str | Path, new_eval_data_file: str | Path, initial_session_file: str | Path | None = None
    ) -> None:
        """Does what the function of this name does."""
        migrate_eval_data_to_new_schema(old_eval_data_file, new_eval_data_file, initial_session_file)


class _Source(NamedTuple):
    """A file's bytes, what the evaluation and messages call it, and what judges it."""

    label: str
    name: str
    data: bytes
    config: AdkConfig


class _Test(NamedTuple):
    """A file that was read, and what messages call it."""

    label: str
    document: Document


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


async def _asked(agent: object, tests: Sequence[_Test], num_runs: int, how: How) -> FinishedRuns:
    call = _call(agent, tests, num_runs, how)
    return await evaluations.evaluate_async(call.evaluations, call.subject, **call.how)


def _tests(path: Path, how: How) -> list[_Test]:
    """Reads all files before anything is asked."""
    session = _session(how.get("initial_session_file"))
    config_in = cache(_config_in)
    tests: list[_Test] = []
    problems: list[Problem] = []
    for file in _files(path):
        name = _name(str(file.relative_to(path))) if path.is_dir() else _name(file.name)
        try:
            source = _Source(str(file), name, _bytes(file), config_in(file.parent))
            tests.append(_Test(str(file), _document(source, how, session)))
        except FormatError as error:
            problems += (each for each in error.problems if each not in problems)
    if problems:
        lines = "".join(f"\n  {each.location}: {each.message}. {each.hint}".rstrip() for each in problems)
        raise FormatError(f"nothing was asked:{lines}", problems=problems)
    return tests


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob(_TEST_FILES) if each.is_file())
    if not found:
        raise NotFound(f"there is no {_TEST_FILES} in {str(path)!r}", actions=["Name a folder with some, or a file."])
    return found


def _config_in(folder: Path) -> AdkConfig:
    file = folder / CONFIG_NAME
    return read_test_config(_bytes(file), label=str(file)) if file.exists() else DEFAULT_CONFIG


def _document(source: _Source, how: How, session: Session | None) -> Document:
    config = source.config
    if missing := how.get("missing"):
        config = replace(config, missing=missing)
    document = read_adk(
        source.data, label=source.label, name=source.name, config=config, dialect=how.get("dialect", "auto")
    )
    _warn(document)
    return document if session is None else _begun(document, session, source.label)


def _warn(document: Document) -> None:
    for note in document.notes:
        kind = DeprecationWarning if note.code == LEGACY else UserWarning
        warnings.warn(f"{note.location}: {note.message}. {note.hint}".rstrip(), kind, stacklevel=2)


def _begun(document: Document, session: Session, label: str) -> Document:
    """Gives the cases the session that they do not have; ADK too takes it for files of the old form only."""
    if all(note.code != LEGACY for note in document.notes):
        raise UsageError(
            f"{label} is an eval set, whose cases say themselves what their sessions begin with",
            actions=["Write it as 'sessionInput' of the cases."],
        )
    evaluation = document.evaluation
    cases = tuple(replace(each, state=each.state or session.state) for each in evaluation.cases)
    named = evaluation.subject_name or session.app_name
    return replace(document, evaluation=replace(evaluation, cases=cases, subject_name=named))


def _session(path: str | Path | None) -> Session | None:
    if path is None:
        return None
    findings = Findings(str(path))
    record = JsonRecord(read_json(_bytes(Path(path)), label=str(path)), (), findings, called="an initial session")
    session = read_session(record, Keys())
    findings.check()
    return session


def _name(path: str) -> str:
    return next((path.removesuffix(each) for each in _SUFFIXES if path.endswith(each)), path)


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise NotFound(f"there is no file {str(path)!r}")
    return read_file(path, max_bytes=limits.MAX_JSON_BYTES)


def _json(thing: object) -> bytes:
    """Gives a mapping, or an object of ADK's, as JSON."""
    dump = getattr(thing, "model_dump_json", None)
    try:
        return str(dump()).encode() if callable(dump) else orjson.dumps(thing)
    except TypeError as error:
        raise UsageError(f"{type(thing).__name__} cannot be read as JSON: {error}") from None


def _call(agent: object, tests: Sequence[_Test], num_runs: int, how: How) -> _Call:
    options = replace(how.get("options", RunOptions()), iterations=num_runs)
    asked = [test.document.evaluation for test in tests]
    if isinstance(agent, str) and ":" not in agent:
        asked, agent = [replace(each, subject_name=agent) for each in asked], None
    elif agent is None and (unnamed := [test.label for test in tests if not test.document.evaluation.subject_name]):
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


def _passed(runs: FinishedRuns, tests: Sequence[_Test]) -> FinishedRuns:
    if runs.succeeded:
        return runs
    failures = [(test.label, [*_failures(run)]) for test, run in zip(tests, runs, strict=True) if not run.succeeded]
    count = sum(len(lines) for _, lines in failures)
    told = "".join(f"\n{label}:" + "".join(f"\n  {line}" for line in lines) for label, lines in failures)
    raise EvaluationFailed(f"{count} failed or could not be evaluated{told}", runs)


def _failures(run: FinishedRun) -> Iterator[str]:
    """Yields a line for each metric that failed, and for each case or result that is an error."""
    cases = run.run.cases
    if run.run.error:
        yield run.run.error
    yield from dict.fromkeys(each for case in cases for each in _errors(case))
    for mean in run.summary.averages:
        if mean.verdict is Verdict.FAILURE and mean.score is not None:
            score = f"expected {mean.threshold:g}, got {round(mean.score, 3):g}"
            yield f"{mean.name} for {mean.label} failed: {score}{_reason(cases, mean.number, mean.name)}"
    yield from dict.fromkeys(each for case in cases for each in _failed_alone(case))
    if run.summary.pass_rate is None and not run.summary.errors:
        yield "nothing could be judged; see the report of the runs for what is missing"


def _errors(case: CaseResult) -> Iterator[str]:
    if case.error:
        yield f"{case.label} could not be evaluated: {case.error}"
    for result in case.results:
        if result.error:
            yield f"{result.name} for {case.label} could not be judged: {result.error}"


def _failed_alone(case: CaseResult) -> Iterator[str]:
    for result in case.results:
        if result.verdict is Verdict.FAILURE and result.threshold is None:
            yield f"{result.name} for {case.label} failed: {result.explanation}"


def _reason(cases: Sequence[CaseResult], number: int, name: str) -> str:
    """Gives why the first of the results that failed did so."""
    for case in cases:
        for result in case.results:
            if case.number == number and result.name == name and result.verdict is Verdict.FAILURE:
                turn = f"turn {result.turn}: " if result.turn else ""
                return f"\n    {turn}{result.explanation}"
    return ""
