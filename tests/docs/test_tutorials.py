from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evalmeta.report import FORMATS, Format

TUTORIALS = sorted((Path(__file__).parents[2] / "docs/tutorials").glob("*.md"))
FIRST_CHANGE = (Path(__file__).parents[2] / "docs/tutorials/first-change.md").read_text()


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_no_command_of_a_tutorial_stops_with_an_error(page: Path) -> None:
    assert re.findall(r"^(?:Error|Traceback|Usage).*", page.read_text(), re.MULTILINE) == []


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_ends_with_the_next_step(page: Path) -> None:
    assert re.findall(r"^## (.+)", page.read_text(), re.MULTILINE)[-1] in {"Next steps", "6. Finish"}


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_text_before_a_file_names_it(page: Path) -> None:
    """GitHub does not show the titles of code blocks."""
    files = re.findall(r'([^\n]+(?:\n[^\n]+)*)\n\n```\w+ title="([^"]+)"', page.read_text())

    assert [name for paragraph, name in files if f"`{name}`" not in paragraph] == []


def titled(name: str) -> str:
    [source] = re.findall(rf'^```python title="{re.escape(name)}"\n(.*?)^```$', FIRST_CHANGE, re.DOTALL | re.MULTILINE)
    return str(source)


def load(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, name, "exec"), vars(module))  # noqa: S102 - the page's own
    return module


def test_the_module_of_the_first_change_passes_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("failures_of_the_page", titled("src/evalmeta/report/failures.py"))
    test = load("test_of_the_page", titled("tests/report/test_failures.py"))

    # A checkout in which the page was followed has the format.
    monkeypatch.delitem(FORMATS, "failures", raising=False)
    with pytest.raises(Exception, match="failures"):
        test.test_only_cases_that_did_not_pass_are_listed()
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(FORMATS, "failures", Format(module.__name__, "failures.txt"))
    test.test_only_cases_that_did_not_pass_are_listed()
