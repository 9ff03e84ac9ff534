from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

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
    assert {f"evalmeta/report/templates/run.{end}" for end in ("html.j2", "css", "js")} <= names


def test_a_checkout_finds_its_schemas() -> None:
    assert {path.name for path in schema_dir().iterdir()} == {*(row.xsd for row in TYPES), "package.xsd"}
