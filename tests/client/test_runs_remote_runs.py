from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from client.salesforce import RETRY, Scene, case, done, result, salesforce, studio_case
from client.servers import visit
from evalmeta import limits
from evalmeta.client.runs import fetch_run, start_run, wait_for_run
from evalmeta.errors import NotFound, OrgFault, WaitRanOut
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.model.run import RunStatus, Verdict

if TYPE_CHECKING:
    from client.salesforce import Reply
    from evalmeta.client.connection import Connection
    from evalmeta.client.runs import Progress
    from evalmeta.model.run import Run

DONE = Scene("COMPLETED", done(case(1)))
FAULT = (400, [{"errorCode": "API_DISABLED_FOR_ORG", "message": "no"}])


def watched(*scenes: Scene, wait: float | None = None, name: str = "Orders") -> tuple[Run, list[Progress]]:
    seen: list[Progress] = []

    async def run(connection: Connection) -> Run:
        kind = {"kind": TESTING_DEFINITION} if name == "Visits" else {}
        run_id = await start_run(connection, name, **kind)
        return await wait_for_run(connection, run_id, definition=name, wait=wait, on_progress=seen.append)

    with salesforce(scenes) as org:
        return visit(org, run), seen


def verdicts(*results: dict[str, object]) -> tuple[Verdict, ...]:
    run, _ = watched(Scene("COMPLETED", done(case(1, *results))))
    return (*(result.verdict for result in run.cases[0].results), run.cases[0].verdict)


@pytest.mark.parametrize("word", ["RETRY", "QUEUED", "", "in_progress"])
def test_a_status_that_is_not_known_means_going_on(word: str) -> None:
    run, seen = watched(Scene("NEW"), Scene(word, done(status=word)), DONE)
    assert (run.status, len(run.cases)) == (RunStatus.COMPLETED, 1)
    assert [status.status for status in seen] == ["NEW", "IN_PROGRESS", "COMPLETED"]


@pytest.mark.parametrize("word", ["ERROR", "TERMINATED"])
@pytest.mark.parametrize("results", [RETRY, (404, [{"errorCode": "NOT_FOUND"}]), done(case(1), status="IN_PROGRESS")])
def test_a_run_that_ended_early_ends_the_poll_with_its_results(word: str, results: Reply) -> None:
    told = {"status": word, "errorMessage": "Agent call failed"}
    run, _ = watched(Scene(told, results))
    assert (run.status, run.error) == (RunStatus[word], "Agent call failed")
    assert len(run.cases) == isinstance(results, dict)


def test_results_that_are_completed_end_the_poll_while_the_status_lags() -> None:
    run, _ = watched(Scene("IN_PROGRESS", done(case(1))))
    assert (run.status, len(run.cases)) == (RunStatus.COMPLETED, 1)


@pytest.mark.parametrize("results", [done(status="IN_PROGRESS"), RETRY, (404, [{"errorCode": "NOT_FOUND"}])])
def test_results_that_lag_behind_the_status_are_waited_for(results: Reply) -> None:
    run, _ = watched(Scene("COMPLETED", results), DONE)
    assert len(run.cases) == 1


@pytest.mark.parametrize("scene", [Scene("IN_PROGRESS", RETRY), Scene(RETRY)])
def test_an_org_that_stumbles_over_a_running_run_is_asked_again(scene: Scene) -> None:
    run, _ = watched(*[scene] * 3, DONE)
    assert run.status is RunStatus.COMPLETED


def test_results_that_an_org_never_returns_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_POLL_ERRORS", 3)
    with pytest.raises(OrgFault, match="RETRY"):
        watched(Scene("COMPLETED", RETRY))


@pytest.mark.parametrize("scene", [Scene(FAULT), Scene("IN_PROGRESS", FAULT)])
def test_an_org_that_says_no_is_asked_once(scene: Scene) -> None:
    with pytest.raises(OrgFault, match="API_DISABLED_FOR_ORG"):
        watched(scene)


def test_a_run_that_does_not_exist_is_not_found() -> None:
    with salesforce([DONE]) as org, pytest.raises(NotFound, match="Run not found"):
        visit(org, lambda connection: fetch_run(connection, "4KB000000000009GAA"))


def test_a_wait_that_runs_out_names_the_run() -> None:
    with pytest.raises(WaitRanOut) as raised:
        watched(Scene("IN_PROGRESS", done(status="IN_PROGRESS")), wait=0)
    assert raised.value.job_id == "4KB5e0000000001AAA"


def test_late_results_of_a_completed_run_are_reported() -> None:
    async def start_and_look(connection: Connection) -> Run:
        return await fetch_run(connection, await start_run(connection, "Orders"))

    with salesforce([Scene("COMPLETED", RETRY)]) as org, pytest.raises(OrgFault, match="RETRY"):
        visit(org, start_and_look)


def test_the_keys_of_results_may_be_missing() -> None:
    run, _ = watched(Scene("IN_PROGRESS", {}), Scene({"status": "COMPLETED"}, {"testCases": [{"status": "ERROR"}]}))
    assert [case.verdict for case in run.cases] == [Verdict.ERROR]


