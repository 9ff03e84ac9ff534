"""Scripts have the same metrics and values in MLflow itself, and evalmeta runs MLflow's own objects."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import cast

import pytest

from engine.raters.llm.model_server import saying, serving
from journeys.mlflow_runs import SCRIPTS, metrics_of
from systems.mlflow.test_evaluation import INSTEAD_OF_ENSEMBLES, INSTEAD_OF_REGISTRY, JUDGES_ANSWERS, JUDGES_SESSIONS

pytestmark = pytest.mark.slow

ORIGINAL = Path(__file__).parents[2] / ".venv/mlflow"
COMPARED = ("recorded_traces", "custom_scorers", "scorer_classes", "structured_values", "notebook", "quality_gate")


def original(folder: Path, *words: str) -> object:
    """Run a Python file in the environment of MLflow and return what it prints last."""
    assert (ORIGINAL / "ready").exists(), "Install MLflow: make .venv/mlflow/ready"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["MLFLOW_TRACKING_URI"] = f"sqlite:///{folder / 'mlflow.db'}"
    command = [str(ORIGINAL / "bin/python"), *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found: object = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.filterwarnings("ignore:cases or results that were not judged")
def test_metrics_and_values_are_those_of_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [str(SCRIPTS / f"{name}.py") for name in COMPARED]
    expected = original(tmp_path, str(SCRIPTS / "original_results.py"), *files)
    ours = {file: metrics_of(name, tmp_path) for name, file in zip(COMPARED, files, strict=True)}

    assert ours == expected


def test_agents_and_scorers_that_are_objects_of_mlflow_run(tmp_path: Path) -> None:
    found = cast("dict[str, object]", original(tmp_path, str(SCRIPTS / "original_objects.py")))

    answered = ["About orders", [["get_order", {"id": 7}, {"state": "sent"}]]]
    assert found["Chat"] == answered
    assert found["Responses"] == answered
    assert found["scorers"] == {"short/mean": 0.5, "regex_match/mean": 0.5}
    assert found["rationale"] == "counted"
    assert found["delegated"] is True


def test_the_names_of_scorers_are_those_of_mlflow(tmp_path: Path) -> None:
    program = "import json; from mlflow.genai import scorers; print(json.dumps(sorted(scorers.__all__)))"
    known = {*JUDGES_ANSWERS, *JUDGES_SESSIONS, *INSTEAD_OF_ENSEMBLES, *INSTEAD_OF_REGISTRY}
    assert original(tmp_path, "-c", program) == sorted({*known, "Scorer", "scorer", "get_all_scorers"})


def test_calls_that_mlflow_records_in_the_agent_are_its_actions(tmp_path: Path) -> None:
    function = {"name": "get_order", "arguments": '{"id": 7}'}

    def answer(request: bytes) -> bytes:
        messages = json.loads(request.partition(b"\r\n\r\n")[2])["messages"]
        if messages[-1]["content"] == "Where is order 7?":
            return saying(None, tool_calls=[{"id": "c1", "type": "function", "function": function}])
        return saying("It is sent." if messages[-1]["role"] == "tool" else "Hello to you.")

    with serving(answer) as server:
        found = cast("dict[str, object]", original(tmp_path, str(SCRIPTS / "original_autolog.py"), server.url))

    called = ["get_order", {"id": 7}, {"state": "sent"}]
    assert found["answers"] == {"It is sent.": [[called], 1400], "Hello to you.": [[], 700]}
    assert found["metrics"] == {"models/mean": 1.5}
    assert found["actions of a model"] == [called]


def test_sessions_of_mlflow_are_judged_as_mlflow_does(tmp_path: Path) -> None:
    ours, of_frame, theirs = cast("list[object]", original(tmp_path, str(SCRIPTS / "original_sessions.py")))
    assert ours == of_frame == theirs == {"turns/mean": 1.5, "newest/mean": 0.5}
