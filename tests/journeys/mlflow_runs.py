"""Runs scripts written for MLflow: with evalmeta, by their imports alone, and with the original."""

from __future__ import annotations

import json
import math
import re
import runpy
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from engine.raters.llm.model_server import NONCE_PLACE, judging, ruled, saying, serving
from evalmeta.systems.mlflow import tracing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.raters.llm.model_server import ModelServer

SCRIPTS = Path(__file__).parent / "mlflow_scripts"
_JUDGED = '[score]\nrater = "judge"\n\n[raters.judge]\nadapter = "llm"\nmodel = "judge-1"\nurl = "{url}"\n'


def run_script(
    name: str, folder: Path, *, door: str = "from evalmeta import mlflow", changes: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Run a script with other imports, and with changes to its text, and return its variables."""
    text = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
    for before, after in (changes or {}).items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    changed = re.sub(
        "^from mlflow", "from evalmeta.mlflow", text.replace("import mlflow\n", f"{door}\n"), flags=re.MULTILINE
    )
    assert changed != text
    file = folder / f"{name}.py"
    file.write_text(changed, encoding="utf-8")
    # As in a new process.
    tracing._finished.clear()  # noqa: SLF001
    return runpy.run_path(str(file))


def metrics_of(name: str, folder: Path) -> dict[str, object]:
    """Return the metrics and the values of the rows of a script as plain values."""
    return plain_result(run_script(name, folder)["result"])


def plain_result(result: object) -> dict[str, object]:
    """Return metrics and values of rows as JSON: numbers are floats, and rows have no order in MLflow."""
    rows = result.tables["eval_results"].to_dict("records")  # type: ignore[attr-defined]
    values = [{key: _number(value) for key, value in row.items() if key.endswith("/value")} for row in rows]
    kept = [{key: value for key, value in row.items() if value is not None} for row in values]
    metrics = {name: round(float(value), 9) for name, value in result.metrics.items()}  # type: ignore[attr-defined]
    return {"metrics": metrics, "rows": sorted(json.dumps(row, sort_keys=True) for row in kept)}


def _number(value: object) -> object:
    """Return a number as a float, and a value that is missing as None."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return None if math.isnan(value) else float(value)
    # The table of MLflow leaves out expected values that are lists.
    return None if isinstance(value, list) else value


@contextmanager
def judge_of(folder: Path) -> Iterator[ModelServer]:
    """Serve a judge that says no to answers with the word wrong, which the project in a folder names."""

    def answer(request: bytes) -> bytes:
        body = json.loads(request.partition(b"\r\n\r\n")[2])
        asked = json.loads(body["messages"][-1]["content"])
        if session := asked.get("session"):
            is_right = "wrong" not in json.dumps(session["runs"])
            output = _output(body["messages"][0]["content"], is_right=is_right)
            return saying(json.dumps({"nonce": NONCE_PLACE, "explanation": "That is why.", "output": output}))
        is_right = "wrong" not in json.dumps(asked.get("answer") or asked.get("passages"))
        if '"rating"' in body["messages"][0]["content"]:
            return judging(5 if is_right else 0)
        items = asked.get("guidelines") or asked.get("facts") or ["one"]
        label = "yes" if is_right else "no"
        wants_items = (
            "one for each" in body["messages"][0]["content"] or "each statement" in body["messages"][0]["content"]
        )
        return ruled(label, *([label] * len(items) if wants_items else []))

    with serving(answer) as server:
        (folder / "evalmeta.toml").write_text(_JUDGED.format(url=server.url), encoding="utf-8")
        yield server


def _output(system: str, *, is_right: bool) -> object:
    """Return a score of the type that the message of the system asks for."""
    schema = json.JSONDecoder().raw_decode(system.partition("conform to this JSON Schema:\n")[2])[0]
    output = schema["properties"]["output"]
    if "enum" in output:
        # The first word in the alphabet is the bad one: no, casual.
        return sorted(output["enum"])[-1 if is_right else 0]
    return {"integer": 5 if is_right else 1, "array": ["places"] if is_right else []}[output["type"]]
