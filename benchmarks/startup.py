"""Starting the program against starting Python with the libraries it cannot do without."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from definitions import make_definition
from timing import Pair, compare

EVALMETA = str(Path(sys.executable).parent / "evalmeta")


def measure_version() -> tuple[str, Pair]:
    pair = compare(lambda: _run(EVALMETA, "--version"), lambda: _run(sys.executable, "-c", "import click"), rounds=9)
    return "evalmeta --version / import click", pair


def measure_validate() -> tuple[str, Pair]:
    return _measure_validate("ONE_FILE", "Order_Desk_1.aiEvaluationDefinition")


def measure_validate_dx() -> tuple[str, Pair]:
    path = "force-app/main/default/aiEvaluationDefinitions/Order_Desk_1.aiEvaluationDefinition-meta.xml"
    project = '{"packageDirectories": [{"path": "force-app", "default": true}], "sourceApiVersion": "66.0"}'
    return _measure_validate("ONE_FILE of a DX project", path, {"sfdx-project.json": project})


def measure_validate_plain() -> tuple[str, Pair]:
    path = "aiEvaluationDefinitions/Order_Desk_1.aiEvaluationDefinition"
    return _measure_validate("ONE_FILE of a plain project", path)


def _measure_validate(what: str, name: str, others: dict[str, str] | None = None) -> tuple[str, Pair]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make_definition(1))
        for other, text in (others or {}).items():
            (Path(folder) / other).write_text(text)
        floor = (sys.executable, "-c", "import click, lxml.etree")
        pair = compare(lambda: _run(EVALMETA, "validate", str(path)), lambda: _run(*floor), rounds=15)
    return f"evalmeta validate {what} / import click, lxml.etree", pair


def _run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
