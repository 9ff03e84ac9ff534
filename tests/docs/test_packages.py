"""What docs tell authors of packages works as it is printed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import TYPE_CHECKING

import pytest

import evalmeta.plugins
from evalmeta.engine.interfaces import Rubric
from evalmeta.engine.raters import bind_rater
from evalmeta.engine.subjects import bind
from evalmeta.errors import SettingsError
from evalmeta.model.evaluation import Case, Turn
from evalmeta.model.login import ADMIN
from evalmeta.model.settings import PluginRater, PluginSubject
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def installing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, str], None]]:
    """Installs a package whose source is the Python under a heading of a page."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)

    def add(group: str, page: str, heading: str) -> None:
        section = (DOCS / page).read_text().partition(f"\n{heading}\n")[2]
        source = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0]
        entry = re.search(r'^acme = "\w+:(\w+)"$', section, re.MULTILINE)
        install(tmp_path, group, f"acme = acme:{entry[1] if entry else 'make'}", source)
        evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - what is installed does not change otherwise

    yield add
    monkeypatch.undo()
    evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - likewise


def test_the_subject_of_the_page(installing: Callable[[str, str, str], None], tmp_path: Path) -> None:
    installing("subjects", "subjects.md", "## Adapters of packages")
    subject = bind(PluginSubject(adapter="acme", model="small"), root=tmp_path)

    async def answer() -> str:
        session = await subject.open(Case(1, (Turn("Hi"),)))
        return (await session.ask("Hi")).outcome

    assert asyncio.run(answer()) == "small says: Hi"
    with pytest.raises(SettingsError, match="needs a model"):
        bind(PluginSubject(adapter="acme"), root=tmp_path)


def evalmeta_in(folder: Path, *arguments: str) -> CompletedProcess[str]:
    """Run evalmeta in a folder with an installed package."""
    words = [sys.executable, "-m", "evalmeta", *arguments]
    places = {"PYTHONPATH": str(folder), "EVALMETA_HOME": str(folder / "home")}
    return run(words, cwd=folder, env=os.environ | places, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_format_of_the_page(tmp_path: Path) -> None:
    section = (DOCS / "library.md").read_text().partition("\n## Formats of your own\n")[2]
    install(tmp_path, "formats", "quiz = acme:QUIZ", re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0])
    (tmp_path / "agent.py").write_text("def answer(question):\n    return 'It is Paris.'\n")
    tests = tmp_path / "tests"
    tests.mkdir()
    rows = [{"ask": "The capital of France?", "hear": "Paris"}, {"ask": "Of Italy?", "hear": "Rome"}]
    (tests / "capitals.json").write_text(json.dumps({"quiz": rows}))
    (tmp_path / "broken.json").write_text('{"quiz": [{"ask": "Where?"}]}')
    (tmp_path / "other.json").write_text('{"questions": []}')
    program = partial(evalmeta_in, tmp_path)

    assert "1 passed, 1 failed" in program("run", "tests", "--agent", "agent:answer").stdout
    converted = program("convert", "tests/capitals.json", "--to", "testspec", "--subject-name", "Geographer")
    assert "utterance: Of Italy?" in converted.stdout
    assert "Rome" in converted.stdout
    defined = program("convert", "tests/capitals.json", "--to", "definition", "--subject-name", "Geographer")
    assert "<subjectName>Geographer</subjectName>" in defined.stdout
    assert "broken.json cannot be read as quiz: KeyError: 'hear'" in program("validate", "broken.json").stdout
    assert "a quiz of Acme (quiz)" in program("validate", "other.json").stderr


def test_the_subject_of_the_page_about_the_library(installing: Callable[[str, str, str], None], tmp_path: Path) -> None:
    installing("subjects", "library.md", "## Adapters of your own")
    subject = bind(PluginSubject(adapter="acme", model="small"), root=tmp_path)

    async def answer() -> str:
        session = await subject.open(Case(1, (Turn("Hi"),)))
        return (await session.ask("Hi")).outcome

    assert asyncio.run(answer()) == "small says: Hi"
    with pytest.raises(SettingsError, match="the settings of the adapter acme are not valid: model: Field required"):
        bind(PluginSubject(adapter="acme"), root=tmp_path)
    with pytest.raises(SettingsError, match="modle: Extra inputs are not permitted"):
        bind(PluginSubject(adapter="acme", model="small", modle="large"), root=tmp_path)


