"""ADK's models are strict: those here have the keys of google-adk 2.13, and forbid others as its models do."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pydantic
import pytest

from engine.builders import Agent, MemoryJournal, exchange, run
from evalmeta.engine.runner import rescore
from evalmeta.engine.scorers import score
from evalmeta.model.definition import Expectation
from evalmeta.model.evaluation import Case, Evaluation, Turn
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.systems.adk.custom_metrics import adk_invocation, adk_metric, as_adk_has_them

if TYPE_CHECKING:
    from pathlib import Path


ANSWER = GeneratedData("It has shipped.", actions=(Action("find", {"id": 7}),))
SOURCE = '''\
import enum
import threading
from dataclasses import dataclass

class EvalStatus(enum.Enum):
    PASSED = 1
    FAILED = 2
    NOT_EVALUATED = 3
    INFORMATIONAL = 4

@dataclass
class EvaluationResult:
    overall_score: float | None = None
    overall_eval_status: EvalStatus = EvalStatus.NOT_EVALUATED
    per_invocation_results: list = ()

NOTHING = 3

def describe(eval_metric, actual_invocations, expected_invocations, conversation_scenario):
    """Return 0.75 if the arguments are those of ADK."""
    assert eval_metric.metric_name == "own" and eval_metric.threshold is None
    assert eval_metric.criterion["threshold"] == eval_metric.criterion.threshold == 0.5
    assert "function" not in eval_metric.criterion and not hasattr(eval_metric.criterion, "other")
    actual, = actual_invocations
    assert actual.user_content.parts[0].text == "Where is it?" and actual.user_content.role == "user"
    assert actual.final_response.parts[0].text == "It has shipped."
    assert [(use.name, use.args) for use in actual.intermediate_data.tool_uses] == [("find", {"id": 7})]
    expected, = expected_invocations
    assert expected.user_content.parts[0].text == "Where is it?"
    assert expected.final_response.parts[0].text == "Shipped."
    assert [use.name for use in expected.intermediate_data.tool_uses] == ["find", "tell"]
    assert conversation_scenario is None
    return 0.75

async def wait(*_):
    return 0.25

def thread(*_):
    return threading.current_thread() is not threading.main_thread()

def value(metric, *_):
    return metric.criterion["value"]

def result(metric, *_):
    return EvaluationResult(metric.criterion["score"], EvalStatus[metric.criterion["status"]])

def parts(*_):
    return {"per_invocation_results": [{"score": 1.0}, {"score": None}, {"score": 0.5}]}

def conversation(metric, actual, expected, _):
    turns = [(each.user_content.parts[0].text, each.final_response.parts[0].text) for each in actual]
    wanted = [each.final_response and each.final_response.parts[0].text for each in expected]
    assert turns == [("one", "To one"), ("two", "To two")] and wanted == [None, "Two"], (turns, wanted)
    assert [each.intermediate_data for each in expected] == [None, None]
    return 1

def knows_of_calls(metric, actual, expected, _):
    return expected[0].intermediate_data is not None

def fail(*_):
    raise ValueError("no such thing")
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module in the current directory; every test has one with a name of its own."""
    name = f"own_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return name


def judge(
    function: object, reference: str | None = "Shipped.", answer: GeneratedData = ANSWER, **terms: object
) -> TestResult:
    expectation = Expectation("own", reference, "L", terms={"function": function, **terms})

    async def wait() -> TestResult:
        result = score(expectation, exchange(answer))
        return result if isinstance(result, TestResult) else await result

    return asyncio.run(wait())


def test_a_function_receives_the_arguments_of_adks_metrics(module: str) -> None:
    calls = [{"name": "find", "args": {"id": 7}}, {"name": "tell"}]
    result = judge(f"{module}.describe", threshold=0.5, calls=calls)
    assert (result.verdict, result.score, result.threshold) == (Verdict.PASS, 0.75, 0.5), result.explanation
    assert (result.name, result.label) == ("own", "L")
    assert (result.expected, result.actual) == ("Shipped.", "It has shipped.")
    assert result.explanation == f"{module}.describe returned 0.75; the threshold is 0.5"


def test_a_function_can_be_a_coroutine_function(module: str) -> None:
    result = judge(f"{module}.wait", threshold=0.5)
    assert (result.verdict, result.score) == (Verdict.FAILURE, 0.25)


