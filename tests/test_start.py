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
    *("click", "httpx", "httpcore", "jinja2", "jsonpath_ng", "jsonschema", "lxml", "pathspec", "pydantic", "rich"),
    *("sqlite3", "starlette", "xmlschema", "yaml"),
}
STANDARD = {"csv", "email", "http", "importlib.metadata", "statistics", "tomllib", "xml", "zipfile"}
# Asking a question needs these, reading files does not.
WAITING = {"asyncio", "concurrent.futures", "ssl"}
ROOMS = {
    *("evalmeta.client", "evalmeta.formats", "evalmeta.store", "evalmeta.validation", "evalmeta.xmlio.reader"),
    *("evalmeta.rules_rater.decisions", "evalmeta.model.login", "evalmeta.model.settings"),
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


@pytest.mark.slow
def test_what_rates_answers_is_loaded_before_the_first_question(tmp_path: Path) -> None:
    code = ASKED.replace("output_latency_milliseconds", "bot_response_rating").replace("assert finished", "finished")
    assert "evalmeta.rules_rater.decisions" in loaded_by(code, folder=tmp_path)


COMMAND = """
import json, sys
from evalmeta.cli.main import main

try:
    main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print()
print(json.dumps(sorted(sys.modules)))
"""
VALID = """\
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>A</name>
    <subjectName>Desk</subjectName>
    <subjectType>AGENT</subjectType>
    <testCase>
        <number>1</number>
        <inputs><utterance>Where is my order?</utterance></inputs>
        <expectation><name>topic_sequence_match</name><expectedValue>Orders</expectedValue></expectation>
    </testCase>
</AiEvaluationDefinition>
"""


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        ("--help", {"click"}),
        ("--version", {"click"}),
        ("test --help", {"click"}),
        ("test run --help", {"click", *WAITING}),
        ("test results --help", {"click", *WAITING}),
        ("validate A.aiEvaluationDefinition", {"click", "lxml", "evalmeta.validation", "evalmeta.xmlio.reader"}),
    ],
)
def test_a_command_loads_only_the_libraries_that_it_needs(tmp_path: Path, words: str, needed: set[str]) -> None:
    (tmp_path / "package.xml").write_text("<Package/>")
    (tmp_path / "A.aiEvaluationDefinition").write_text(VALID)

    loaded = loaded_by(COMMAND, *words.split(), folder=tmp_path)

    assert loaded & (LIBRARIES | STANDARD | WAITING | ROOMS | {"evalmeta.org", "evalmeta.model.jsonpath"}) <= needed


def test_a_program_that_asks_an_org_does_not_load_the_command_line_of_httpx(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "evalmeta", "org", "list"]
    loaded = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True).stderr
    assert "httpx" in loaded
    assert "pygments" not in loaded