ASK = """
import asyncio, httpx
from pathlib import Path
from evalmeta import find_project
from evalmeta.org.app import embedded_org

async def ask():
    async with embedded_org(find_project(Path.cwd())) as (app, token):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://org.invalid") as http:
            for headers in ({}, {"authorization": f"Bearer {token}"}):
                print((await http.get("/services/data/acme/users", headers=headers)).text)
            print((await http.get("/services/data/openapi.json")).text)

asyncio.run(ask())
"""


@pytest.mark.slow
def test_the_handlers_of_the_page(tmp_path: Path) -> None:
    section = (DOCS / "library.md").read_text().partition("\n## Requests of your own\n")[2]
    install(tmp_path, "handlers", "acme = acme:HANDLERS", re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0])
    (tmp_path / "evalmeta.toml").write_text("")

    asked = run([sys.executable, "-c", ASK], cwd=tmp_path, capture_output=True, text=True, check=True)

    refused, names, described = map(json.loads, asked.stdout.splitlines())
    assert refused[0]["errorCode"] == "INVALID_SESSION_ID"
    assert names == [ADMIN.name]
    assert described["paths"]["/services/data/acme/users"]["get"]["summary"] == "List the names of the users."


@pytest.mark.slow
def test_the_check_of_the_page(tmp_path: Path) -> None:
    section = (DOCS / "library.md").read_text().partition("\n## Checks of your own\n")[2]
    install(tmp_path, "checks", "mentions = acme:MENTIONS", re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0])
    (tmp_path / "agent.py").write_text("def answer(question):\n    return 'A Refund is on its way.'\n")
    (tmp_path / "q.csv").write_text("input,mentions\nWhere?,refund\n")
    (tmp_path / "spec.yaml").write_text("cases: [q.csv, {input: When?, mentions: [refund, way]}]\n")
    (tmp_path / "typo.yaml").write_text("testCases: [{input: When?, mention: refund}]\n")

    program = partial(evalmeta_in, tmp_path)
    judged = program("run", "spec.yaml", "--agent", "agent:answer", "--report", "report.html")
    # What it expects is a part of the answer, so that no words are marked as different.
    assert '<pre dir="auto">A Refund is on its way.</pre>' in (tmp_path / "report.html").read_text()
    assert 'mentions "way": FAILURE' in judged.stdout
    assert 'the answer does not mention "way"' in judged.stdout
    assert "1 passed, 1 failed" in judged.stdout
    assert "Did you mean 'mentions'?" in program("validate", "typo.yaml").stdout
    schema = json.loads(program("generate", "schema").stdout)
    assert "in upper or lower case" in schema["$defs"]["checks"]["properties"]["mentions"]["description"]
    converted = program("convert", "file", "spec.yaml", "--to", "definition", "--subject-name", "Desk")
    assert "the check 'mentions \"refund\"', for which definitions have no expectation" in converted.stderr


@pytest.mark.slow
def test_the_reporter_of_the_page(tmp_path: Path) -> None:
    section = (DOCS / "library.md").read_text().partition("\n## Reports of your own\n")[2]
    install(tmp_path, "reporters", "wiki = acme:render", re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0])
    (tmp_path / "agent.py").write_text("def answer(question):\n    return 'It is Paris.'\n")
    (tmp_path / "spec.yaml").write_text("cases: [{input: The capital of France?, contains: Paris}]\n")
    options = ("--agent", "agent:answer", "--result-format", "wiki")

    assert (
        evalmeta_in(tmp_path, "run", "spec.yaml", *options).stdout == "* spec.yaml: passed: all judged cases passed\n"
    )
    evalmeta_in(tmp_path, "run", "spec.yaml", *options, "--output-dir", "out")
    [written] = (tmp_path / "out").glob("*.wiki.txt")
    assert written.read_text() == "* spec.yaml: passed: all judged cases passed\n"


def test_the_rater_of_the_page(installing: Callable[[str, str, str], None], tmp_path: Path) -> None:
    installing("raters", "rating.md", "### Other raters")
    rater = bind_rater(PluginRater(adapter="acme", words=2), root=tmp_path)

    async def rate(answer: str) -> float | None:
        return (await rater(Rubric("conciseness", "Hi", answer))).score

    assert asyncio.run(rate("Hello there")) == 5
    assert asyncio.run(rate("Hello to you")) == 0