def test_cases_are_counted_when_they_have_results() -> None:
    going = done(case(1, result("FAILURE")), case(2, status="IN_PROGRESS"), status="IN_PROGRESS")
    _, seen = watched(Scene("IN_PROGRESS", going), DONE)
    assert (seen[0].done, seen[0].not_passed, seen[0].total) == (1, 1, 2)


def test_an_unfinished_case_of_a_finished_run_is_an_error() -> None:
    run, _ = watched(Scene("COMPLETED", done(case(1, status="RETRY"))))
    assert (run.cases[0].verdict, run.cases[0].error) == (Verdict.ERROR, "the run ended while this case was RETRY")


def test_a_case_that_was_never_asked_is_missing_from_a_canceled_run() -> None:
    run, _ = watched(Scene("TERMINATED", done(case(1), case(2, status="NEW"), status="TERMINATED")))
    assert ([case.number for case in run.cases], run.total) == ([1], 2)


def test_escaped_text_and_json_in_text_are_read() -> None:
    found = watched(DONE)[0].cases[0]
    data = GeneratedData("It's on its way.", "Orders", (Action("Find", latency_ms=12.0),), session_id="019a")
    assert (found.utterance, found.generated) == ("Where's it?", data)


@pytest.mark.parametrize(
    ("fields", "score", "verdict"),
    [
        ({"name": "bot_response_rating", "score": 0.9}, 0.9, Verdict.PASS),
        ({"name": "coherence", "score": 4}, 4, Verdict.PASS),
        ({"name": "completeness", "score": 2, "result": "FAILURE"}, 2, Verdict.FAILURE),
        ({"name": "conciseness", "score": "0", "result": "FAILURE"}, 0, Verdict.FAILURE),
        ({"name": "instruction_following", "score": 1, "result": "FAILURE"}, 1, Verdict.FAILURE),
        ({"name": "instruction_following", "score": None, "result": None, "metricScore": "HIGH"}, None, Verdict.PASS),
        ({"name": "instruction_following", "result": None, "metricScore": "LOW"}, 1, Verdict.FAILURE),
        ({"name": "factuality", "score": 92}, 92, Verdict.PASS),
        ({"name": "output_latency_milliseconds", "score": 812, "result": None}, 812, Verdict.UNDECIDED),
        ({"score": "nan", "metricScore": "0.5"}, 0.5, Verdict.PASS),
    ],
)
def test_the_orgs_verdict_holds_on_every_scale(fields: dict[str, object], score: float, verdict: Verdict) -> None:
    run, _ = watched(Scene("COMPLETED", done(case(1, result(**{"result": "PASS", **fields})))))
    assert (run.cases[0].results[0].score, run.cases[0].results[0].verdict) == (score, verdict)


def test_a_rating_that_nothing_was_expected_of_decides_nothing() -> None:
    skipped = {"status": "ERROR", "errorMessage": "Skip metric result due to missing expected input", "errorCode": 0}
    nothing = result("FAILURE", name="output_validation", expectedValue="", **skipped)
    assert verdicts(result(), nothing) == (Verdict.PASS, Verdict.UNDECIDED, Verdict.PASS)


@pytest.mark.parametrize("word", ["PASS", None])
def test_an_orgs_latency_without_an_expected_value_never_makes_a_case_pass(word: str | None) -> None:
    latency = result(word, name="output_latency_milliseconds", expectedValue="", score=812)
    [case_result] = watched(Scene("COMPLETED", done(case(1, latency))))[0].cases
    assert (case_result.verdict, case_result.results[0].is_measured) == (Verdict.UNDECIDED, True)
    assert case_result.results[0].score == 812


def test_agentforce_studios_words_and_shape_are_read_likewise() -> None:
    going = {"status": "IN_PROGRESS", "testCases": [studio_case(1), {"testNumber": 2}]}
    over = {"status": "SUCCESS", "testCases": [studio_case(1), studio_case(2, "fail")]}
    run, seen = watched(Scene("CREATED"), Scene("IN_PROGRESS", going), Scene("SUCCESS", over), name="Visits")
    assert [status.status for status in seen] == ["NEW", "IN_PROGRESS", "COMPLETED"]
    assert [(case.verdict, case.results[0].score) for case in run.cases] == [(Verdict.PASS, 92), (Verdict.FAILURE, 92)]
    assert (seen[1].done, seen[1].total, run.started > 0) == (1, 2, True)


@pytest.mark.parametrize("word", ["FAILED", "TERMINATED"])
def test_agentforce_studios_other_ends_are_ends_too(word: str) -> None:
    assert watched(Scene(word, {"status": word, "testCases": []}), name="Visits")[0].status.is_over


def test_salesforce_is_asked_for_what_it_documents_alone() -> None:
    with salesforce([DONE]) as org:
        visit(org, lambda connection: start_run(connection, "Orders"))
    assert org.starts == [{"aiEvaluationDefinitionName": "Orders"}]
