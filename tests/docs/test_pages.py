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
TOP = [ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "SECURITY")]
PAGES = [*TOP, *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)")


REFERENCES = [ROOT / f"docs/{name}.md" for name in ("api", "commands", "settings", "subjects", "validation")]
REFERENCES += (ROOT / "docs/commands").iterdir()
REFERENCES += [ROOT / "tests/validation/invalid_samples.txt", *(ROOT / "src/evalmeta/validation/pages").iterdir()]


@pytest.mark.parametrize("pages", [REFERENCES, pytest.param([], marks=pytest.mark.slow)], ids=["references", "all"])
def test_generated_parts_are_what_the_program_prints_now(pages: list[Path]) -> None:
    command = [sys.executable, ROOT / "docs/generate.py", "--check", *pages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    assert [link for link in LINK.findall(without_code(page)) if not leads_somewhere(page, *link)] == []


def leads_somewhere(page: Path, file: str, anchor: str) -> bool:
    target = (page.parent / file).resolve() if file else page
    return target.exists() and (not anchor or anchor[1:] in headings(target))


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as GitHub and the site write them."""
    titles = re.findall(r"^#+ (.+)$", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def test_every_page_is_in_the_list_of_pages_which_the_home_page_links() -> None:
    docs = ROOT / "docs"
    listed = (docs / "index.md").read_text()
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} - {"home.md", "index.md"}

    assert [page for page in pages if f"]({page}" not in listed] == []
    assert "](index.md)" in (docs / "home.md").read_text()


def test_the_readme_leads_to_the_home_page_in_at_most_150_lines() -> None:
    readme = (ROOT / "README.md").read_text()

    assert "(docs/index.md)" in readme
    assert len(readme.splitlines()) <= 150


def test_the_picture_of_the_readme_shows_a_report_and_loads_nothing() -> None:
    picture = (ROOT / "docs/report.svg").read_text()

    assert "FAILED" in picture
    assert set(re.findall(r"https?://[^\s\"<)]+", picture)) <= {"http://www.w3.org/2000/svg"}
    assert "docs/report.svg" in (ROOT / "README.md").read_text()


def test_every_command_has_help_with_an_example_or_a_promise() -> None:
    def commands(group: click.Group) -> list[click.Command]:
        context = click.Context(group)
        found = [each for name in group.list_commands(context) if (each := group.get_command(context, name))]
        return found + [command for sub in found if isinstance(sub, click.Group) for command in commands(sub)]

    assert [command.name for command in commands(cli) if not command.help] == []


def test_no_option_takes_a_secret() -> None:
    text = "".join(page.read_text() for page in (ROOT / "docs/commands").iterdir())

    assert not re.search(r"--(access-)?(token|password|secret)", text)


def test_public_names_are_sorted_few_and_there() -> None:
    assert sorted(evalmeta.__all__) == evalmeta.__all__
    assert len(evalmeta.__all__) <= 30
    assert all(getattr(evalmeta, name) for name in (*evalmeta.__all__, "HistoryMessage", "Parameter", "PromptInput"))


def test_the_error_tree_in_the_docstring_is_whole() -> None:
    from evalmeta import errors

    drawn = set(re.findall(r"[├└─│ ]+(\w+)", errors.__doc__ or ""))

    classes = [
        name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, errors.EvalmetaError)
    ]
    assert len(classes) >= 30
    assert [name for name in classes if name not in drawn | {"EvalmetaError"}] == []
