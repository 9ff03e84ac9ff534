"""What is loaded when the first question is asked, and by each command: heavy libraries only where they are used."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# asyncio itself loads ssl and socket.
LIBRARIES = {
    *("click", "httpx", "httpcore", "jinja2", "jsonpath_ng", "lxml", "pathspec", "pydantic", "rich", "sqlite3"),
    *("starlette", "xmlschema", "yaml"),
}
STANDARD = {"csv", "email", "http", "importlib.metadata", "statistics", "tomllib", "xml", "zipfile"}
ROOMS = {
    *("evalmeta.client", "evalmeta.formats", "evalmeta.store", "evalmeta.validation", "evalmeta.xmlio"),
    *("evalmeta.engine.raters.rules.decisions", "evalmeta.model.settings"),
}
ASKED = """
import json, sys
from evalmeta import Expectation, evaluate
from evalmeta.model.evaluation import Case, Turn

def answer(utterance):
    loaded.append(sorted(sys.modules))
    return {"outcome": "It is on its way.", "topic": "Orders"}

loaded = []
expectations = (Expectation("topic_sequence_match", "Orders"), Expectation("output_latency_milliseconds", "5000"))
finished = evaluate([Case(1, (Turn("Where is my order?", expectations),))], answer)
assert finished.succeeded
print(json.dumps(loaded[0]))
"""


def loaded_by(code: str, *arguments: str, folder: Path) -> set[str]:
    """Run Python code that writes names of modules as JSON at the end of its output; return them."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", sorted(LIBRARIES | STANDARD | ROOMS))
def test_the_first_question_to_a_function_loads_only_what_asking_needs(first_question: set[str], module: str) -> None:
    assert module not in first_question


@pytest.fixture(scope="module")
def first_question(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules that are loaded when cases without a project ask a function their first question."""
    return loaded_by(ASKED, folder=tmp_path_factory.mktemp("elsewhere"))
