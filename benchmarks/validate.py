"""Validating definitions against parsing and schema-validating the same bytes with lxml, on one core and on all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from lxml import etree

from definitions import make_definition
from evalmeta.api.files import validate
from evalmeta.xmlio.structure import schema_dir
from rows import Goal, Result, Row, seconds
from timing import compare, of_work


def measure_one_core(*, rounds: int, files: int) -> Result:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return measure(rounds=rounds, files=files)
    finally:
        os.sched_setaffinity(0, cores)


def measure(*, rounds: int, files: int) -> Result:
    schema = etree.XMLSchema(etree.parse(schema_dir() / "AiEvaluationDefinition.xsd"))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"Order_Desk_{number}.aiEvaluationDefinition" for number in range(files)]
        for number, path in enumerate(paths):
            path.write_bytes(make_definition(number))

        def ours() -> None:
            assert validate(paths).problems == ()

        def floor() -> None:
            for path in paths:
                assert schema.validate(etree.fromstring(path.read_bytes()))

        return seconds(compare(lambda: of_work(ours), lambda: of_work(floor), rounds=rounds))


SIZES = {"files": 5_000, "rounds": 3}
TINY = {"files": 5, "rounds": 1}
ROWS = (
    Row(
        "validate-many-one-core",
        "validate {files:,} files of 10 cases on one core",
        "lxml: parsing, XSD",
        measure_one_core,
        SIZES,
        TINY,
        Goal("at most", 2),
    ),
    Row("validate-many", "the same on all cores", "lxml on one core", measure, SIZES, TINY, Goal("at most", 2)),
)
