"""The recipes of README and docs/ci.md: a case that breaks turns them red, and noise does not."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

ROOT = Path(__file__).parents[2]
CASES = 20
AGENT = """
import random
from pathlib import Path

HERE = Path(__file__)
RANDOM = random.Random(int(HERE.with_name("seed").read_text()))
BROKEN = HERE.with_name("broken").exists()


def answer(utterance):
    is_right = not BROKEN if utterance == "Question 3" else RANDOM.random() < 0.9
    return "It is on its way." if is_right else "I do not know."
"""


def recipe(page: str) -> list[list[str]]:
    """Return the commands of a page's block that writes a baseline and compares with it."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    [block] = (
        block for block in blocks if "$ evalmeta test baseline -o evalmeta-baseline.json" in block and "report" in block
    )
    lines = [line for line in block.splitlines() if line.startswith("$ evalmeta ")]
    return [shlex.split(line.removeprefix("$ evalmeta "), comments=True) for line in lines]


def write(folder: Path) -> None:
    cases = "".join(f"- input: Question {number}\n  contains: on its way\n" for number in range(1, CASES + 1))
    (folder / "tests").mkdir()
    (folder / "tests" / "shop.yaml").write_text(f"subjectName: Shop\ntestCases:\n{cases}")
    (folder / "agent.py").write_text(AGENT)
    (folder / "evalmeta.toml").write_text('[subjects.Shop]\nadapter = "python"\ntarget = "agent:answer"\n')


def code(evalmeta: Program, words: list[str]) -> int:
    # The pages leave out the files, as a project in the current folder has them.
    paths = ["tests"] if words[:2] == ["test", "run"] else []
    return evalmeta(*words, *paths).code


def follow(evalmeta: Program, page: str, seed: int, *, breaks: bool) -> int:
    """Follow a page's recipe in the current folder, and return the exit code of its last command."""
    write(Path.cwd())
    (Path.cwd() / "seed").write_text(f"{seed}")
    *commands, last = recipe(page)
    place = next(place for place, words in enumerate(commands) if words[:2] == ["test", "baseline"])
    evalmeta("run", "tests")
    for words in commands[:place]:
        code(evalmeta, words)
    assert code(evalmeta, commands[place]) == 0
    (Path.cwd() / "seed").write_text(f"{seed + 1_000}")
    if breaks:
        (Path.cwd() / "broken").touch()
    for words in commands[place + 1 :]:
        code(evalmeta, words)
    return code(evalmeta, last)


PAGES = ("README.md", "docs/ci.md")


@pytest.mark.parametrize("page", PAGES)
def test_a_case_that_breaks_turns_a_recipe_red(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow(evalmeta, page, 1, breaks=True) == 100


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES)
def test_noise_leaves_a_recipe_green(
    evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    green = red = 0
    for seed in range(20):
        folder = tmp_path / f"{seed}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        green += follow(evalmeta, page, seed, breaks=False) == 0
        again = tmp_path / f"broken{seed}"
        again.mkdir()
        monkeypatch.chdir(again)
        red += follow(evalmeta, page, seed, breaks=True) == 100
    assert green >= 19
    assert red >= 19
