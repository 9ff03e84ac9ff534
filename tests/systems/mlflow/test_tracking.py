"""What a script tells MLflow's tracking server: metadata of its cases, or a warning."""

from __future__ import annotations

import sys
import warnings
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from evalmeta import mlflow
from evalmeta.mlflow.genai.scorers import scorer
from evalmeta.systems.mlflow.tracking import new_notices, run_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS = [{"inputs": {"question": "open?"}, "outputs": "Yes."}]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with new_notices():
        yield
    mlflow.set_experiment()
    mlflow.set_active_model()


@scorer
def passes(outputs: object) -> bool:
    return bool(outputs)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: mlflow.set_tracking_uri("databricks"), "mlflow.set_tracking_uri"),
        (lambda: mlflow.set_registry_uri("databricks-uc"), "mlflow.set_registry_uri"),
        (mlflow.login, "mlflow.login"),
        (lambda: mlflow.log_artifact("report.html"), "logging artifacts"),
        (lambda: mlflow.log_dict({}, "config.json"), "logging artifacts"),
        (mlflow.autolog, "mlflow.autolog"),
        (mlflow.openai.autolog, "mlflow.autolog"),
    ],
)
def test_what_has_no_effect_is_one_warning_however_often_it_is_called(call: Callable[[], object], what: str) -> None:
    def call_twice() -> None:
        call()
        call()

    with pytest.warns(UserWarning, match="has no effect in evalmeta") as warned:
        call_twice()
    assert [str(warning.message).partition(" has no effect")[0] for warning in warned] == [what]


def test_there_is_no_tracking_server_to_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlflow.set_tracking_uri("databricks")
    assert mlflow.get_tracking_uri() == ""


def test_autologging_is_left_to_an_installed_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    installed, flavor = ModuleType("mlflow"), ModuleType("mlflow.openai")
    installed.autolog = lambda **named: called.append(("mlflow", named))  # type: ignore[attr-defined]
    flavor.autolog = lambda **named: called.append(("openai", named))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", installed)
    monkeypatch.setitem(sys.modules, "mlflow.openai", flavor)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mlflow.autolog(silent=True)
        mlflow.openai.autolog(disable=True)
    assert called == [("mlflow", {"silent": True}), ("openai", {"disable": True})]


def test_an_experiment_names_the_evaluations_that_follow() -> None:
    made = mlflow.set_experiment("/Users/ada/orders")
    assert mlflow.get_experiment_by_name("/Users/ada/orders") is made
    assert mlflow.get_experiment_by_name("other") is None
    assert run_name() == "orders"


def test_what_a_run_and_its_model_say_is_metadata_of_the_cases_until_the_run_ends() -> None:
    mlflow.set_active_model(name="desk-7")
    with mlflow.start_run(run_name="nightly", tags={"team": "shop"}) as run:
        mlflow.set_tags({"build": 7})
        assert mlflow.log_param("temperature", 0.5) == 0.5
        with pytest.warns(UserWarning, match=r"mlflow.log_metric has no effect"):
            mlflow.log_metrics({"accuracy": 1})
        inside = mlflow.genai.evaluate(ROWS, [passes]).run.run.cases[0]
    after = mlflow.genai.evaluate(ROWS, [passes], model_id="desk-8").run.run.cases[0]

    assert mlflow.active_run() is None
    assert run.data.metrics == {"accuracy": 1.0, "passes/mean": 1.0}
    assert dict(inside.metadata) == {
        "model_id": "desk-7",
        "run_name": "nightly",
        "param.temperature": "0.5",
        "tag.team": "shop",
        "tag.build": "7",
    }
    assert dict(after.metadata) == {"model_id": "desk-8"}


def test_the_metadata_that_a_script_logs_is_cut_to_what_cases_can_have() -> None:
    with mlflow.start_run():
        mlflow.log_params({f"p{number}": "x" * 1_000 for number in range(500)})
        case = mlflow.genai.evaluate(ROWS, [passes], model_id="desk").run.run.cases[0]
    assert case.error is None
    assert {len(str(text)) for key, text in case.metadata.items() if key != "model_id"} == {100}
    assert list(case.metadata)[:2] == ["model_id", "param.p0"]
