"""Resolving and zipping a project against zlib on the same bytes."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

from definitions import make_definition
from timing import Pair, compare

from evalmeta.package.archive import build_zip
from evalmeta.package.convert import entry_name
from evalmeta.package.project import find_project
from evalmeta.package.resolver import resolve

FILES = 5_000


def measure() -> tuple[str, Pair]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "aiEvaluationDefinitions").mkdir()
        contents = [make_definition(number) for number in range(FILES)]
        for number, data in enumerate(contents):
            (root / f"aiEvaluationDefinitions/Order_Desk_{number}.aiEvaluationDefinition").write_bytes(data)

        def ours() -> None:
            components = resolve(find_project(root)).components
            build_zip((entry_name(each), each.path) for each in components)

        def floor() -> None:
            for data in contents:
                zlib.compress(data)

        return f"resolve + zip {FILES:,} components / zlib", compare(ours, floor, rounds=3)