def test_a_blocking_function_runs_in_a_thread(module: str) -> None:
    assert judge(f"{module}.thread").verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("value", "threshold", "verdict", "number"),
    [
        (True, None, Verdict.PASS, 1.0),
        (False, 0.5, Verdict.FAILURE, 0.0),
        (3, None, Verdict.UNDECIDED, 3.0),
        (3, 3, Verdict.PASS, 3.0),
        ({"overall_score": 0.4}, 0.5, Verdict.FAILURE, 0.4),
        ({"overall_score": 0.4, "overall_eval_status": 1}, 0.5, Verdict.PASS, 0.4),
        ({"overall_score": 9, "overall_eval_status": "failed"}, 0.5, Verdict.FAILURE, 9.0),
        ({"overall_eval_status": "FAILED"}, 0.5, Verdict.FAILURE, None),
        ({"overall_eval_status": 3}, 0.5, Verdict.UNDECIDED, None),
    ],
)
def test_numbers_truth_values_and_results_are_read(
    module: str, value: object, threshold: float | None, verdict: Verdict, number: float | None
) -> None:
    result = judge(f"{module}.value", value=value, threshold=threshold)
    assert (result.verdict, result.score) == (verdict, number)


@pytest.mark.parametrize(
    ("number", "status", "verdict"),
    [
        (0.4, "PASSED", Verdict.PASS),
        (0.6, "FAILED", Verdict.FAILURE),
        (0.6, "NOT_EVALUATED", Verdict.PASS),
        (None, "NOT_EVALUATED", Verdict.UNDECIDED),
        (0.4, "INFORMATIONAL", Verdict.UNDECIDED),
        (0.6, "INFORMATIONAL", Verdict.UNDECIDED),
    ],
)
def test_a_status_decides_before_the_threshold_does(
    module: str, number: float | None, status: str, verdict: Verdict
) -> None:
    result = judge(f"{module}.result", score=number, status=status, threshold=0.5)
    assert (result.verdict, result.score) == (verdict, number)


def test_without_a_score_of_all_the_mean_of_the_parts_counts(module: str) -> None:
    assert judge(f"{module}.parts").score == 0.75


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("good", "it returned str. Return a number"),
        (None, "it returned NoneType"),
        (float("nan"), "its score is nan"),
        ({"overall_score": "0.5"}, "its score is '0.5'"),
    ],
)
def test_an_invalid_return_value_is_an_error(module: str, value: object, text: str) -> None:
    result = judge(f"{module}.value", value=value)
    assert result.verdict is Verdict.ERROR
    assert text in result.explanation


def test_a_function_that_raises_is_an_error_with_its_line(module: str) -> None:
    result = judge(f"{module}.fail")
    line = SOURCE[: SOURCE.index("raise")].count("\n") + 1
    assert result.verdict is Verdict.ERROR
    assert result.explanation == (
        f"the function '{module}.fail' cannot judge: {module}.py:{line}: ValueError: no such thing"
    )


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("{}.nothing", "has no 'nothing'. Correct the name"),
        ("{}.NOTHING", "it is int, not a function"),
        ("{}.inner.fn", ".inner' cannot be found"),
        (
            "no_such_package.metrics.fn",
            "the module 'no_such_package' cannot be found. Correct the name, or create it in",
        ),
        ("broken.fn", "the module 'broken' cannot be imported: SyntaxError"),
        ("incomplete.fn", "cannot be imported: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("fn", "Write package.module.function"),
        (3, "Write package.module.function"),
    ],
)
def test_a_function_that_cannot_be_found_is_an_error_that_says_what_to_do(
    tmp_path: Path, module: str, function: object, text: str
) -> None:
    (tmp_path / "broken.py").write_text("def fn(:\n")
    (tmp_path / "incomplete.py").write_text("import no_such_thing\n")
    result = judge(function.format(module) if isinstance(function, str) else function)
    assert result.verdict is Verdict.ERROR
    assert text in result.explanation


@pytest.mark.parametrize(("calls", "verdict"), [([], Verdict.PASS), (None, Verdict.FAILURE)])
def test_no_expected_calls_differ_from_unknown_ones(module: str, calls: object, verdict: Verdict) -> None:
    assert judge(f"{module}.knows_of_calls", calls=calls).verdict is verdict


