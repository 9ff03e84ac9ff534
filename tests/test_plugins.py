from __future__ import annotations

import importlib.metadata
import os
import sys
from subprocess import run
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from evalmeta import plugins
from evalmeta.errors import SettingsError
from evalmeta.model.entry_points import ENTRY_POINTS
from installed import install

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DECLARED = "[evalmeta.scorers]\ncourtesy = courtesy:score\n"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    plugins._found.cache_clear()  # noqa: SLF001 - what is installed changes only in tests
    yield
    plugins._found.cache_clear()  # noqa: SLF001 - likewise


def test_a_package_beside_others_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "courtesy-1.dist-info")
    monkeypatch.syspath_prepend(tmp_path)
    assert plugins.plugin_names("scorers") == ["courtesy"]


def test_a_package_that_is_installed_for_development_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "courtesy.egg-info")
    monkeypatch.syspath_prepend(tmp_path)
    assert plugins.plugin_names("scorers") == ["courtesy"]


def test_a_package_in_a_zip_file_is_found(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("courtesy-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: courtesy\nVersion: 1\n")
        archive.writestr("courtesy-1.dist-info/entry_points.txt", DECLARED)
    # importlib.metadata leaves the file open, so a process of its own reads it.
    program = "from evalmeta.plugins import plugin_names; print(plugin_names('scorers'))"
    places = os.pathsep.join([str(tmp_path / "all.zip"), *filter(None, sys.path)])
    ran = run([sys.executable, "-c", program], env={"PYTHONPATH": places}, capture_output=True, text=True, check=True)
    assert ran.stdout == "['courtesy']\n"


def test_a_package_that_another_finder_knows_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path / "courtesy-1.dist-info")

    class Finder(importlib.metadata.DistributionFinder):
        def find_spec(self, *_: object) -> None:
            """Find no modules."""

        def find_distributions(self, _: object = None) -> Iterator[importlib.metadata.Distribution]:
            yield importlib.metadata.PathDistribution(tmp_path / "courtesy-1.dist-info")

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert plugins.plugin_names("scorers") == ["courtesy"]


def test_without_such_packages_nothing_is_found() -> None:
    assert plugins.plugin_names("scorers") == []


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("mentions = acme:OTHER", "'mentions' of the entry points evalmeta.checks is not a check called 'mentions'"),
        ("mentions = acme:TEXT", "'mentions' of the entry points evalmeta.checks is not a check called 'mentions'"),
        ("contains = acme:CONTAINS", "'contains' of the entry points evalmeta.checks has the name of a check"),
    ],
)
def test_a_check_that_is_not_valid_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str, reason: str
) -> None:
    source = """
from evalmeta.model.checks import CHECKS, Check
OTHER, TEXT, CONTAINS = Check("others", "text", "A text.", "it is so", "a"), "text", CHECKS["contains"]
"""
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    install(tmp_path, "checks", entry, source)
    plugins.all_checks.cache_clear()
    with pytest.raises(SettingsError, match=reason):
        plugins.all_checks()
    plugins.all_checks.cache_clear()


NAMES = [(group, name) for group, points in ENTRY_POINTS.items() for name in points]


@pytest.mark.parametrize(("group", "name"), NAMES)
def test_what_a_wing_adds_can_be_loaded(group: plugins.Group, name: str) -> None:
    assert plugins.load_plugin(group, name)


def package(folder: Path) -> None:
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: courtesy\nVersion: 1\n")
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: courtesy\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(DECLARED)
