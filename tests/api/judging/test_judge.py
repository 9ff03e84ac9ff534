from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

import evalmeta
from engine.raters.llm.model_server import judging, model_serving, saying
from evalmeta.engine.interfaces import Rating, Rubric
from evalmeta.errors import RaterError, SettingsError, UsageError
from evalmeta.model.run import Verdict
from evalmeta.store import judgements
from org.parts import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.api.judging.judge import Judgement

pytest_plugins = ["pytester"]

ASKED = ("Where is order 10045?", "It is on its way.", "The answer says where the order is.")
SETTINGS = '[score]\nrater = "judge"\n\n[raters.judge]\nadapter = "llm"\nmodel = "judge-1"\nurl = "{url}"\n'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(judgements, "_OF_PROCESS", judgements.MemoryRatings())


def rating(score: float | None, verdict: Verdict = Verdict.UNDECIDED) -> Rating:
    return Rating(score, verdict, "because", "mine")


@pytest.mark.parametrize(("stars", "passed"), [(5, True), (4, True), (3, False), (0, False)])
def test_a_language_model_judges_with_a_score_and_a_reason(stars: int, *, passed: bool) -> None:
    with model_serving(judging(stars)) as server:
        rater = {"adapter": "llm", "model": "judge-1", "url": server.url}
        check = asyncio.run(_awaited(evalmeta.judge(*ASKED, rater=rater)))
    assert (check.passed, check.score) == (passed, stars / 5)
    assert f"It deserves {stars}." in check.reason
    question, answer, rubric = ASKED
    assert all(text in json.dumps(server.bodies[0]) for text in (question, answer, rubric))


async def _awaited(judgement: Judgement) -> evalmeta.Check:
    return await judgement


def test_the_rater_of_the_project_is_asked_once_and_a_test_that_is_not_async_reads_its_judgement(
    tmp_path: Path,
) -> None:
    project = make_project(tmp_path / "project")
    with model_serving(judging(4)) as server:
        (project.root / "evalmeta.toml").write_text(SETTINGS.format(url=server.url))
        judgement = evalmeta.judge(*ASKED, root=project.root)
        assert server.bodies == []
        assert judgement
        assert (judgement.passed, judgement.score) == (True, 0.8)
        assert evalmeta.judge(*ASKED, threshold=0.9, root=project.root).passed is False
        assert len(server.bodies) == 1


