"""Validating definitions against parsing and schema-validating the same bytes with lxml, on one core and on all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from lxml import etree

from definitions import CASES, make_definition
from evalmeta.api.files import validate
from evalmeta.xmlio.structure import schema_dir
from timing import Pair, compare

FILES = 5_000


def measure_one_core() -> tuple[str, Pair]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return f"validate {FILES:,} files x {CASES} cases, one core / lxml parse + XSD", _measure()
    finally:
        os.sched_setaffinity(0, cores)


def measure_all_cores() -> tuple[str, Pair]:
    return f"the same on {len(os.sched_getaffinity(0))} cores / lxml on one", _measure()


def _measure() -> Pair:
    schema = etree.XMLSchema(etree.parse(schema_dir() / "AiEvaluationDefinition.xsd"))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"Order_Desk_{number}.aiEvaluationDefinition" for number in range(FILES)]
        for number, path in enumerate(files):
            path.write_bytes(make_definition(number))

        def ours() -> None:
            assert validate(files).problems == ()

        def floor() -> None:
            for path in files:
                assert schema.validate(etree.fromstring(path.read_bytes()))

        return compare(ours, floor, rounds=3)
