"""ADK's models are strict: these have the keys of google-adk 2.13, and forbid others as its models do."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pydantic
import pytest

from evalmeta.engine.scorers.adk_objects import as_adk_has_them, invocation, metric


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


ACTUAL = invocation(1, "Where is it?", "It has shipped.", [("find", {"id": 7})])
EXPECTED = invocation(1, "Where is it?", None, None)


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
        metric("own", {"threshold": 0.5, "style": "brief"}), [ACTUAL], [EXPECTED]
    )

    assert isinstance(found, EvalMetric)
    assert (found.threshold, found.criterion) == (None, Criterion(threshold=0.5, style="brief"))  # type: ignore[call-arg]
    assert isinstance(actual, Invocation)
    assert isinstance(expected, Invocation)


@pytest.mark.usefixtures("_imported")
def test_a_version_of_adk_with_other_keys_gets_the_mappings() -> None:
    arguments = (metric("own", {}), [ACTUAL], [EXPECTED])

    assert as_adk_has_them(*arguments) == arguments


def test_adk_is_not_imported_for_a_function_that_does_not_import_it() -> None:
    arguments = (metric("own", {"threshold": 0.5}), [ACTUAL], [EXPECTED])

    assert as_adk_has_them(*arguments) == arguments
    assert "google.adk" not in sys.modules