def test_calls_that_the_agent_does_not_report_are_unknown(module: str) -> None:
    result = judge(f"{module}.describe", answer=GeneratedData("It has shipped."), threshold=0.5)
    assert result.verdict is Verdict.ERROR
    assert result.explanation.endswith("(the agent does not report its actions, so intermediate_data is None)")


def test_a_function_for_conversations_gets_all_turns(module: str) -> None:
    async def answer(utterance: str) -> GeneratedData:
        return GeneratedData(f"To {utterance}")

    turns = [{"utterance": "one"}, {"utterance": "two", "reference": "Two"}]
    own = Expectation("own", terms={"function": f"{module}.conversation", "threshold": 1, "invocations": turns})
    conversation = Evaluation("E", "A", [Case(1, (Turn("one"), Turn("two", (own,))))])
    (asked,) = run(Agent(answer), conversation)
    journal = MemoryJournal()
    asyncio.run(rescore(conversation, lambda _iteration, _number: asked, journal, options=RunOptions()))
    for result in (*asked.results, *journal.results[0].results):
        assert (result.verdict, result.turn) == (Verdict.PASS, 2), result.explanation
    assert len(journal.results[0].results) == 1


def test_invocations_that_are_not_a_list_are_an_error(module: str) -> None:
    assert judge(f"{module}.wait", invocations="one").verdict is Verdict.ERROR


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")


class Part(Strict):
    text: str | None = None


class Content(Strict):
    parts: list[Part] | None = None
    role: str | None = None


class FunctionCall(Strict):
    id: str | None = None
    name: str | None = None
    args: dict[str, Any] | None = None


class IntermediateData(Strict):
    tool_uses: list[FunctionCall] = []
    tool_responses: list[Strict] = []
    intermediate_responses: list[tuple[str, list[Part]]] = []


class Invocation(Strict):
    invocation_id: str = ""
    user_content: Content
    final_response: Content | None = None
    intermediate_data: IntermediateData | None = None


class PerInvocationResult(pydantic.BaseModel):
    actual_invocation: Invocation
    expected_invocation: Invocation | None = None


class Criterion(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    threshold: float


class EvalMetric(Strict):
    metric_name: str
    threshold: float | None = None
    criterion: Criterion | None = None


ACTUAL = adk_invocation(1, "Where is it?", "It has shipped.", [("find", {"id": 7})])
EXPECTED = adk_invocation(1, "Where is it?", None, None)


def test_adks_results_accept_the_invocations() -> None:
    result = PerInvocationResult(actual_invocation=ACTUAL, expected_invocation=EXPECTED)  # type: ignore[arg-type]

    assert result.actual_invocation.intermediate_data == IntermediateData(
        tool_uses=[FunctionCall(name="find", args={"id": 7})]
    )
    assert result.expected_invocation == Invocation(
        invocation_id="1", user_content=Content(parts=[Part(text="Where is it?")], role="user")
    )


@pytest.fixture
def _imported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, model in (("eval_metrics", EvalMetric), ("eval_case", Invocation)):
        module = ModuleType(name)
        setattr(module, model.__name__, model)
        monkeypatch.setitem(sys.modules, f"google.adk.evaluation.{name}", module)


@pytest.mark.usefixtures("_imported")
def test_a_function_that_imports_adk_receives_adks_own_objects() -> None:
    found, [actual], [expected] = as_adk_has_them(
        adk_metric("own", {"threshold": 0.5, "style": "brief"}), [ACTUAL], [EXPECTED]
    )

    assert isinstance(found, EvalMetric)
    assert (found.threshold, found.criterion) == (None, Criterion(threshold=0.5, style="brief"))  # type: ignore[call-arg]
    assert isinstance(actual, Invocation)
    assert isinstance(expected, Invocation)


@pytest.mark.usefixtures("_imported")
def test_a_version_of_adk_with_other_keys_gets_the_mappings() -> None:
    arguments = (adk_metric("own", {}), [ACTUAL], [EXPECTED])

    assert as_adk_has_them(*arguments) == arguments


def test_adk_is_not_imported_for_a_function_that_does_not_import_it() -> None:
    arguments = (adk_metric("own", {"threshold": 0.5}), [ACTUAL], [EXPECTED])

    assert as_adk_has_them(*arguments) == arguments
    assert "google.adk" not in sys.modules
