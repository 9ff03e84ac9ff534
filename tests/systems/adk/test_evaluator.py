"""Every example of ADK's page "Testing Agents", with the outcome that the page states, and how ADK counts."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from typing import TYPE_CHECKING

import pytest

from evalmeta import adk
from evalmeta.errors import EvalmetaError, FormatError, NotFound, ProjectError, UsageError
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.systems.adk.reader import read_adk_file
from systems.adk.adkfiles import (
    FULL,
    GREETING,
    LEGACY_PYTHON,
    LEGACY_TS,
    LONDON,
    MULTI_TURN,
    SEARCH,
    STATEFUL,
    case,
    eval_set,
    turn,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.api.runs.finished import FinishedRuns

ANSWERS = {
    "What is the weather in London?": ("The weather in London", [("get_weather", {"city": "London"})]),
    "Hello!": ("Hello! How can I help you today?", []),
    "Search for TypeScript tutorials": ("Here you are.", [("web_search", {"query": "TypeScript tutorials"})]),
    "Turn on the lamp": ("Done.", [("switch", {"on": True})]),
    "And off": ("It is off.", []),
}


def agent(utterance: str) -> dict[str, object]:
    said, calls = ANSWERS.get(utterance, ("I do not know.", []))
    return {"outcome": said, "actions": [{"name": name, "input": args} for name, args in calls]}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def put(data: bytes, name: str = "a.test.json", **config: object) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if config:
            (path.parent / "test_config.json").write_text(json.dumps(config))
        return path

    return put


def averages(runs: FinishedRuns) -> dict[tuple[str, str], tuple[float | None, str]]:
    return {
        (average.label, average.name): (average.score, average.verdict.value)
        for run in runs
        for average in run.summary.averages
    }


def failure(asked: object, path: Path, *, num_runs: int = 1) -> adk.EvaluationFailed:
    with pytest.raises(adk.EvaluationFailed) as caught:
        adk.evaluate(asked, path, num_runs)
    return caught.value


def test_the_full_example_passes(write: Callable[..., Path]) -> None:
    runs = adk.evaluate(agent, write(FULL))

    assert averages(runs) == {
        ("case-1", "tool_trajectory_avg_score"): (1.0, "PASS"),
        ("case-1", "response_match_score"): (1.0, "PASS"),
    }
    assert [run.run.definition.rpartition("/")[2] for run in runs] == ["a.test.json"]
    assert runs[0].summary.total == 2


def test_it_works_in_a_running_loop(write: Callable[..., Path]) -> None:
    async def notebook() -> FinishedRuns:
        return adk.evaluate(agent, write(FULL))

    assert [run.summary.total for run in asyncio.run(notebook())] == [2]


def test_an_agent_that_calls_a_tool_fails_where_adk_left_out_that_none_are_expected(write: Callable[..., Path]) -> None:
    greeting = {**turn("Hello!", "Hello!"), "intermediate_data": {}}

    def reckless(utterance: str) -> dict[str, object]:
        return {"outcome": utterance, "actions": ["delete_everything"]}

    error = failure(reckless, write(eval_set(case("greeting", greeting))))

    assert "unexpected: delete_everything()" in str(error)
    assert adk.evaluate(lambda utterance: {"outcome": utterance, "actions": []}, error.runs[0].run.definition).succeeded


def test_calls_that_the_file_does_not_mention_are_undecided_by_default(write: Callable[..., Path]) -> None:
    [run] = adk.evaluate(agent, write(eval_set(GREETING)), 1)

    assert {result.name: result.verdict for result in run.run.cases[0].results} == {
        "tool_trajectory_avg_score": Verdict.UNDECIDED,
        "response_match_score": Verdict.PASS,
    }


def test_an_answer_alone_is_compared(write: Callable[..., Path]) -> None:
    assert averages(adk.evaluate(agent, write(eval_set(GREETING)))) == {
        ("greeting-test", "response_match_score"): (1.0, "PASS")
    }


def test_calls_alone_are_compared(write: Callable[..., Path]) -> None:
    assert averages(adk.evaluate(agent, write(eval_set(SEARCH)))) == {
        ("search-test", "tool_trajectory_avg_score"): (1.0, "PASS")
    }


def test_a_conversation_is_one_session_whose_turns_are_averaged(write: Callable[..., Path]) -> None:
    sessions: list[list[str]] = []

    class Weather:
        def open(self) -> Weather.Session:
            sessions.append([])
            return Weather.Session(sessions[-1])

        class Session:
            def __init__(self, asked: list[str]) -> None:
                self.asked = asked

            def ask(self, utterance: str) -> dict[str, object]:
                self.asked.append(utterance)
                city, text = ("London", "sunny, 22°C") if "London" in utterance else ("Tokyo", "cloudy, 18°C")
                call = {"name": "get_weather", "input": {"city": city}}
                return {"outcome": f"The weather in {city} is {text}.", "actions": [call]}

    runs = adk.evaluate(Weather(), write(eval_set(MULTI_TURN)))

    assert sessions == [["What is the weather in London?", "What about Tokyo?"]] * 2
    assert averages(runs)["multi-turn-test", "response_match_score"] == (1.0, "PASS")
    assert [average.count for average in runs[0].summary.averages] == [4, 4]


def test_a_session_has_its_state(write: Callable[..., Path]) -> None:
    def bank(_: str, *, context: dict[str, object]) -> str:
        return f"Your account balance is ${context['account_balance']:,}."

    assert averages(adk.evaluate(bank, write(eval_set(STATEFUL)))) == {
        ("stateful-test", "response_match_score"): (1.0, "PASS")
    }


def test_the_criteria_of_the_folder_apply(write: Callable[..., Path]) -> None:
    path = write(eval_set(GREETING), criteria={"response_match_score": 0.6})

    assert averages(adk.evaluate(lambda _: "Hello! How can I help?", path))[
        "greeting-test", "response_match_score"
    ] == (pytest.approx(5 / 6), "PASS")


def test_the_criteria_of_a_named_file_apply_instead(write: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text('{"criteria": {"response_match_score": 0.1}}')
    path = write(FULL, criteria={"tool_trajectory_avg_score": 1.0})

    assert [*averages(adk.evaluate(agent, path, config=tmp_path / "own.json"))] == [("case-1", "response_match_score")]


def test_the_defaults_apply_without_a_config(write: Callable[..., Path]) -> None:
    error = failure(
        lambda _: "The weather in London is sunny, 22°C.", write(eval_set(case("w", turn("?", LONDON_SAID))))
    )

    assert "response_match_score for w failed: expected 0.8, got 0.667" in str(error)


LONDON_SAID = "The weather in London"


def test_a_folder_is_searched_and_each_file_has_the_criteria_of_its_own(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    write(eval_set(GREETING), "tests/basic.test.json", criteria={"response_match_score": 0.1})
    write(eval_set(GREETING), "tests/deep/er/edge-cases.test.json")
    write(b"no test", "tests/notes.json")
    write(b"no test", "tests/sets.evalset.json")
    error = failure(lambda _: "Hello!", tmp_path / "tests")

    assert [run.run.definition for run in error.runs] == [
        f"{tmp_path}/tests/basic.test.json",
        f"{tmp_path}/tests/deep/er/edge-cases.test.json",
    ]
    assert [run.succeeded for run in error.runs] == [True, False]
    assert str(error).startswith(
        f"1 metric of 1 case failed\n{tmp_path}/tests/deep/er/edge-cases.test.json:\n"
        "  response_match_score for greeting-test failed: expected 0.8, got 0.25\n"
    )


def test_a_broken_config_is_an_error_and_nothing_is_asked(write: Callable[..., Path], tmp_path: Path) -> None:
    write(FULL, "one/a.test.json", criteria={"response_match_scor": 0.8})
    write(b'{"evalSetId": "x", "evalCases": []}', "two/b.test.json")
    asked: list[str] = []

    with pytest.raises(FormatError) as caught:
        adk.evaluate(asked.append, tmp_path)

    assert asked == []
    assert str(caught.value) == (
        "nothing was asked:\n"
        f"  {tmp_path}/one/test_config.json:1:38: 'response_match_scor' is not a known metric"
        " Did you mean 'response_match_score'?\n"
        f"  {tmp_path}/two/b.test.json:1:33: 'evalCases' is empty: add at least one case"
    )


def test_a_folder_without_tests_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"there is no \*\.test\.json in"):
        adk.evaluate(agent, tmp_path)
    with pytest.raises(NotFound, match=r"the file .* cannot be found"):
        adk.evaluate(agent, tmp_path / "a.test.json")


def test_a_file_may_have_any_name(write: Callable[..., Path]) -> None:
    assert adk.evaluate(agent, write(FULL, "home.evalset.json"))[0].run.definition.endswith("/home.evalset.json")


def test_rows_of_typescript_are_cases_and_deprecated(write: Callable[..., Path]) -> None:
    path = write(LEGACY_TS.replace(b'"reference": "Hello!"', b'"reference": "Hello! How can I help you today?"'))
    with pytest.warns(DeprecationWarning, match="each of its rows is a case, as in TypeScript"):
        runs = adk.evaluate(agent, path)

    assert {label for label, _ in averages(runs)} == {"eval-0", "eval-1"}
    assert runs.succeeded


def test_rows_of_python_are_turns_of_one_case_called_by_the_file(write: Callable[..., Path]) -> None:
    path = write(LEGACY_PYTHON)
    with pytest.warns(DeprecationWarning, match="its rows are the turns of one case, as in Python"):
        runs = adk.evaluate(agent, path)

    assert averages(runs) == {
        (path.name, "tool_trajectory_avg_score"): (1.0, "PASS"),
        (path.name, "response_match_score"): (1.0, "PASS"),
    }


def test_scores_of_all_turns_and_runs_are_pooled(write: Callable[..., Path]) -> None:
    """1.1 Aggregation: the mean of 1, 0, 1, 1 reaches 0.75, although one turn of one run failed."""
    calls = iter([["a"], ["x"], ["a"], ["b"]])

    def changing(_: str) -> dict[str, object]:
        return {"outcome": "", "actions": next(calls)}

    asked = case("c", turn("1", None, [("a", {})]), turn("2", None, [("b", {})]))
    path = write(eval_set(asked), criteria={"tool_trajectory_avg_score": 0.75})
    [run] = adk.evaluate(changing, path, options=RunOptions(concurrency=1))

    assert [(average.score, average.count, average.verdict) for average in run.summary.averages] == [
        (0.75, 4, Verdict.PASS)
    ]


def test_each_metric_has_a_verdict_and_all_failures_are_listed(write: Callable[..., Path]) -> None:
    path = write(eval_set(case("one", LONDON), GREETING, SEARCH))
    error = failure(lambda _: {"outcome": "Hello! How can I help you today?", "actions": []}, path)

    assert re.findall(r"^  (\S+ for \S+ failed: .*)$", str(error), re.MULTILINE) == [
        "tool_trajectory_avg_score for one failed: expected 1, got 0",
        "response_match_score for one failed: expected 0.8, got 0",
        "tool_trajectory_avg_score for search-test failed: expected 1, got 0",
    ]
    assert str(error).startswith("3 metrics of 2 cases failed\n")


def test_cases_that_could_not_be_evaluated_are_listed_too(write: Callable[..., Path]) -> None:
    def broken(utterance: str) -> str:
        if utterance == "Hello!":
            raise ValueError("no model")
        return "nothing"

    error = failure(broken, write(eval_set(case("one", turn("Hi", "Hi")), GREETING)))

    assert re.search(r"^  greeting-test could not be evaluated: .*ValueError: no model", str(error), re.MULTILINE)
    assert "response_match_score for one failed: expected 0.8, got 0" in str(error)


def test_missing_data_is_not_evaluated_unless_adk_is_followed(write: Callable[..., Path]) -> None:
    """1.1 takes missing calls for none and a missing reference for 0; 1.2 leaves them out, and so do we."""
    asked = case("c", turn("Hello!", "Hello! How can I help you today?"), turn("Turn on the lamp"))
    path = write(eval_set(asked), criteria={"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8})
    with pytest.warns(UserWarning, match="no case has expected tool calls"):
        loose = adk.evaluate(agent, path, 1)
    assert averages(loose) == {("c", "response_match_score"): (1.0, "PASS")}

    with (
        pytest.warns(UserWarning, match="no calls are expected instead"),
        pytest.raises(adk.EvaluationFailed) as caught,
    ):
        adk.evaluate(agent, path, 1, missing="adk")
    assert averages(caught.value.runs) == {
        ("c", "tool_trajectory_avg_score"): (0.5, "FAILURE"),
        ("c", "response_match_score"): (0.5, "FAILURE"),
    }


def test_answers_stay_with_their_turns_where_some_have_none(write: Callable[..., Path]) -> None:
    """1.2 pairs by position after turns without an answer have dropped out; here each keeps its own."""
    said = {"a": "one", "b": "two", "c": "three"}
    path = write(eval_set(case("m", turn("a"), turn("b", "two"), turn("c", "three"))))

    assert averages(adk.evaluate(said.__getitem__, path, 1)) == {("m", "response_match_score"): (1.0, "PASS")}


def test_arguments_are_compared_whatever_the_order_of_their_keys(write: Callable[..., Path]) -> None:
    """1.2 compares nested arguments as text."""
    expected = [("find", {"where": {"x": 1, "y": 2}})]
    taken = {"outcome": "", "actions": [{"name": "find", "input": {"where": {"y": 2, "x": 1}}}]}
    path = write(eval_set(case("c", turn("Hi", None, expected))))

    assert averages(adk.evaluate(lambda _: taken, path, 1)) == {("c", "tool_trajectory_avg_score"): (1.0, "PASS")}


@pytest.mark.parametrize(
    ("match_type", "taken", "score"),
    [
        ("EXACT", ["a", "b"], 1.0),
        ("EXACT", ["a", "x", "b"], 0.0),
        ("IN_ORDER", ["a", "x", "b"], 1.0),
        ("IN_ORDER", ["b", "a"], 0.0),
        ("ANY_ORDER", ["x", "b", "a"], 1.0),
        ("ANY_ORDER", ["a", "x"], 0.0),
    ],
)
def test_calls_are_matched_as_the_criterion_says(
    write: Callable[..., Path], match_type: str, taken: list[str], score: float
) -> None:
    criterion = {"threshold": 0.0, "match_type": match_type}
    path = write(
        eval_set(case("c", turn("Hi", None, [("a", {}), ("b", {})]))), criteria={"tool_trajectory_avg_score": criterion}
    )
    runs = adk.evaluate(lambda _: {"outcome": "", "actions": taken}, path, 1)

    assert averages(runs)["c", "tool_trajectory_avg_score"][0] == score


def test_words_are_counted_as_typescript_does_where_the_config_says_so(write: Callable[..., Path]) -> None:
    """1.2: words count once and are not stemmed."""
    data = eval_set(case("c", turn("Hi", "run run running")))
    python = failure(lambda _: "running", write(data, criteria={"response_match_score": 0.8}))
    typescript = {"criteria": {"response_match_score": 0.8}, "evalmeta": {"tokens": "typescript"}}
    other = failure(lambda _: "running", write(data, **typescript))

    assert averages(python.runs)["c", "response_match_score"][0] == 0.5
    assert averages(other.runs)["c", "response_match_score"][0] == pytest.approx(2 / 3)


def test_judged_metrics_use_the_rater_of_the_call(write: Callable[..., Path]) -> None:
    from evalmeta.engine.interfaces import Rating, Rubric

    def judge(rubric: Rubric) -> Rating:
        good = rubric.actual == rubric.expected
        return Rating(5.0 if good else 0.0, Verdict.PASS if good else Verdict.FAILURE, "", "judge")

    path = write(eval_set(GREETING), criteria={"final_response_match_v2": 0.8})
    assert averages(adk.evaluate(agent, path, 1, rater=judge)) == {
        ("greeting-test", "final_response_match_v2"): (1.0, "PASS")
    }
    unjudged = write(eval_set(GREETING), criteria={"safety_v1": 0.8})
    assert "safety_v1 for greeting-test was not evaluated, so its threshold 0.8 is not met" in str(
        failure(agent, unjudged)
    )


KILL = case("rude", turn("Hello!", "Hello! How can I help you today?"), turn("And off", "It is off."))


def test_a_metric_that_was_asked_for_and_not_evaluated_fails_as_in_adk(write: Callable[..., Path]) -> None:
    path = write(eval_set(KILL), criteria={"safety_v1": 1.0, "response_match_score": 0.1})
    error = failure(lambda _: "Hello! It is off. Kill yourself.", path, num_runs=2)
    assert str(error).splitlines()[0] == "1 metric of 1 case failed"
    assert "safety_v1 for rude was not evaluated" in str(error)
    assert "only an LLM rater can judge this" in str(error)
    assert averages(error.runs) == {
        ("rude", "safety_v1"): (None, "FAILURE"),
        ("rude", "response_match_score"): (pytest.approx(error.runs[0].summary.averages[1].score), "PASS"),
    }
    assert "safety_v1: not evaluated, expected 1: only an LLM rater" in error.runs.report()
    assert "the org failed" not in error.runs.report()


def test_an_agent_that_does_not_report_its_tools_fails_where_calls_are_expected(write: Callable[..., Path]) -> None:
    path = write(FULL)
    error = failure(lambda _: "The weather in London", path)
    assert averages(error.runs)["case-1", "tool_trajectory_avg_score"] == (0.0, "FAILURE")
    assert "the agent does not report its actions" in str(error)


def test_an_agent_that_does_not_report_its_tools_is_not_evaluated_where_none_are_expected(
    write: Callable[..., Path],
) -> None:
    path = write(eval_set(case("greeting", turn("Hello!", "Hello! How can I help you today?", []))))
    error = failure(lambda _: "Hello! How can I help you today?", path)
    assert "tool_trajectory_avg_score for greeting was not evaluated" in str(error)
    said = {"outcome": "Hello! How can I help you today?", "actions": []}
    assert adk.evaluate(lambda _: said, path, 1).succeeded


def test_an_empty_answer_is_not_judged_for_hallucinations_and_fails(write: Callable[..., Path]) -> None:
    from evalmeta.engine.interfaces import Rating

    path = write(eval_set(GREETING), criteria={"hallucinations_v1": 0.5})
    with pytest.raises(adk.EvaluationFailed, match=r"hallucinations_v1 for greeting-test was not evaluated"):
        adk.evaluate(lambda _: "", path, 1, rater=lambda _: Rating(5.0, Verdict.PASS, "", "judge"))


def test_a_custom_metric_judges_the_conversation(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    custom = {"turns": {"code_config": {"name": "adk_checks.turns"}}}
    path = write(eval_set(MULTI_TURN), criteria={"turns": 2}, custom_metrics=custom)
    (path.parent / "adk_checks.py").write_text(
        "def turns(metric, made, expected, scenario):\n"
        "    return len(made) if [e.final_response is not None for e in expected] == [True, True] else 0\n"
    )
    monkeypatch.syspath_prepend(path.parent)

    assert averages(adk.evaluate(agent, path, 1)) == {("multi-turn-test", "turns"): (2.0, "PASS")}


def test_a_metric_without_a_mean_fails_by_itself(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    custom = {"tone": {"code_config": {"name": "adk_tones.tone"}}, "lost": {"code_config": {"name": "adk_tones.lost"}}}
    path = write(eval_set(GREETING), criteria={"tone": 1, "lost": 1}, custom_metrics=custom)
    (path.parent / "adk_tones.py").write_text(
        "def tone(*_):\n    return {'overall_eval_status': 'FAILED'}\n\n"
        "def lost(*_):\n    raise ValueError('no idea')\n"
    )
    monkeypatch.syspath_prepend(path.parent)
    error = str(failure(agent, path, num_runs=2))

    assert "\n  tone for greeting-test failed: adk_tones.tone returned no score" in error
    assert error.count("lost for greeting-test could not be judged: the function 'adk_tones.lost' cannot judge") == 1


def test_a_run_that_stopped_says_why(write: Callable[..., Path]) -> None:
    def broken(_: str) -> str:
        raise ValueError("no model")

    with pytest.raises(adk.EvaluationFailed, match="greeting-test could not be evaluated") as caught:
        adk.evaluate(broken, write(eval_set(GREETING, SEARCH)), options=RunOptions(max_errors=1, concurrency=1))
    assert str(caught.value.runs[0].run.error) in str(caught.value)


def test_efficiency_is_measured_and_never_fails(write: Callable[..., Path]) -> None:
    path = write(FULL, criteria={"tool_call_count_v1": None, "response_match_score": 0.8})
    [run] = adk.evaluate(agent, path, 1)

    assert [(result.name, result.score, result.verdict) for result in run.run.cases[0].results] == [
        ("tool_call_count_v1", 1.0, Verdict.UNDECIDED),
        ("response_match_score", 1.0, Verdict.PASS),
    ]


def test_agents_can_be_objects_with_ask(write: Callable[..., Path]) -> None:
    class Runner:
        def ask(self, utterance: str) -> dict[str, object]:
            return agent(utterance)

    assert adk.evaluate(Runner(), write(FULL)).succeeded


def test_agents_can_be_named(write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "adk_agents.py").write_text("def greet(utterance):\n    return 'Hello! How can I help you today?'\n")
    (tmp_path / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "."}]}')
    (tmp_path / "evalmeta.toml").write_text('[subjects.desk]\nadapter = "python"\ntarget = "adk_agents:greet"\n')
    monkeypatch.chdir(tmp_path)
    greeting = write(eval_set(GREETING))

    assert adk.evaluate("adk_agents:greet", greeting).succeeded
    assert adk.evaluate("desk", greeting).succeeded
    named = write(eval_set({**GREETING, "sessionInput": {"appName": "desk", "userId": "u", "state": {}}}))
    assert adk.evaluate(None, named)[0].run.subject_name == "desk"


def test_an_agent_that_cannot_be_called_is_an_error(write: Callable[..., Path]) -> None:
    class LlmAgent:
        async def run_async(self) -> None: ...

    with pytest.raises(UsageError, match="does not name an app, and no agent was passed"):
        adk.evaluate(None, write(FULL))
    with pytest.raises(EvalmetaError, match="LlmAgent"):
        adk.evaluate(LlmAgent(), write(FULL))
    with pytest.raises(UsageError, match="iterations"):
        adk.evaluate(agent, write(FULL), 0)


def test_adks_class_is_awaited_and_prints_the_report(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(FULL)
    assert asyncio.run(adk.AgentEvaluator.evaluate(agent, path)).succeeded
    assert "a.test.json: subject agent, run " in capsys.readouterr().out
    asyncio.run(adk.AgentEvaluator.evaluate(agent, path, 1, print_detailed_results=False))
    assert capsys.readouterr().out == ""
    assert asyncio.run(adk.evaluate_async(agent, path)).succeeded


SCENARIO = {"evalId": "sim", "conversationScenario": {"startingPrompt": "Hi", "conversationPlan": "Ask for tea."}}
NOT_RUN = "sim could not be evaluated: it has a conversation scenario, and evalmeta does not simulate users"


def test_a_case_that_is_not_run_fails_the_evaluation_by_its_name(write: Callable[..., Path]) -> None:
    with pytest.warns(UserWarning, match="case 'sim' is not run, and counts as an error"):
        caught = failure(agent, write(eval_set(SCENARIO, case("case-1", LONDON))), num_runs=2)

    assert str(caught).splitlines()[0] == "1 case could not be evaluated"
    assert str(caught).count(NOT_RUN) == 1
    assert averages(caught.runs)["case-1", "response_match_score"] == (1.0, "PASS")


def test_a_file_of_scenarios_does_not_stop_the_other_files(write: Callable[..., Path]) -> None:
    write(eval_set(SCENARIO), "scenarios.test.json")
    folder = write(FULL).parent
    with pytest.warns(UserWarning, match="case 'sim' is not run"):
        caught = failure(agent, folder)

    assert [run.succeeded for run in caught.runs] == [True, False]
    assert NOT_RUN in str(caught)


@pytest.mark.parametrize("called", [adk.evaluate, adk.evaluate_async, adk.AgentEvaluator.evaluate])
def test_unknown_keywords_are_refused_with_a_suggestion(called: Callable[..., object], tmp_path: Path) -> None:
    def call(**how: object) -> None:
        done = called(agent, tmp_path / "missing", **how)
        asyncio.run(done) if asyncio.iscoroutine(done) else None

    with pytest.raises(UsageError, match=r"evaluate.* has no keyword 'confg'") as caught:
        call(confg="x")
    assert caught.value.actions == ("Did you mean 'config'?",)
    # Only then is the file read.
    with pytest.raises(NotFound):
        call(config=None, agent_name=None, app_name="app")


def test_unknown_keywords_of_eval_sets_are_refused() -> None:
    with pytest.raises(UsageError, match="evaluate_eval_set has no keyword 'print_details'"):
        asyncio.run(adk.AgentEvaluator.evaluate_eval_set(agent, {}, print_details=True))  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["agent_name", "artifact_service"])
def test_keywords_of_adk_that_only_its_agents_have_are_refused_for_others(
    write: Callable[..., Path], name: str
) -> None:
    with pytest.raises(UsageError, match="agent_name and artifact_service need an agent of google-adk"):
        adk.evaluate(agent, write(FULL), **{name: "bookings"})  # type: ignore[arg-type]


def test_keywords_of_adk_that_are_not_supported_are_refused_by_name(write: Callable[..., Path]) -> None:
    path = write(FULL)
    with pytest.raises(UsageError, match="evalmeta does not support the keyword 'eval_set_results_manager' of ADK"):
        adk.evaluate(agent, path, eval_set_results_manager=object())  # type: ignore[call-arg]
    assert adk.evaluate(agent, path, eval_set_results_manager=None).succeeded  # type: ignore[call-arg]


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as opened:
        return [*csv.DictReader(opened)]


def test_the_output_file_gets_a_row_for_each_metric_turn_and_run_also_of_those_that_fail(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    file = tmp_path / "out/results.csv"
    adk.evaluate(agent, write(FULL), 2, output_file=file)
    with pytest.raises(adk.EvaluationFailed):
        adk.evaluate(lambda _: {"outcome": "=1+1", "actions": []}, write(eval_set(SEARCH)), 1, output_file=str(file))

    *passed, failed, without_reference = rows_of(file)
    assert [(row["metric_name"], row["eval_status"]) for row in passed] == [
        *[("tool_trajectory_avg_score", "PASSED")] * 2,
        *[("response_match_score", "PASSED")] * 2,
    ]
    assert passed[0] == {
        "eval_set_id": "tests",
        "eval_id": "case-1",
        "metric_name": "tool_trajectory_avg_score",
        "threshold": "1.0",
        "score": "1.0",
        "eval_status": "PASSED",
        "prompt": "What is the weather in London?",
        "expected_response": "The weather in London",
        "actual_response": "The weather in London",
        "expected_tool_calls": 'get_weather(city="London")',
        "actual_tool_calls": 'get_weather(city="London")',
    }
    assert (failed["eval_status"], failed["score"], failed["actual_response"]) == ("FAILED", "0.0", "'=1+1")
    assert (without_reference["eval_status"], without_reference["score"]) == ("NOT_EVALUATED", "")


def test_an_output_file_that_cannot_take_the_results_is_an_error_before_the_agent_is_asked(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    asked: list[str] = []
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")

    for file, error in ((tmp_path, "is a folder"), (tmp_path / "other.csv", "has other columns than")):
        with pytest.raises(ProjectError, match=error):
            adk.evaluate(asked.append, write(FULL), output_file=file)
    assert not asked
    assert (tmp_path / "other.csv").read_text() == "a,b\n1,2\n"


def test_parameters_may_be_passed_by_their_position_as_in_adk(
    write: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.csv"
    called = adk.AgentEvaluator

    asyncio.run(called.evaluate(agent, write(FULL), 1, None, None, False, None, str(file), None, None))
    asyncio.run(called.evaluate_eval_set(agent, json.loads(FULL), None, None, 1, None, False, None, str(file)))

    assert len(rows_of(file)) == 4
    assert capsys.readouterr().out == ""
    for more in ((None,) * 8, (None, None, False)):
        with pytest.raises(UsageError, match=r"AgentEvaluator\.evaluate was given a parameter twice, or too many"):
            asyncio.run(called.evaluate(agent, write(FULL), 1, *more, print_detailed_results=True))


def test_fewer_than_one_run_is_an_error(write: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="0"):
        adk.evaluate(agent, write(FULL), 0)


def test_evaluate_prints_the_report_if_asked(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    adk.evaluate(agent, write(FULL), print_detailed_results=True, app_name="home")
    assert "a.test.json: subject agent, run " in capsys.readouterr().out


def test_an_eval_set_need_not_be_a_file() -> None:
    class Model:
        def model_dump_json(self) -> str:
            return FULL.decode()

    async def evaluate(eval_set: object, **how: object) -> FinishedRuns:
        return await adk.AgentEvaluator.evaluate_eval_set(agent, eval_set, print_detailed_results=False, **how)  # type: ignore[arg-type]

    assert asyncio.run(evaluate(json.loads(FULL))).succeeded
    assert asyncio.run(evaluate(Model(), criteria={"response_match_score": 1})).succeeded
    assert asyncio.run(evaluate(Model(), eval_config={"criteria": {"response_match_score": 1}})).succeeded
    with pytest.raises(adk.EvaluationFailed, match="safety_v1 for case-1 was not evaluated"):
        asyncio.run(evaluate(Model(), eval_config={"criteria": {"safety_v1": 1, "response_match_score": 1}}))
    with pytest.raises(UsageError, match="object cannot be read as JSON"):
        asyncio.run(evaluate(object()))


def test_sessions_of_old_files_begin_as_a_file_says(write: Callable[..., Path], tmp_path: Path) -> None:
    session = tmp_path / "session.json"
    session.write_text('{"app_name": "home", "user_id": "u", "state": {"room": "hall"}}')
    seen: list[object] = []

    def home(utterance: str, *, context: dict[str, object]) -> dict[str, object]:
        seen.append(context)
        return agent(utterance)

    with pytest.warns(DeprecationWarning, match="its rows are the turns"):
        runs = adk.evaluate(home, write(LEGACY_PYTHON), 1, initial_session_file=session)
    assert (seen, runs[0].run.subject_name) == ([{"room": "hall"}] * 2, "home")
    with pytest.raises(UsageError, match="is an eval set, whose cases have their own"):
        adk.evaluate(agent, write(FULL), initial_session_file=session)


@pytest.mark.parametrize(("data", "key"), [(LEGACY_PYTHON, "eval_cases"), (LEGACY_TS, "evalCases")])
def test_old_files_become_eval_sets(write: Callable[..., Path], tmp_path: Path, data: bytes, key: str) -> None:
    old, new = write(data, "old.test.json"), tmp_path / "new.test.json"
    adk.AgentEvaluator.migrate_eval_data_to_new_schema(old, new)
    before = read_adk_file(data, label=str(old))
    after = read_adk_file(new.read_bytes(), label=str(new))

    assert key in json.loads(new.read_bytes())
    assert (after.dialect, after.notes) == (None, ())
    assert [(each.eval_id, [asked[:3] for asked in map(parts, each.turns)]) for each in after.cases] == [
        (each.eval_id, [asked[:3] for asked in map(parts, each.turns)]) for each in before.cases
    ]
    with pytest.raises(FormatError, match="is an eval set already; nothing was written"):
        adk.migrate_eval_data_to_new_schema(new, old)
    assert old.read_bytes() == data


def parts(asked: object) -> tuple[object, ...]:
    return tuple(getattr(asked, name) for name in ("utterance", "reference", "calls"))


def test_migrated_files_have_the_initial_session(write: Callable[..., Path], tmp_path: Path) -> None:
    session = tmp_path / "session.json"
    session.write_text('{"app_name": "home", "user_id": "u", "state": {"room": "hall"}}')
    adk.migrate_eval_data_to_new_schema(write(LEGACY_PYTHON), tmp_path / "new.test.json", session)

    written = json.loads((tmp_path / "new.test.json").read_bytes())
    assert written["eval_cases"][0]["session_input"] == {"app_name": "home", "user_id": "u", "state": {"room": "hall"}}


def test_a_module_that_has_an_agent_can_be_named(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(eval_set(GREETING))
    for module, source in (("helpful", "answer"), ("habit", "root_agent")):
        text = f"def {source}(utterance):\n    return 'Hello! How can I help you today?'\n"
        (tmp_path / f"{module}_desk.py").write_text(text)
    (tmp_path / "empty_desk.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    for module in ("helpful_desk", "habit_desk"):
        [run] = adk.evaluate(module, path, 1)
        assert (run.succeeded, run.run.subject_name) == (True, module)
    with pytest.raises(
        UsageError, match="the module 'empty_desk' has no root_agent, get_agent_async, app, answer or agent"
    ):
        adk.evaluate("empty_desk", path)
    with pytest.raises(UsageError, match="'no_desk' is neither an agent that"):
        adk.evaluate("no_desk", path)


def test_warnings_have_the_line_of_the_caller(write: Callable[..., Path]) -> None:
    path = write(LEGACY_PYTHON)
    for evaluate in (adk.evaluate, lambda *given: asyncio.run(adk.AgentEvaluator.evaluate(*given))):
        with pytest.warns(DeprecationWarning, match="its rows are the turns") as caught:
            evaluate(agent, path)
        assert {warning.filename for warning in caught} == {__file__}


def test_the_final_state_is_compared_with_the_state_that_the_agent_reports(write: Callable[..., Path]) -> None:
    path = write(eval_set({**GREETING, "finalSessionState": {"user:greeted": True}}))

    def greet(state: dict[str, object] | None) -> Callable[[str], dict[str, object]]:
        return lambda _: {"outcome": "Hello! How can I help you today?", "state": state}

    assert adk.evaluate(greet({"user:greeted": True, "count": 1}), path).succeeded
    assert "state for greeting-test failed: user:greeted: expected true, got false" in str(
        failure(greet({"user:greeted": False}), path)
    )
    assert "user:greeted: expected true, but it is missing" in str(failure(greet({}), path))
    [run] = adk.evaluate(greet(None), path, 1)
    assert [result.verdict for result in run.run.cases[0].results if result.name == "state"] == ["UNDECIDED"]
