"""The structure that ARCHITECTURE.md describes."""

from __future__ import annotations

import ast
import re
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
