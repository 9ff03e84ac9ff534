"""Several definitions of one call of `evaluate`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evalmeta import evaluate
from evalmeta.model.run_options import RunOptions
from suites import make_suite

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import CaseResult


def test_a_folder_uses_the_whole_concurrency_of_its_agent_and_asks_in_order(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project")
    finished = evaluate([suite.root])
    assert [each.summary.passed for each in finished] == [3] * 20
    assert suite.most_in_flight() == 10
    assert suite.asked() == suite.questions


def test_a_definition_ends_as_soon_as_its_own_last_case_is_answered(tmp_path: Path) -> None:
    suite, reported = make_suite(tmp_path / "project", tests=4, wanted=0), []
    suite.write("held", "00 02")

    def release(results: list[CaseResult]) -> None:
        reported.extend(result.utterance for result in results)
        if len(reported) == 11:
            suite.write("held", "nothing")

    evaluate([suite.root], on_results=release)
    assert reported[-1] == "Question 00 02"
    assert sorted(reported) == suite.questions


def test_an_agent_that_is_given_is_one_agent_for_all_definitions(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "project", tests=4)
    for path in suite.root.rglob("Test_0[13].aiEvaluationDefinition"):
        path.write_text(path.read_text().replace("<subjectName>Desk<", "<subjectName>Other<"))
    in_flight, most = 0, 0

    async def answer(_utterance: str) -> dict[str, str]:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0.02)
        in_flight -= 1
        return {"outcome": "Done.", "topic": "Orders"}

    assert evaluate([suite.root], answer, options=RunOptions(concurrency=3)).succeeded
    assert most == 3
