from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from evalmeta.cli.runs.reports import result_format_option
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]
    Copy = Callable[..., Path]


@click.command()
@result_format_option
def say(result_format: str) -> int:
    click.echo(result_format)
    return 0


def python(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment or None, capture_output=True, text=True, check=True, timeout=120
    ).stdout


@pytest.mark.parametrize("name", ["human", "tap"])
def test_a_built_in_format_is_accepted(name: str) -> None:
    assert CliRunner().invoke(say, ["--result-format", name]).output == f"{name}\n"


def test_a_built_in_format_needs_no_search_of_installed_packages() -> None:
    code = (
        "import sys; from evalmeta.report import render; render('tap', []); print('importlib.metadata' in sys.modules)"
    )
    assert python(code) == "False\n"


def test_a_format_of_a_package_is_accepted(tmp_path: Path) -> None:
    install(tmp_path, "reporters", "wiki = acme:render", "")
    code = "from evalmeta.cli.runs.reports import _ResultFormat as F; print(F().convert('wiki', None, None))"
    assert python(code, PYTHONPATH=str(tmp_path)) == "wiki\n"


def test_an_unknown_format_lists_the_known() -> None:
    done = CliRunner().invoke(say, ["--result-format", "pdf"])
    assert done.exit_code == 2
    assert "'pdf' is not one of 'human', 'json'," in done.output


@pytest.mark.parametrize(("name", "suffix"), [("html", "html"), ("ctrf", "ctrf.json")])
def test_a_file_ends_as_its_format_says(
    evalmeta: Program, copy_samples: Copy, tmp_path: Path, name: str, suffix: str
) -> None:
    copy_samples("failing")
    evalmeta("deploy")
    done = evalmeta("test", "run", "--wait", "--result-format", name, "--output-dir", str(tmp_path / "results"))
    [path] = (tmp_path / "results").iterdir()
    assert path.name == f"test-result-4KB000000000001GAA.{suffix}"
    assert path.read_text(encoding="utf-8") == done.out


def test_names_are_completed() -> None:
    [option] = say.params
    completed = option.type.shell_complete(click.Context(say), option, "ju")
    assert [item.value for item in completed] == ["junit"]
