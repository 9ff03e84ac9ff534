"""The pages of tasks, carried out: their files are written, and their commands are run in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from evalmeta.model.evaluation import today

DOCS = Path(__file__).parents[2] / "docs"
# An agent whose answer to one question is wrong every other time; the files of pages say what it is called.
AGENT = """
calls = 0


def answer(question):
    global calls
    calls += question.startswith("When")
    if question.startswith("When") and calls % 2:
        return "It is on its way."
    return "It is on its way, and arrives on Friday."
"""
BROKEN = "def answer(question):\n    return 'I do not know.'\n"


def page(name: str, folder: Path) -> str:
    """Write the files of a page and the agent into a folder; return its text."""
    text = (DOCS / name).read_text()
    for file, content in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, re.DOTALL | re.MULTILINE):
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(content)
    (folder / "agent.py").write_text(AGENT)
    (folder / "evalmeta.toml").touch()
    return text


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_repeat_and_compare_in_ci(tmp_path: Path) -> None:
    text = page("repeat.md", tmp_path)
    save, compare, sessions = re.findall(r"^```bash\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)

    assert "flaky: case 2" in run(tmp_path, save).stdout
    same = run(tmp_path, compare)
    assert (same.returncode, "0 broken, 0 suspect" in same.stdout) == (0, True), same.stdout
    assert (tmp_path / "results/summary.md").exists()
    assert (tmp_path / "results/junit.xml").exists()
    assert "test_orders.py::test_order_status: no change" in run(tmp_path, sessions).stdout

    (tmp_path / "agent.py").write_text(BROKEN)
    worse = run(tmp_path, compare)
    assert (worse.returncode, "worse" in worse.stdout.lower()) == (100, True), worse.stdout


@pytest.mark.slow
def test_find_flaky_cases(tmp_path: Path) -> None:
    text = page("flaky.md", tmp_path)
    later = (tmp_path / "tests/later.yaml").read_text()
    (tmp_path / "tests/later.yaml").unlink()
    soon = today() + timedelta(days=30)
    (tmp_path / "later.yaml").write_text(re.sub(r"until: \S+,", f"until: {soon},", later))

    blocks = re.findall(r"^```console\n\$ (.*?)\n\.\.\.\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 3
    for command, printed in blocks:
        shown = run(tmp_path, command)
        assert [line for line in printed.splitlines() if line not in shown.stdout] == [], shown.stdout + shown.stderr
    quarantined = run(tmp_path, "evalmeta run later.yaml")
    assert "quarantine" in quarantined.stdout, quarantined.stdout
    assert "The agent does not know all carriers yet" in quarantined.stdout


@pytest.mark.slow
def test_my_csv(tmp_path: Path) -> None:
    [(command, printed)] = re.findall(
        r"^```console\n\$ (.*?)\n\.\.\.\n(.*?)^```$", page("csv.md", tmp_path), re.DOTALL | re.MULTILINE
    )
    shown = run(tmp_path, command)
    assert shown.returncode == 100
    assert [line for line in printed.splitlines() if line not in shown.stdout] == [], shown.stdout + shown.stderr
    tagged = run(tmp_path, "evalmeta run tests --tag shipping")
    assert "2 cases: 2 passed" in tagged.stdout, tagged.stdout + tagged.stderr


def test_the_pages_fit_on_a_screen_and_have_rows() -> None:
    home = (DOCS / "index.md").read_text()
    for name in ("repeat.md", "flaky.md", "csv.md"):
        assert f"]({name})" in home
        assert len((DOCS / name).read_text().splitlines()) <= 80
