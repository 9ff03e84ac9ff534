"""What the schema and the pages say of expectations, and what evalmeta knows."""

from __future__ import annotations

import re
from pathlib import Path

from evalmeta.model.expectations import known_names

ROOT = Path(__file__).parents[2]


def test_the_schema_offers_every_expectation_to_editors() -> None:
    text = (ROOT / "xsd" / "AiEvaluationDefinition.xsd").read_text()
    [names] = re.findall(r'<xs:simpleType name="KnownExpectationName">(.*?)</xs:simpleType>', text, re.DOTALL)

    assert sorted(re.findall(r'value="(\w+)"', names)) == sorted(known_names())


def test_the_page_about_definitions_lists_every_expectation() -> None:
    text = (ROOT / "docs" / "definitions.md").read_text()
    section = text.partition("## Expectations")[2].partition("\n\nComparisons")[0]
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    names = [name for row in rows for cell in row.split("|")[1:3] for name in re.findall(r"`(\w+)`", cell)]

    assert sorted(names) == sorted(known_names())
