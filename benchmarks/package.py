"""Resolving and zipping a project against zlib on the same bytes, and the memory that the program needs for it."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

from definitions import make_definition
from evalmeta.package.archive import build_zip, package_entries
from evalmeta.package.project import find_project
from evalmeta.package.selection import resolve
from projects import EVALMETA
from rows import Goal, Result, Row, seconds
from timing import compare, of_process, of_work

IGNORED = "package.xml\n**/drafts/**\n**/jsconfig.json\n**/.eslintrc.json\n**/__tests__/**\n"


def measure(*, rounds: int, files: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "aiEvaluationDefinitions").mkdir()
        (root / ".forceignore").write_text(IGNORED)
        contents = [make_definition(number) for number in range(files)]
        for number, data in enumerate(contents):
            (root / f"aiEvaluationDefinitions/Order_Desk_{number}.aiEvaluationDefinition").write_bytes(data)

        def ours() -> None:
            build_zip(package_entries(resolve(find_project(root))))

        def floor() -> None:
            for data in contents:
                zlib.compress(data)

        result = seconds(compare(lambda: of_work(ours), lambda: of_work(floor), rounds=rounds))
        peak = of_process(EVALMETA, "package", "build", cwd=root).megabytes
        return result._replace(note=f"`evalmeta package build` uses {peak:.0f} MB")


ROWS = (
    Row(
        "package",
        "resolve and zip {files:,} components",
        "zlib on the same bytes",
        measure,
        {"files": 5_000, "rounds": 3},
        {"files": 5, "rounds": 1},
        Goal("at most", 2),
    ),
)
