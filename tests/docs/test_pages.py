from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import evalmeta
from evalmeta.cli.main import cli

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_generated_parts_are_what_the_program_prints_now() -> None:
    command = [sys.executable, ROOT / "docs/generate.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()

    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in readme] == []


def test_every_command_has_help_with_an_example_or_a_promise() -> None:
    def commands(group: click.Group) -> list[click.Command]:
        context = click.Context(group)
        found = [each for name in group.list_commands(context) if (each := group.get_command(context, name))]
        return found + [each for sub in found if isinstance(sub, click.Group) for each in commands(sub)]

    assert [command.name for command in commands(cli) if not command.help] == []


def test_no_option_takes_a_secret() -> None:
    text = (ROOT / "docs/commands.md").read_text()

    assert not re.search(r"--(access-)?(token|password|secret)", text)


def test_public_names_are_sorted_few_and_there() -> None:
    assert sorted(evalmeta.__all__) == evalmeta.__all__
    assert len(evalmeta.__all__) <= 31
    assert all(getattr(evalmeta, name) for name in evalmeta.__all__)


def test_the_error_tree_in_the_docstring_is_whole() -> None:
    from evalmeta import errors  # noqa: PLC0415 - the module itself is looked at

    drawn = set(re.findall(r"[├└─│ ]+(\w+)", errors.__doc__ or ""))

    classes = [
        name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, errors.EvalmetaError)
    ]
    assert len(classes) >= 30
    assert [name for name in classes if name not in drawn | {"EvalmetaError"}] == []