def test_a_single_rater_of_a_project_needs_no_line_under_score(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    with model_serving(judging(4)) as server:
        lines = SETTINGS.format(url=server.url).partition("\n\n")[2]
        (project.root / "evalmeta.toml").write_text(lines)
        assert evalmeta.judge(*ASKED, root=project.root).score == 0.8
        assert evalmeta.judge(*ASKED, root=project.root, rater="judge").score == 0.8


def test_a_judgement_that_is_not_awaited_is_never_true_by_mistake() -> None:
    async def forgets_to_wait() -> bool:
        return bool(evalmeta.judge(*ASKED, rater=lambda _: rating(0)))

    assert not asyncio.run(forgets_to_wait())
    assert not evalmeta.judge(*ASKED, rater=lambda _: rating(None))


@pytest.mark.parametrize(
    ("returned", "check"),
    [
        (rating(3.5), evalmeta.Check(passed=True, score=0.7, reason="because")),
        (rating(3.0), evalmeta.Check(passed=False, score=0.6, reason="because")),
        (rating(5, Verdict.FAILURE), evalmeta.Check(passed=False, score=1.0, reason="because")),
        (rating(None), evalmeta.Check(passed=None, score=None, reason="because")),
    ],
)
def test_a_function_can_be_the_rater(returned: Rating, check: evalmeta.Check) -> None:
    seen: list[Rubric] = []

    def rate(rubric: Rubric) -> Rating:
        seen.append(rubric)
        return returned

    assert asyncio.run(_awaited(evalmeta.judge({"id": 7}, {"city": "Rom"}, "Names it.", rater=rate))) == check
    assert (seen[0].utterance, seen[0].actual, seen[0].expected) == ('{"id": 7}', '{"city": "Rom"}', "Names it.")


class SlowRater:
    """Rate when the event loop has turned a few times, and count how often that begins and ends."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun = self.ended = 0
        self._error = error

    async def __call__(self, _: Rubric) -> Rating:
        self.begun += 1
        try:
            await asyncio.sleep(0.01)
        finally:
            self.ended += 1
        if self._error is not None:
            raise self._error
        return rating(4)


def test_tasks_that_await_one_judgement_ask_once() -> None:
    async def both() -> list[evalmeta.Check]:
        return await asyncio.gather(_awaited(judgement), _awaited(judgement))

    rater = SlowRater()
    judgement = evalmeta.judge(*ASKED, rater=rater)
    first, second = asyncio.run(both())
    assert first is second
    assert asyncio.run(_awaited(judgement)) is first
    assert rater.begun == 1


def test_tasks_share_the_error_of_a_judgement_and_later_ones_ask_again() -> None:
    async def both() -> list[evalmeta.Check | BaseException]:
        return await asyncio.gather(_awaited(judgement), _awaited(judgement), return_exceptions=True)

    rater = SlowRater(RaterError("nobody answers"))
    judgement = evalmeta.judge(*ASKED, rater=rater)
    assert [str(error) for error in asyncio.run(both())] == ["nobody answers"] * 2
    assert rater.begun == 1
    with pytest.raises(RaterError, match="nobody answers"):
        assert judgement
    assert rater.begun == 2


def test_a_task_that_is_cancelled_takes_the_judgement_from_no_other() -> None:
    async def cancel(judgement: Judgement, *, others: int) -> list[evalmeta.Check]:
        cancelled = asyncio.create_task(_awaited(judgement))
        waiting = [asyncio.create_task(_awaited(judgement)) for _ in range(others)]
        while not rater.begun:
            await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        # The next one does not get the request that nobody waited for.
        return await asyncio.gather(*waiting, _awaited(judgement))

    rater = SlowRater()
    assert len(asyncio.run(cancel(evalmeta.judge(*ASKED, rater=rater), others=1))) == 2
    assert (rater.begun, rater.ended) == (1, 1)
    rater = SlowRater()
    assert len(asyncio.run(cancel(evalmeta.judge(*ASKED, rater=rater), others=0))) == 1
    assert (rater.begun, rater.ended) == (2, 2)


def test_without_a_language_model_the_error_names_the_setting_and_the_extra() -> None:
    with pytest.raises(SettingsError, match="no LLM rater is configured") as caught:
        evalmeta.judge(*ASKED).score  # noqa: B018 - reading it asks the rater
    advice = "\n".join(caught.value.actions)
    assert all(text in advice for text in ("[raters.judge]", '[score]\nrater = "judge"', "evalmeta[llm]"))
    with pytest.raises(SettingsError, match="the rater 'jugde' is not configured"):
        assert evalmeta.judge(*ASKED, rater="jugde")


def test_what_cannot_be_judged_is_an_error() -> None:
    with pytest.raises(UsageError, match="the threshold of a judgement is 3"):
        evalmeta.judge(*ASKED, threshold=3)
    with pytest.raises(UsageError, match="the rubric of a judgement is empty"):
        evalmeta.judge("a", "b", " ")
    with pytest.raises(RaterError, match="not a readable judgement"), model_serving(saying("well")) as server:
        assert evalmeta.judge(*ASKED, rater={"adapter": "llm", "model": "judge-1", "url": server.url})
    with pytest.raises(RaterError, match="which is not a Rating"):
        assert evalmeta.judge(*ASKED, rater=lambda _: 5)


def test_a_check_can_ask_the_judge() -> None:
    async def is_relevant(answer: str, *, utterance: str) -> evalmeta.Check:
        return await evalmeta.judge(utterance, answer, "It is relevant.", rater=lambda _: rating(4))

    finished = evalmeta.evaluate([{"input": "Where?"}], lambda _: "There.", checks=[is_relevant])
    [result] = finished.run.cases[0].results
    assert (result.verdict, result.score, result.explanation) == (Verdict.PASS, 0.8, "because")


RELEVANCE = """
import evalmeta
import pytest

ENTRIES = [("Where is order 10045?", "the state of the order"), ("May I return it?", "the terms of returns")]

def agent(question):
    return f"You asked: {{question}} It is on its way."

@evalmeta.evaluation(min_pass_rate=0.85)
@pytest.mark.parametrize(("question", "context"), ENTRIES)
{word}def test_answer_relevance(question, context):
    answer = agent(question)
    relevance = {wait}evalmeta.judge(question, answer, f"The answer is relevant, and tells {{context}}.", threshold=0.7)
    assert relevance.passed, f"Relevance score {{relevance.score}} below threshold 0.7: {{relevance.reason}}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(("word", "wait", "stars", "outcome"), [("", "", 2, 1), ("async ", "await ", 4, 0)])
def test_an_evaluation_in_pytest_judges_the_relevance_of_answers(
    pytester: pytest.Pytester, word: str, wait: str, stars: int, outcome: int
) -> None:
    with model_serving(judging(stars)) as server:
        (pytester.path / "evalmeta.toml").write_text(SETTINGS.format(url=server.url))
        pytester.makepyfile(test_relevance=RELEVANCE.format(word=word, wait=wait))
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == outcome
    assert len(server.bodies) == 2
    if outcome:
        result.stdout.fnmatch_lines(["*Relevance score 0.4 below threshold 0.7: *It deserves 2.*"])
