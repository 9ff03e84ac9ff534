"""Projects as documentation teaches them, of the Python API and of other tools, run and turn red when they should."""

from __future__ import annotations

import importlib
import runpy
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from cli.conftest import evalmeta  # noqa: F401 - a fixture
from journeys.mlflow_runs import judge_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome

PROJECTS = Path(__file__).parent / "projects"


class Project(NamedTuple):
    """A folder of `projects`: what people type in it, and a change after which the last line must fail."""

    name: str
    lines: tuple[str, ...]
    file: str
    before: str
    after: str
    red: str


def converted(name: str, source: str, file: str, before: str, after: str, red: str) -> Project:
    """A file of another tool, run as it is, and as the test spec that it becomes."""
    lines = (
        f"evalmeta run {source} --agent desk:answer",
        f"evalmeta convert {source} --to testspec -o tests/converted.yaml",
        "evalmeta run tests/converted.yaml --agent desk:answer",
    )
    return Project(name, lines, file, before, after, red)


JOURNEYS = (
    Project("python_checks", ("python shop.py",), "shop.py", '"id": "10045"}}]}', '"id": "9"}}]}', "looked for before"),
    Project("python_conversation", ("python desk.py",), "desk.py", "self.order = word", "pass", "Which order, Ann?"),
    Project("python_judge", ("python relevance.py",), "relevance.py", "It is on its way", "This is wrong", "relevant"),
    Project(
        "python_comparison",
        ("python compare.py",),
        "compare.py",
        '"It is on its way.", "topic": "Orders"',
        '"It is on its way.", "topic": "Returns"',
        "WORSE",
    ),
    Project(
        "python_journal",
        ("python nightly.py",),
        "nightly.py",
        '"contains": f"order',
        '"contains": f"the order',
        "the order 0",
    ),
    Project(
        "python_matrix",
        ("evalmeta run tests --matrix subject=desk,new_desk",),
        "desk.py",
        "Your order is on its way",
        "Your order is lost",
        "new_desk",
    ),
    converted("promptfoo", "promptfooconfig.yaml", "desk.py", "We open at 9", "We open at 8", "opening hours"),
    converted("pydantic_evals", "capitals.yaml", "desk.py", '"order_id": "10045"', '"order_id": "9"', "order_id"),
    converted("deepeval", "goldens.json", "desk.py", '"id": 10045', '"id": 9', "find_order"),
    converted("inspect", "samples.jsonl", "desk.py", "SameSite", "Secure", "samesite"),
    converted("openai_evals", "samples.jsonl", "desk.py", "It is four", "It is five", "four"),
    converted("langsmith", "examples.jsonl", "desk.py", "At 9:00.", "At 8:00.", "9:00"),
)


@pytest.fixture
def typed(
    evalmeta: Callable[..., Outcome],  # noqa: F811 - the fixture
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], tuple[bool, str]]:
    """Runs a line in the current folder, and says whether it succeeded and what it printed."""

    def run(line: str) -> tuple[bool, str]:
        program, *words = line.split()
        # The module of another copy of a project must not be found.
        monkeypatch.delitem(sys.modules, "desk", raising=False)
        importlib.invalidate_caches()
        if program == "evalmeta":
            outcome = evalmeta(*words)
            return outcome.code == 0, outcome.out + outcome.err
        try:
            runpy.run_path(words[0], run_name="__main__")
        except AssertionError as error:
            return False, str(error)
        return True, capsys.readouterr().out

    return run


@pytest.mark.parametrize("project", JOURNEYS, ids=lambda project: project.name)
def test_a_project_passes_and_what_is_broken_in_it_turns_red(
    project: Project, typed: Callable[[str], tuple[bool, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_broken in (False, True):
        folder = shutil.copytree(PROJECTS / project.name, tmp_path / f"{project.name}-{is_broken}")
        file = folder / project.file
        assert file.read_text().count(project.before) == 1
        if is_broken:
            file.write_text(file.read_text().replace(project.before, project.after))
        monkeypatch.chdir(folder)
        with judge_of(folder) if project.name == "python_judge" else nullcontext():
            outcomes = [typed(line) for line in project.lines]
        assert outcomes[0][0] is not is_broken, outcomes[0][1]
        assert outcomes[-1][0] is not is_broken, outcomes[-1][1]
        assert not is_broken or project.red in outcomes[-1][1], outcomes[-1][1]
