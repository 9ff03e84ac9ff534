"""The page about test specs lists every key, and its examples are valid."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from evalmeta.api.files import validate
from evalmeta.formats.spec_cases import case_keys
from evalmeta.model.checks import CHECKS, JSON_OPERATORS
from evalmeta.model.evaluation import today

PAGE = (Path(__file__).parents[2] / "docs" / "specs.md").read_text(encoding="utf-8")
SCHEMA = json.loads((resources.files("evalmeta.formats") / "schemas" / "testspec.schema.json").read_bytes())


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def listed(section: str) -> set[str]:
    """Return the names in the first column of the tables of a section."""
    text = re.split(r"^#+ ", PAGE.partition(f"# {section}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return {name for row in re.findall(r"^\| (`[^|]*)\|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}


def test_every_key_has_a_row() -> None:
    assert listed("The spec") == SCHEMA["properties"].keys()
    assert listed("Test cases") | listed("Checks") == set(case_keys())
    assert set(CHECKS) <= listed("Checks")
    assert listed("Answers in JSON") == set(JSON_OPERATORS)


def test_the_schema_has_every_key() -> None:
    definitions = SCHEMA["$defs"]
    assert definitions["testCase"]["properties"].keys() | definitions["checks"]["properties"].keys() == set(case_keys())
    assert definitions["jsonCheck"]["properties"].keys() == {"path", "fenced", *JSON_OPERATORS}


def test_the_page_says_which_checks_definitions_hold() -> None:
    [table] = re.findall(r"^\| a definition holds \|.*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
    held, lost = (set(re.findall(r"`(\w+)`", "".join(column))) for column in zip(*_cells(table), strict=True))
    for name, check in CHECKS.items():
        assert name in (held if check.operator or check.expectation or name == "json" else lost - held), name


def _cells(table: str) -> list[tuple[str, str]]:
    return re.findall(r"^\| (.*?) \| (.*?)\|$", table, re.MULTILINE)


def test_every_check_has_an_example() -> None:
    used = re.findall(r"^[-\s]*(\w+):", "\n".join(blocks("yaml")), re.MULTILINE)
    in_table = re.findall(r"\| `(\w+): [^|]*` \|$", PAGE, re.MULTILINE)
    assert set(case_keys()) <= {*used, *in_table}


@pytest.mark.parametrize("text", blocks("yaml"))
def test_the_examples_are_valid(tmp_path: Path, text: str) -> None:
    [table], [lines] = blocks("csv"), blocks("json")
    (tmp_path / "questions.csv").write_text(table)
    (tmp_path / "faq.csv").write_text("Question,Expected answer\nWhat is the capital of France?,Paris\n")
    (tmp_path / "more.jsonl").write_text(lines)
    # A quarantine that has ended, and a case to review, are warnings.
    text = text.replace("2027-01-31", str(today())).replace("review: true", "review: false")
    (tmp_path / "spec.yaml").write_text(text)

    assert validate([tmp_path / "spec.yaml"]).problems == ()
    Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(yaml.safe_load(text), default=str)))
