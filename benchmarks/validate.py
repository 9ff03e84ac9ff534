"""Validating definitions against parsing and schema-validating the same bytes with lxml, on one core."""

from __future__ import annotations

from definitions import CASES, make_definition
from lxml import etree
from timing import Pair, compare

from evalmeta.validation.schema import schema_dir
from evalmeta.validation.validator import validate_definition

FILES = 1_000


def measure() -> tuple[str, Pair]:
    files = [make_definition(number) for number in range(FILES)]
    schema = etree.XMLSchema(etree.parse(schema_dir() / "AiEvaluationDefinition.xsd"))

    def ours() -> None:
        for number, data in enumerate(files):
            assert not validate_definition(data, label="x", full_name=f"Order_Desk_{number}")

    def floor() -> None:
        for data in files:
            assert schema.validate(etree.fromstring(data))

    return f"validate {FILES:,} files x {CASES} cases / lxml parse + XSD", compare(ours, floor)
