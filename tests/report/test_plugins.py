from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import report_runs as make
from evalmeta import plugins
from evalmeta.errors import SettingsError
from evalmeta.report import file_name, format_names, render
from installed import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def wiki(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Installs a package that adds the format `wiki` by its function `render`."""

    def add(source: str) -> None:
        install(tmp_path, "reporters", "wiki = acme:render", source)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "acme", raising=False)
        plugins._found.cache_clear()  # noqa: SLF001 - what is installed changes only in tests

    yield add
    plugins._found.cache_clear()  # noqa: SLF001 - what is installed changes only in tests


def test_a_package_adds_a_format(wiki: Callable[[str], None]) -> None:
    wiki("def render(reports): return f'{len(reports)} runs'\nrender.suffix = 'wiki.txt'\n")
    assert render("wiki", [make.mixed()]) == "1 runs"
    assert file_name("wiki", "4KB1") == "test-result-4KB1.wiki.txt"
    assert format_names()[-1] == "wiki"


def test_a_package_may_return_its_text_in_pieces(wiki: Callable[[str], None]) -> None:
    wiki("def render(reports):\n  for report in reports:\n    yield report.run.definition + '\\n'\n")
    assert render("wiki", [make.mixed(), make.mixed()]) == "Returns_Desk\nReturns_Desk\n"


def test_without_a_suffix_files_are_text(wiki: Callable[[str], None]) -> None:
    wiki("def render(reports): return ''\n")
    assert file_name("wiki", "4KB1") == "test-result-4KB1.txt"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def render(reports): raise OSError('the disk is full')", "failed: OSError: the disk is full"),
        ("def render(reports): return b''", "returned bytes instead of str"),
        ("def render(reports): yield 'a'; yield 1", "returned int instead of str"),
        ("def render(reports): yield 'a'; raise OSError('no')", "failed: OSError: no"),
        ("render = 3", "cannot be called"),
        ("def render(reports): return ''\nrender.suffix = '../x'", "has an invalid file suffix: '../x'"),
        ("def render(reports): return ''\nrender.suffix = 3", "has an invalid file suffix: 3"),
    ],
)
def test_a_broken_package_is_named(wiki: Callable[[str], None], source: str, fault: str) -> None:
    wiki(source)
    with pytest.raises(SettingsError) as caught:
        render("wiki", [])
    assert str(caught.value) == f"the reporter 'wiki' {fault}"
    assert "render(reports) -> str" in caught.value.actions[0]
