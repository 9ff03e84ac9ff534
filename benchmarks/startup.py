"""Starting the program against starting Python with the libraries that it needs."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from definitions import make_definition
from projects import EVALMETA
from rows import Goal, Result, Row, seconds
from timing import compare, of_process

DX = "force-app/main/default/aiEvaluationDefinitions/Order_Desk_1.aiEvaluationDefinition-meta.xml"
DX_PROJECT = '{"packageDirectories": [{"path": "force-app", "default": true}], "sourceApiVersion": "66.0"}'
PLAIN = "aiEvaluationDefinitions/Order_Desk_1.aiEvaluationDefinition"


def measure_version(*, rounds: int) -> Result:
    floor = (sys.executable, "-c", "import click")
    return seconds(compare(lambda: of_process(EVALMETA, "--version"), lambda: of_process(*floor), rounds=rounds))


def measure_validate(*, rounds: int, name: str, project: str = "") -> Result:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make_definition(1))
        if project:
            (Path(folder) / "sfdx-project.json").write_text(project)
        floor = (sys.executable, "-c", "import click, lxml.etree")
        return seconds(
            compare(lambda: of_process(EVALMETA, "validate", str(path)), lambda: of_process(*floor), rounds=rounds)
        )


LXML = "Python importing click and lxml"
ONCE = {"rounds": 1}
TWICE = Goal("at most", 2)
ROWS = (
    Row("start-version", "`evalmeta --version`", "Python importing click", measure_version, {"rounds": 9}, ONCE, TWICE),
    Row(
        "start-validate",
        "`evalmeta validate ONE_FILE`",
        LXML,
        measure_validate,
        {"rounds": 15, "name": "Order_Desk_1.aiEvaluationDefinition"},
        ONCE,
        TWICE,
    ),
    Row(
        "start-validate-dx",
        "the same in a DX project",
        LXML,
        measure_validate,
        {"rounds": 15, "name": DX, "project": DX_PROJECT},
        ONCE,
        TWICE,
    ),
    Row(
        "start-validate-plain",
        "the same in a plain project",
        LXML,
        measure_validate,
        {"rounds": 15, "name": PLAIN},
        ONCE,
        TWICE,
    ),
)
