from __future__ import annotations

import asyncio

from evalmeta.engine.case_run import CasePolicy, run_case
from evalmeta.engine.deadline import TimeLimit
from evalmeta.engine.scorers import SCORERS
from evalmeta.engine.subjects import bind
from evalmeta.engine.subjects.replay import RecordedSubject
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case, Turn, WorkItem
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, Verdict

TOPIC = (Expectation("topic_sequence_match", "Orders"),)
ANSWER = GeneratedData("Here.", "Orders", latency_ms=7.0)


def ask(tmp_path: object, *turns: Turn) -> CaseResult:
    subject = bind(RecordedSubject(adapter="recorded"), root=tmp_path)
    return asyncio.run(run_case(WorkItem(1, Case(1, turns)), subject, CasePolicy(SCORERS, TimeLimit(5))))


def test_turns_are_answered_with_what_was_recorded(tmp_path: object) -> None:
    result = ask(tmp_path, Turn("Where?", TOPIC, ANSWER), Turn("Sure?", TOPIC, ANSWER))
    assert (result.verdict, result.generated, len(result.earlier)) == (Verdict.PASS, ANSWER, 1)


def test_a_turn_without_a_recorded_answer_is_an_error(tmp_path: object) -> None:
    result = ask(tmp_path, Turn("Where?", TOPIC))
    assert (result.verdict, result.error) == (Verdict.ERROR, "case 1 has no recorded answer to 'Where?'")


def test_an_unrecorded_latency_stays_unknown(tmp_path: object) -> None:
    assert ask(tmp_path, Turn("Where?", TOPIC, GeneratedData("Here."))).generated == GeneratedData("Here.")
