from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import evalmeta
from api.evaluating.interrupted import HANGS, twenty
from client.servers import replying_with
from engine.builders import Agent, answer_orders, case, evaluation
from engine.subjects.conversations import says
from evalmeta import RunOptions, evaluate, evaluate_async
from evalmeta.engine.interfaces import Rating
from evalmeta.engine.subjects.python import PythonSubject
from evalmeta.errors import (
    FormatError,
    InvalidMetadata,
    NotFound,
    ProjectError,
    SettingsError,
    StoreError,
    SubjectNotBound,
    UsageError,
)
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import today
from evalmeta.model.run import CaseResult, RunStatus, Verdict
from evalmeta.model.run_options import Scoring
from evalmeta.model.settings import RulesRater
from evalmeta.store.database import open_database
from org.parts import SETTINGS, asked, definition, make_project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.api.evaluating.evaluate import One
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.engine.interfaces import Rubric
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.package.project import Project

INTERRUPTED = Path(__file__).parent / "interrupted.py"
FOLDER = "aiEvaluationDefinitions"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Makes a project with the definitions A, of one case, and B, of two."""
    made = make_project(tmp_path / "project")
    write(made, "A", cases=1)
    write(made, "B", cases=2)
    return made


def write(project: Project, name: str, *, cases: int, subject: str = "Desk") -> Path:
    file = project.root / FOLDER / f"{name}.aiEvaluationDefinition"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(definition(name, cases=cases, subject=subject))
    return file


def answer(utterance: str) -> dict[str, object]:
    return {"outcome": f"An answer to {utterance}", "topic": "Orders"}


def repeated(*iterations: int | None) -> tuple[Case, ...]:
    """Return cases with their own numbers of iterations."""
    return tuple(replace(case(number=number), iterations=own) for number, own in enumerate(iterations, 1))


def cases(count: int) -> Iterator[Case]:
    return (case(f"question {number}", number=number) for number in range(1, count + 1))


class Recorder:
    """An agent that notes what it was asked, and fails at some questions."""

    def __init__(self, *broken: str) -> None:
        self.asked: list[str] = []
        self.broken = broken

    def __call__(self, utterance: str) -> dict[str, object]:
        self.asked.append(utterance)
        if utterance in self.broken:
            raise KeyError(utterance)
        return answer(utterance)


class Desk:
    """An agent with sessions."""

    closed = 0

    def open(self, history: list[object], context: dict[str, str]) -> Desk:
        assert (history, context) == ([], {})
        return self

    async def ask(self, utterance: str) -> dict[str, object]:
        return answer(utterance)

    def close(self) -> None:
        Desk.closed += 1


# What is evaluated.


def test_a_definition_is_evaluated_with_a_function() -> None:
    finished = evaluate(twenty(), answer)
    run = finished.run
    assert finished.succeeded
    assert (run.definition, run.subject_name, run.status, run.total) == ("Twenty", "Desk", RunStatus.COMPLETED, 20)
    assert [each.number for each in run.cases] == list(range(1, 21))
    assert finished.summary.passed == 20
    assert [each.passed for each in finished.statistics.cases] == [1] * 20


def test_a_file_is_evaluated_with_what_its_project_binds(project: Project) -> None:
    finished = evaluate(project.root / FOLDER / "B.aiEvaluationDefinition")
    assert (finished.run.definition, sorted(asked(project))) == ("B", ["B 1", "B 2"])


def test_a_file_with_its_answers_is_judged_by_them_though_an_agent_is_bound(project: Project) -> None:
    file = project.root / "answered.jsonl"
    file.write_text('{"request": "Where is it?", "response": "It is on its way."}\n')
    finished = evaluate(file)
    assert [each.generated and each.generated.outcome for each in finished.run.cases] == ["It is on its way."]
    assert (finished.run.subject_name, asked(project)) == ("recorded answers", [])


def test_a_recorded_conversation_needs_an_agent(tmp_path: Path) -> None:
    (tmp_path / "evalmeta.toml").touch()
    said = '{"userMessage": {"role": "user", "content": "Hi"}, "output": {"role": "assistant", "content": "Hello"}}'
    file = tmp_path / "talks.evalset.json"
    file.write_text(f'{{"threads": [{{"id": "t", "traces": [{said}]}}]}}')
    with pytest.raises(SubjectNotBound) as caught:
        evaluate(file)
    assert "[subjects.My_Agent]" in str(caught.value.actions)
    assert evaluate(file, lambda _: "Hello").succeeded


def test_a_folder_with_one_definition_is_one_thing(project: Project) -> None:
    (project.root / FOLDER / "B.aiEvaluationDefinition").unlink()
    assert evaluate(str(project.root / FOLDER), answer, name="Other").run.definition == "Other"


def test_a_folder_with_several_belongs_in_a_list(project: Project) -> None:
    with pytest.raises(UsageError, match=r"has 2 tests, and one is expected: pass a list, \[Path\("):
        evaluate(project.root, answer)


@pytest.mark.parametrize("folder", [".", FOLDER])
def test_folders_in_a_list_stand_for_every_definition_in_them(project: Project, folder: str) -> None:
    finished = evaluate([project.root / folder, twenty()], Desk)
    assert [each.run.definition for each in finished] == ["A", "B", "Twenty"]
    assert finished.succeeded


def test_an_evaluation_may_stream_its_cases() -> None:
    streamed = replace(evaluation(0), cases=cases(3))
    assert evaluate(streamed, answer, name="Streamed").run.definition == "Streamed"


@pytest.mark.parametrize("make", [iter, list])
def test_plain_cases_are_named_after_the_subject(make: Callable[[Iterator[Case]], Iterator[Case]]) -> None:
    run = evaluate(make(cases(3)), answer).run
    assert (run.definition, run.subject_name, run.total) == ("evaluation", "answer", 3)


@pytest.mark.slow
def test_thousands_of_cases_are_streamed_and_not_kept() -> None:
    told, alive = [], []
    # Tests before this one may have kept some.
    earlier = sum(isinstance(thing, CaseResult) for thing in gc.get_objects())

    def look(results: object) -> None:
        told.extend(result.number for result in results)
        alive.append(sum(isinstance(thing, CaseResult) for thing in gc.get_objects()) - earlier)

    finished = evaluate(cases(5_000), Agent(answer_orders), on_results=look, keep_results=False)
    assert sorted(told) == list(range(1, 5_001))
    assert max(alive) < 1_500
    assert (finished.run.cases, finished.summary.total, finished.succeeded) == ((), 5_000, True)
    assert "5,000 cases: 5,000 passed" in finished.report()


def test_runs_can_be_awaited_in_an_event_loop() -> None:
    finished = asyncio.run(evaluate_async(twenty(), answer))
    assert finished.summary.passed == 20


def test_evaluate_works_while_an_event_loop_runs(tmp_path: Path) -> None:
    """As in every notebook; twice, because the second call must find the journal of the first."""
    asked: list[str] = []

    async def agent(utterance: str) -> dict[str, object]:
        await asyncio.sleep(0)
        asked.append(utterance)
        return answer(utterance)

    async def notebook() -> list[FinishedRun]:
        return [evaluate(twenty(), agent, journal=tmp_path / "journal") for _ in range(2)]

    first, second = asyncio.run(notebook())
    assert (first.summary.passed, second.summary.passed, len(asked)) == (20, 20, 20)


# Who is asked, and who rates.


@pytest.mark.parametrize(
    "subject",
    [answer, Desk, Desk(), {"adapter": "python", "target": "desk:answer"},
     PythonSubject(adapter="python", target="desk:answer"), Agent(answer_orders)],
    ids=["function", "class", "object", "table", "settings", "subject"],
)  # fmt: skip
def test_every_kind_of_subject_is_asked(project: Project, subject: object) -> None:
    assert evaluate([twenty(), project.root / FOLDER], subject, root=project.root).succeeded


def test_a_subject_is_closed_once_after_all_runs() -> None:
    before, agent = Desk.closed, Agent(answer_orders)
    evaluate([twenty(), twenty()], agent)
    evaluate([replace(twenty(), test_cases=twenty().test_cases[:1])], Desk())
    assert (agent.opened, agent.closed_sessions, agent.closed) == (40, 40, 1)
    assert Desk.closed - before == 2  # the session, which is the agent here, and the agent


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (3, "the subject is neither a function nor an object with the method open: int"),
        ({"adapter": "http"}, "the subject's settings are not valid: url: Field required"),
        ({"url": "x"}, "the subject's settings are not valid: adapter: Field required"),
        ({"adapter": "htpp"}, "there are no subjects called 'htpp'"),
        (
            {"adapter": "python", "target": "agents/shop:answer"},
            "target 'agents/shop:answer' is not a valid module:name; write agents.shop:answer",
        ),
    ],
)
def test_an_invalid_subject_is_refused(subject: object, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        evaluate(twenty(), subject)


def test_invalid_settings_are_reported_without_their_values() -> None:
    with pytest.raises(SettingsError) as raised:
        evaluate(twenty(), {"adapter": "http", "url": "http://localhost", "headers": "Bearer 00Dxx"})
    assert "00Dxx" not in str(raised.value)


def test_an_unbound_agent_is_an_error_before_anything_is_run(project: Project) -> None:
    write(project, "C", cases=1, subject="Nobody")
    with pytest.raises(SubjectNotBound, match="Nobody"):
        evaluate([project.root])
    assert asked(project) == []


def test_all_that_a_list_needs_is_reported_at_once_before_anything_is_run(project: Project) -> None:
    (project.root / "other.py").write_text("\n\ndef answer(question, customer): pass\n")
    lines = '[subjects.Other]\nadapter = "python"\ntarget = "other:answer"\n'
    (project.root / "evalmeta.toml").write_text((project.root / "evalmeta.toml").read_text() + lines)
    paths = [
        write(project, name, cases=1, subject=subject)
        for name, subject in (("A", "Desk"), ("B", "Nobody"), ("C", "Other"))
    ]
    with pytest.raises(SettingsError) as raised:
        evaluate(paths, options=RunOptions(scoring=Scoring(rater="judge")))
    _, rater, nobody, other = str(raised.value).splitlines()
    assert (rater, nobody) == (
        "  the rater 'judge' is not configured",
        "  no adapter is bound to the agent 'Nobody' (B)",
    )
    assert other.startswith("  other.py:3: the subject's target 'other:answer' cannot be called: ")
    assert "[subjects.Nobody]" in raised.value.actions[-1]
    assert "[raters.judge]" in raised.value.actions[-1]
    assert asked(project) == []


def test_without_a_project_a_subject_must_be_given() -> None:
    with pytest.raises(ProjectError):
        evaluate(twenty())
    with pytest.raises(UsageError, match="cases do not name an agent"):
        evaluate(list(cases(1)))


RATED = (Expectation("bot_response_rating", "An answer"),)


@pytest.mark.parametrize(("score", "verdict"), [(5.0, Verdict.PASS), (1.0, Verdict.FAILURE)])
def test_a_function_may_rate(score: float, verdict: Verdict) -> None:
    async def rate(rubric: Rubric) -> Rating:
        return Rating(score, verdict, f"of {rubric.actual}", "mine")

    [result] = evaluate([case(expectations=RATED)], answer, rater=rate).run.cases[0].results
    assert (result.verdict, result.rater) == (verdict, "mine")


class Lenient:
    closed = 0

    def __call__(self, _rubric: Rubric) -> Rating:
        return Rating(5.0, Verdict.PASS, "always", "lenient")

    async def close(self) -> None:
        self.closed += 1


def test_a_rater_is_closed_once() -> None:
    lenient = Lenient()
    evaluate([evaluation(1, expectations=RATED)] * 2, answer, rater=lenient)
    assert lenient.closed == 1


@pytest.mark.parametrize("rater", [None, {"adapter": "rules"}, RulesRater(adapter="rules")])
def test_a_rater_may_be_settings(rater: object) -> None:
    [result] = evaluate([case(expectations=RATED)], answer, rater=rater).run.cases[0].results
    assert result.rater is not None
    assert result.rater.startswith("rules")


@pytest.mark.parametrize(
    ("rater", "message"),
    [
        (3, "the rater must be a function or settings, not int"),
        ({"adapter": "llm"}, "the rater's settings are not valid: the key 'model' is missing"),
    ],
)
def test_an_invalid_rater_is_refused(rater: object, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        evaluate(twenty(), answer, rater=rater)


# How it is run.


def test_the_options_are_those_of_the_project_unless_others_are_given(project: Project) -> None:
    settings = '[run]\niterations = 2\n[score]\nthreshold = 4\n[raters.mine]\nadapter = "rules"\n'
    (project.root / "evalmeta.toml").write_text(SETTINGS + settings)
    declared = evaluate(project.root / FOLDER / "A.aiEvaluationDefinition").run
    assert (declared.options.scoring.threshold, declared.total, len(declared.cases)) == (4, 2, 2)
    mine = RunOptions(scoring=Scoring(rater="mine"))
    assert evaluate(twenty(), answer, root=project.root, options=mine).run.options == mine
    with pytest.raises(SettingsError, match="the rater 'theirs' is not configured"):
        evaluate(twenty(), answer, root=project.root, options=replace(mine, scoring=Scoring(rater="theirs")))


def test_the_agent_that_a_spec_names_needs_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tmp_path / "spec.yaml"
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_agent.py").write_text("def answer(question): return 'Yes.'\n")
    spec.write_text("subject: own_agent:answer\ntestCases:\n- input: One?\n  equals: Yes.\n")
    assert evaluate(spec).succeeded
    with replying_with(says({"choices": [{"message": {"content": "Yes."}}]})) as server:
        spec.write_text(f"subject: {server.url}/v1\ntestCases:\n- input: One?\n  equals: Yes.\n")
        assert evaluate(spec).succeeded


@pytest.mark.parametrize("given", [list, tuple, iter])
def test_cases_can_be_mappings_with_the_keys_of_specs(given: Callable[[object], One]) -> None:
    asked = [{"input": "One?", "contains": ["Yes", "."], "name": "first"}, {"input": "Two?", "equals": "No."}]
    finished = evaluate(given(asked), lambda _: "Yes.")
    assert [(each.number, each.label, each.verdict) for each in finished.run.cases] == [
        (1, "first", Verdict.PASS),
        (2, "", Verdict.FAILURE),
    ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"input": "Hi", "contians": "Hi"}, "case 2: a test case has no key 'contians'"),
        ({"contains": "Hi"}, "case 2: a test case needs 'input'"),
        ({"input": "Hi", "equals": object()}, "case 2 is not valid: Object of type object is not JSON serializable"),
    ],
)
def test_a_wrong_mapping_is_refused_before_the_agent_is_called(values: dict[str, object], message: str) -> None:
    agent = Recorder()
    with pytest.raises(FormatError, match=re.escape(message)):
        evaluate([{"input": "Hi"}, values], agent)
    assert agent.asked == []


def test_too_many_errors_end_a_run_with_a_reason() -> None:
    agent = Recorder("question 1", "question 2")
    finished = evaluate(twenty(), agent, options=RunOptions(concurrency=1, max_errors=2))
    assert (finished.run.status, len(finished.run.cases), finished.run.total) == (RunStatus.ERROR, 2, 20)
    assert not finished.succeeded
    assert "ERROR with 2 of 20 case results: stopped at error 2 (max_errors)" in repr(finished)
    streamed = evaluate(cases(9), Recorder("question 1"), options=RunOptions(concurrency=1, max_errors=1))
    assert (streamed.run.total, streamed.run.status) == (1, RunStatus.ERROR)


def test_failures_are_reported_with_their_lines_in_the_file(project: Project) -> None:
    file = project.root / FOLDER / "B.aiEvaluationDefinition"
    finished = evaluate(file, lambda _: {"outcome": "Hello.", "topic": ""})
    assert not finished.succeeded
    assert f"{FOLDER}/B.aiEvaluationDefinition:9" in str(finished)
    assert repr(finished) == "<FinishedRun B not passed: 2 cases failed>"
    several = evaluate([file], lambda _: {"outcome": "Hello.", "topic": ""})
    assert not several.succeeded
    assert str(several) == several.report().rstrip()
    assert several.report("junit").count("<failure") == 2


def test_failures_of_specs_are_reported_with_their_lines_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spec.yaml").write_text("testCases:\n- input: One?\n  equals: Yes.\ncases: more.jsonl\n")
    (tmp_path / "more.jsonl").write_text('\n{"input": "Two?", "equals": "Yes."}\n')
    monkeypatch.chdir(tmp_path)
    report = str(evaluate("spec.yaml", lambda _: "No."))
    assert "\nFAILED spec.yaml:2  case 1  equals: " in report
    assert "\nFAILED more.jsonl:2  case 2  equals: " in report


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ([], RunOptions(), "there is nothing to evaluate"),
        (3, RunOptions(), "cannot evaluate int"),
        (["x"], RunOptions(), "the file 'x' cannot be found"),
        ((), RunOptions(), "there is nothing to evaluate"),
        (iter([3]), RunOptions(), "int is not a test case"),
        ([case(), case()], RunOptions(), "two cases have the number 1"),
        ({"input": "Hi"}, RunOptions(), "cannot evaluate dict"),
        (cases(0), RunOptions(), "there is nothing to run: evaluation has no cases"),
        (list(cases(3)), RunOptions(cases=(9,)), "there is nothing to run"),
        ([replace(case(), iterations=0)], RunOptions(), "case 1: 'iterations' is 0; whole numbers from 1 to 1000 are"),
        ([replace(case(), iterations=True)], RunOptions(), "case 1: 'iterations' is True; whole numbers"),
        ([replace(case(), iterations="3")], RunOptions(), "case 1: 'iterations' is '3'; whole numbers"),
        ([replace(case(), iterations=1.0)], RunOptions(), "case 1: 'iterations' is 1.0; whole numbers"),
        (cases(3), RunOptions(iterations=2), "several iterations need the cases more than once"),
        (list(cases(3)), RunOptions(concurrency=0), "options: concurrency is 0; 1 to "),
    ],
)
def test_invalid_inputs_are_refused(what: object, options: RunOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(what, answer, options=options)


@pytest.mark.parametrize("make", [tuple, iter], ids=["list", "iterator"])
def test_a_case_has_its_own_number_of_iterations(make: Callable[[object], Iterator[Case]]) -> None:
    agent = Agent(answer_orders)
    finished = evaluate(make(repeated(3, None, 1)), agent)
    places = [(result.iteration, result.number) for result in finished.run.cases]
    assert places == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1)]
    assert (finished.run.total, finished.summary.total, len(agent.asked)) == (5, 5, 5)
    assert "3 cases in up to 3 iterations, 5 case results" in str(finished)


def test_a_mapping_has_its_own_number_of_iterations() -> None:
    finished = evaluate([{"input": "Hi", "contains": "Hi", "iterations": 4}], lambda utterance: utterance)
    assert [result.iteration for result in finished.run.cases] == [1, 2, 3, 4]
    with pytest.raises(FormatError, match="'iterations' is 0"):
        evaluate([{"input": "Hi", "iterations": 0}], lambda utterance: utterance)


def test_a_call_that_ended_between_iterations_is_completed_by_the_next(tmp_path: Path) -> None:
    asked: list[str] = []

    def stopping(utterance: str) -> str:
        asked.append(utterance)
        if len(asked) == 4:
            raise ValueError
        return utterance

    stopped = evaluate(repeated(5, None), stopping, journal=tmp_path, options=RunOptions(concurrency=1, max_errors=1))
    assert (stopped.run.total, len(stopped.run.cases), stopped.succeeded) == (6, 4, False)
    finished = evaluate(repeated(5, None), stopping, journal=tmp_path)
    assert [finished.run.is_complete, len(finished.run.cases), len(asked)] == [True, 6, 6]
    again = evaluate(repeated(5, None), stopping, journal=tmp_path)
    assert [again.run.cases == finished.run.cases, len(asked)] == [True, 6]


@given(numbers=st.lists(st.integers(-2, 6), min_size=1, max_size=8))
def test_two_cases_with_one_number_are_refused_wherever_they_stand(numbers: list[int]) -> None:
    many = [case(number=number) for number in numbers]
    expected = pytest.raises(UsageError) if len(set(numbers)) < len(numbers) else nullcontext()
    with expected:
        assert {result.number for result in evaluate(many, answer).run.cases} == set(numbers)


@pytest.mark.parametrize(
    ("keyword", "action"),
    [("iterations", "Pass options=RunOptions(iterations=...)."), ("jurnal", "Did you mean 'journal'?")],
)
def test_an_unknown_keyword_is_an_error_that_says_what_to_write(keyword: str, action: str) -> None:
    with pytest.raises(UsageError, match=f"evaluate has no keyword '{keyword}'") as refused:
        evaluate(twenty(), answer, **{keyword: 3})

    assert list(refused.value.actions) == [action]


def test_a_list_has_no_name() -> None:
    with pytest.raises(UsageError, match="a list of evaluations cannot have one name"):
        evaluate([twenty()], answer, name="Mine")


def test_a_folder_without_definitions_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there are no tests in"):
        evaluate([tmp_path], answer)


def test_errors_in_files_are_reported_with_their_lines_and_nothing_is_run(project: Project) -> None:
    file = write(project, "C", cases=1)
    file.write_text(file.read_text().replace("topic_assertion", "topic_asertion"))
    agent = Recorder()
    with pytest.raises(InvalidMetadata, match=r"C.aiEvaluationDefinition:8:\d+: error: ") as raised:
        evaluate([project.root], agent)
    assert [problem.code for problem in raised.value.problems] == ["expectation-unknown"]
    assert agent.asked == []


def test_errors_in_definitions_are_reported() -> None:
    wrong = replace(twenty(), name="no name", test_cases=twenty("").test_cases * 2)
    with pytest.raises(InvalidMetadata, match=r"no name:\d+:\d+: error: .*\n.*and \d+ more$"):
        evaluate(replace(wrong, test_cases=wrong.test_cases), answer)


def test_a_definition_is_judged_as_the_project_says(project: Project) -> None:
    settings = f'{SETTINGS}[validate]\nprofile = "documented"\n'
    (project.root / "evalmeta.toml").write_text(settings)
    labelled = replace(twenty(), name="A label")
    assert evaluate(labelled, answer, name="A_Label").run.definition == "A_Label"
    with pytest.raises(InvalidMetadata, match="name-format"):
        evaluate(labelled, answer, name="A_Label", root=project.root)


# What is kept.


def test_a_journal_runs_only_the_missing_cases(tmp_path: Path) -> None:
    journal, agent, again = tmp_path / "journal", Recorder("question 3"), Recorder()
    first = evaluate(twenty(), agent, journal=journal, options=RunOptions(concurrency=1, max_errors=1))
    finished = evaluate(twenty(), again, journal=journal)
    assert (first.run.status, finished.run.status) == (RunStatus.ERROR, RunStatus.COMPLETED)
    assert again.asked == [f"question {number}" for number in range(4, 21)]
    assert (finished.run.id, len(finished.run.cases)) == (first.run.id, 20)
    assert (finished.summary.errors, finished.summary.passed) == (1, 19)
    once_more = evaluate(twenty(), again, journal=journal, keep_results=False)
    assert (once_more.run.id, once_more.summary, len(again.asked)) == (first.run.id, finished.summary, 17)


def test_a_journal_mixes_the_answers_of_two_agents_only_when_asked(tmp_path: Path) -> None:
    def other(utterance: str) -> dict[str, object]:
        return answer(utterance)

    journal = tmp_path / "journal"
    first = evaluate(twenty(), Recorder("question 3"), journal=journal, options=RunOptions(concurrency=1, max_errors=1))
    with pytest.raises(UsageError) as raised:
        evaluate(twenty(), other, journal=journal)
    names = f"python {__name__}:Recorder answered before, and python {__name__}:{other.__qualname__} would answer now"
    assert f"run {first.run.id} in the journal would have answers of two agents: {names}" in str(raised.value)
    assert "pass mixed=True" in str(raised.value)
    finished = evaluate(twenty(), other, journal=journal, mixed=True).run
    assert (finished.id, len(finished.cases)) == (first.run.id, 20)
    both = f"python {__name__}:Recorder and python {__name__}:{other.__qualname__}"
    assert finished.options.setup.agent == both


def test_a_journal_does_not_return_the_answers_of_another_agent_as_those_of_this_one(tmp_path: Path) -> None:
    evaluate(twenty(), answer, journal=tmp_path / "journal")
    with pytest.raises(UsageError, match="would have answers of two agents"):
        evaluate(twenty(), Recorder(), journal=tmp_path / "journal")
    mixed = evaluate(twenty(), Recorder(), journal=tmp_path / "journal", mixed=True).run
    assert mixed.options.setup.agent == f"python {__name__}:answer"


def test_a_new_run_can_be_begun_beside_the_earlier_one(tmp_path: Path) -> None:
    first, second = (evaluate(twenty(), answer, journal=tmp_path / "j", resume=False).run for _ in range(2))
    assert first.id != second.id


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_results_of_a_killed_process_are_not_run_again(tmp_path: Path, ending: signal.Signals) -> None:
    journal, noted = tmp_path / "journal", tmp_path / "asked.txt"
    command = [sys.executable, str(INTERRUPTED), str(journal), str(noted)]
    env = {**os.environ, "PYTHONPATH": str(Path(evalmeta.__file__).parent.parent)}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE) as child:
        while child.poll() is None and kept_in(journal) < HANGS - 1:
            time.sleep(0.02)
        child.send_signal(ending)
        child.communicate(timeout=120)
    agent = Recorder()
    finished = evaluate(twenty(), agent, journal=journal, mixed=True)
    assert noted.read_text().splitlines() == [f"question {number}" for number in range(1, HANGS + 1)]
    assert sorted(agent.asked) == sorted(f"question {number}" for number in range(HANGS, 21))
    assert (finished.succeeded, finished.summary.total) == (True, 20)


def kept_in(journal: Path) -> int:
    with open_database(journal) as database:
        [(count,)] = database.query("SELECT count(*) FROM case_result")
    return int(count)


def test_a_definition_that_changed_is_refused_with_the_difference(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    evaluate(twenty(), answer, journal=journal)
    changed = replace(twenty(), test_cases=(*twenty().test_cases[1:],))
    with pytest.raises(UsageError, match=r"has run 4KB\w+ of another Twenty:(.|\n)*test case 1: removed(.|\n)*resume"):
        evaluate(changed, answer, journal=journal)
    assert evaluate(changed, answer, journal=journal, resume=False).summary.total == 19


def test_reformatting_a_definition_is_not_a_change(tmp_path: Path, project: Project) -> None:
    file, agent = project.root / FOLDER / "A.aiEvaluationDefinition", Recorder()
    evaluate(file, answer, journal=tmp_path / "journal")
    file.write_text(file.read_text().replace("\n\n", "\n"))
    assert evaluate(file, agent, journal=tmp_path / "journal", mixed=True).succeeded
    assert agent.asked == []


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        (evaluation(4), RunOptions(), "the cases are different"),
        (replace(twenty(), name="Orders_Test"), RunOptions(), "the cases are different"),
        (evaluation(3), RunOptions(iterations=2), "iterations was 1, and is 2"),
        (replace(evaluation(3), cases=repeated(3, None, None)), RunOptions(), "the cases are different"),
        (evaluation(3), RunOptions(scoring=Scoring(threshold=4)), "scoring was "),
    ],
)
def test_other_cases_and_options_are_refused(tmp_path: Path, what: object, options: RunOptions, message: str) -> None:
    evaluate(evaluation(3), answer, journal=tmp_path)
    with pytest.raises(UsageError, match=message):
        evaluate(what, answer, journal=tmp_path, options=options)


def test_a_run_that_another_process_works_on_is_refused(tmp_path: Path) -> None:
    async def twice() -> list[object]:
        async def slow(utterance: str) -> GeneratedData:
            await asyncio.sleep(0.01)
            return await answer_orders(utterance)

        calls = (evaluate_async(twenty(), slow, journal=tmp_path) for _ in range(2))
        return await asyncio.gather(*calls, return_exceptions=True)

    finished, refused = asyncio.run(twice())
    assert finished.succeeded
    assert "another process works on run" in str(refused)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (cases(3), "a journal needs the cases more than once"),
        ([twenty(), twenty()], "a journal identifies runs by their names"),
        ([replace(evaluation(0), cases=[])], "there is nothing to run"),
    ],
)
def test_evaluations_that_a_journal_cannot_keep_are_refused(tmp_path: Path, what: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate(what, answer, journal=tmp_path)


def test_a_run_that_is_deleted_from_its_journal_is_an_error(tmp_path: Path) -> None:
    def take_out(_results: object) -> None:
        with open_database(tmp_path) as database:
            database.execute("DELETE FROM case_result")
            database.execute("DELETE FROM run")

    with pytest.raises(StoreError, match=r"has deleted run \w+ from the journal"):
        evaluate([case()], answer, journal=tmp_path, on_results=take_out)


def test_the_projects_state_folder_cannot_be_a_journal(project: Project) -> None:
    with pytest.raises(UsageError, match="is the project's own state folder"):
        evaluate([project.root], journal=project.state_dir)


@pytest.mark.slow
def test_a_run_records_what_answered_what_judged_and_what_each_case_expected() -> None:
    def lenient(_: Rubric) -> None:
        return None

    run = evaluate([case()], answer, rater=lenient).run
    setup = run.options.setup
    assert (setup.agent, setup.rater) == (f"python {__name__}:answer", f"python {__name__}:{lenient.__qualname__}")
    assert (setup.evalmeta, len(run.cases[0].checks)) == (evalmeta.__version__, 8)
    assert evaluate([case()], {"adapter": "http", "url": "http://127.0.0.1:1/"}).run.options.setup.rater == "rules"


def test_cases_of_specs_and_settings_are_quarantined(project: Project) -> None:
    entry = f'[[quarantine]]\ntest = "t"\ncase = 2\nreason = "broken"\nuntil = {today()}\n'
    (project.root / "evalmeta.toml").write_text(SETTINGS + entry)
    spec = project.root / "t.yaml"
    spec.write_text(
        f"testCases:\n- input: a\n  contains: a\n  quarantine: {{reason: flaky, until: {today()}}}\n"
        "- input: b\n  contains: x\n- input: c\n  contains: c\n"
    )
    found = evaluate(spec, answer).run.cases
    assert [each.quarantine and each.quarantine.reason for each in found] == ["flaky", "broken", None]


def test_cases_of_python_are_quarantined() -> None:
    cases = [{"input": "a", "contains": "x", "quarantine": {"reason": "flaky", "until": today()}}]
    [case] = evaluate(cases, answer).run.cases
    assert (case.is_quarantined, case.verdict) == (True, Verdict.FAILURE)


def test_a_quarantine_changes_no_journal(tmp_path: Path) -> None:
    cases = [{"input": "a", "contains": "a"}, {"input": "b", "contains": "x"}]
    first = evaluate(cases, answer, journal=tmp_path / "journal").run
    quarantine = {"reason": "flaky", "until": str(today())}
    again = evaluate([cases[0], {**cases[1], "quarantine": quarantine}], answer, journal=tmp_path / "journal").run
    assert (again.id, [each.is_quarantined for each in again.cases]) == (first.id, [False, False])


class Place(BaseModel):
    city: str
    streets: list[str] = []


def test_structured_answers_are_judged_as_values_and_kept_as_json_in_a_journal(tmp_path: Path) -> None:
    cases = [
        {"input": "Where?", "equals": {"streets": ["a"], "city": "Zürich"}, "contains": '"city": "Zürich"'},
        {"input": "Where?", "json": {"path": "$.streets[0]", "equals": "a"}},
        {"input": "Where?", "equals": {"city": "Zürich"}},
    ]
    finished, again = (
        evaluate(cases, lambda _: Place(city="Zürich", streets=["a"]), journal=tmp_path / "runs") for _ in range(2)
    )
    for run in (finished, again):
        assert [case.verdict for case in run.run.cases] == ["PASS", "PASS", "FAILURE"]
        assert run.run.cases[0].generated is not None
        assert run.run.cases[0].generated.value == {"city": "Zürich", "streets": ["a"]}
    assert '{"city": "Zürich", "streets": ["a"]}' in again.report()


def priced(_: str) -> dict[str, object]:
    return {"answer": "Yes.", "tokens": {"input": 1_000_000, "output": 0, "model": "gpt-4.1-mini"}}


SIX = [{"input": f"question {number}", "contains": "Yes"} for number in range(6)]
ONE_BY_ONE = RunOptions(concurrency=1)


def test_a_cost_limit_stops_all_evaluations_of_a_call() -> None:
    alone = evaluate(SIX, priced, options=ONE_BY_ONE, max_cost=1)
    assert (bool(alone), len(alone.run.cases), alone.run.is_cut) == (False, 3, True)

    tests = [replace(evaluation(6), name=name) for name in "ab"]
    many = evaluate(tests, priced, options=ONE_BY_ONE, max_cost=1)
    assert (bool(many), sum(len(finished.run.cases) for finished in many)) == (False, 3)


def test_a_journal_goes_on_with_a_higher_cost_limit(tmp_path: Path) -> None:
    runs = [
        evaluate(SIX, priced, journal=tmp_path / "j", options=ONE_BY_ONE, max_cost=limit) for limit in (1, 1.5, 100)
    ]

    assert [(bool(finished), len(finished.run.cases)) for finished in runs] == [(False, 3), (False, 4), (True, 6)]


def test_a_cost_limit_of_an_iterator_is_red() -> None:
    cut = evaluate(iter(SIX), priced, options=ONE_BY_ONE, max_cost=1)

    assert (bool(cut), "more cases not run: cost limit of $1.00 reached" in str(cut)) == (False, True)


@pytest.mark.parametrize(
    ("limit", "fault"),
    [
        (True, "maxCost is True; a number from 1e-12 to 1e+06 is expected"),
        (float("nan"), "maxCost is nan; a number from 1e-12 to 1e+06 is expected"),
        ("x", "maxCost is 'x'; a number from 1e-12 to 1e+06 is expected"),
        (-1, "maxCost is -1; 1e-12 to 1e+06 are allowed"),
        (0, "maxCost is 0; 1e-12 to 1e+06 are allowed"),
        (float("inf"), "maxCost is inf; 1e-12 to 1e+06 are allowed"),
    ],
)
def test_a_cost_limit_that_is_no_amount_is_refused(limit: float, fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        evaluate(SIX, priced, max_cost=limit)
    assert str(caught.value) == f"options: {fault}"


def test_a_cost_limit_needs_a_price() -> None:
    with pytest.raises(SettingsError, match=r"needs the price of a model: mine has none"):
        evaluate(SIX, {"adapter": "openai", "model": "mine", "url": "http://127.0.0.1:9/v1"}, max_cost=1)
