from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from evalmeta.model.registry import TYPES
from evalmeta.validation.rules import list_rules
from evalmeta.xmlio.structure import schema_dir

ROOT = Path(__file__).parent.parent


def test_a_wheel_holds_schemas_migrations_rule_pages_and_the_marker_of_types(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    [wheel] = tmp_path.glob("*.whl")
    names = set(ZipFile(wheel).namelist())
    assert {f"evalmeta/xsd/{path.name}" for path in (ROOT / "xsd").iterdir()} <= names
    assert {f"evalmeta/validation/pages/{rule.code}.md" for rule in list_rules()} <= names
    assert {"evalmeta/store/migrations/0001.sql", "evalmeta/py.typed"} <= names
    assert "evalmeta/formats/schemas/testspec.schema.json" in names
    assert "evalmeta/api/project_files/sample_agent.txt" in names
    assert {f"evalmeta/report/templates/run.{end}" for end in ("html.j2", "css", "js")} <= names


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--agent", "shop:answer"), ("--dx",)])
def test_an_installed_wheel_starts_a_project_whose_tests_pass(tmp_path: Path, options: tuple[str, ...]) -> None:
    program = _install(tmp_path)
    folder = tmp_path / "new"
    folder.mkdir()
    environment = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        where = {"cwd": folder, "env": environment}
        return subprocess.run([program, *words], **where, check=False, capture_output=True, text=True)

    begun = run("init", *options)
    assert begun.returncode == 0, begun.stderr
    ended = run(*begun.stdout.partition("Next:\n")[2].split()[1:])

    assert ended.returncode == 0, ended.stderr
    assert "3 passed, 0 failed, 0 errors, 0 undecided" in ended.stdout


def _install(folder: Path) -> Path:
    """Install the wheel in an environment of its own, with the dependencies of this one, and return its program."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True, capture_output=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--no-index", "--no-deps", wheel], check=True, capture_output=True)
    [packages] = (folder / "env").glob("lib/*/site-packages")
    # Folders in a .pth file are searched, but their own .pth files, such as that of this checkout, are not read.
    (packages / "dependencies.pth").write_text("\n".join(each for each in sys.path if each.endswith("-packages")))
    return python.with_name("evalmeta")


def test_a_checkout_finds_its_schemas() -> None:
    assert {path.name for path in schema_dir().iterdir()} == {*(row.xsd for row in TYPES), "package.xsd"}
