"""The structure that ARCHITECTURE.md describes."""

from __future__ import annotations

import ast
import re
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
PATHS = sorted({path for path in re.findall(r"`([\w./*-]+)`", PAGE) if "/" in path or path.endswith(".py")})


@pytest.mark.parametrize("path", PATHS)
def test_every_path_on_the_page_exists(path: str) -> None:
    if path.startswith("/"):
        return
    assert any(list(base.glob(path.rstrip("/"))) for base in (ROOT, SOURCE / "evalmeta")), path


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {_name(path): path for path in SOURCE.rglob("*.py")}

    order = TopologicalSorter({name: _imports(path, name, modules) for name, path in modules.items()})

    order.prepare()  # raises CycleError, which names the circle


def test_each_part_of_the_package_is_core_or_a_wing_in_the_contracts() -> None:
    contracts = {
        row["name"]: row
        for row in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    }
    core_imports_none = contracts["The core imports no wing; it loads them by their names (model/entry_points.py)"]
    wings = set(contracts["A wing imports no other"]["modules"])
    thin = {"evalmeta.__main__", "evalmeta.adk", "evalmeta.ballerina", "evalmeta.databricks", "evalmeta.mlflow"}

    parts = {f"evalmeta.{name}" for name in _modules_in(SOURCE / "evalmeta")}
    systems = {f"evalmeta.systems.{name}" for name in _modules_in(SOURCE / "evalmeta" / "systems")}

    assert parts - thin == {*core_imports_none["source_modules"], *core_imports_none["forbidden_modules"]}
    assert wings == {*core_imports_none["forbidden_modules"], *systems} - {"evalmeta.systems"}


def _modules_in(folder: Path) -> set[str]:
    names = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    return names - {"__init__"}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _imports(file: Path, name: str, modules: dict[str, Path]) -> set[str]:
    """Return the modules and packages that a module imports, also inside functions and for type checkers."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {
                full if (full := f"{node.module}.{alias.name}") in modules else node.module for alias in node.names
            }
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return (names & modules.keys()) - {name}
