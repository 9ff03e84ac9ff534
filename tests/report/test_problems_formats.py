from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft7Validator
from lxml import etree

from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.report.problems import FORMATS, render
from report_runs import texts

SCHEMA = Path(sys.prefix) / "sarif-2.1.0.json"
HOSTILE = Problem(
    "name-format",
    Severity.ERROR,
    Location("a,b:c.xml", 3, 7),
    "bad\n::error::forged\r\n::set-env name=X::y 100%",
    "Mend it.",
)
WARNING = Problem("history-topic", Severity.WARNING, Location("force-app/Été.xml", 4, 2), "no topic")


def test_github_gets_one_command_for_each_problem() -> None:
    assert render("github", [HOSTILE, WARNING], files=2) == (
        "::error file=a%2Cb%3Ac.xml,line=3,col=7,title=name-format::"
        "bad%0A::error::forged%0D%0A::set-env name=X::y 100%25. Mend it.\n"
        "::warning file=force-app/Été.xml,line=4,col=2,title=history-topic::no topic.\n"
    )


def test_sarif_has_rule_level_location_and_fingerprint() -> None:
    [run] = json.loads(render("sarif", [HOSTILE, WARNING], files=2))["runs"]

    error, warning = run["results"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["name-format", "history-topic"]
    assert (error["level"], warning["level"], warning["ruleIndex"]) == ("error", "warning", 1)
    place = warning["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "force-app/%C3%89t%C3%A9.xml"},
        "region": {"startLine": 4, "startColumn": 2},
    }
    assert re.fullmatch(r"[0-9a-f]{32}", error["partialFingerprints"]["evalmeta/v1"])


def test_fingerprints_do_not_change_when_lines_move() -> None:
    moved = Problem(WARNING.code, WARNING.severity, Location(WARNING.location.path, 90, 1), WARNING.message)

    first, second = json.loads(render("sarif", [WARNING, moved], files=1))["runs"][0]["results"]

    assert first["partialFingerprints"] == second["partialFingerprints"]


def test_junit_counts_errors_as_failures_and_warnings_as_output() -> None:
    suite = etree.fromstring(render("junit", [HOSTILE, WARNING], files=2).encode())[0]

    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [child.tag for case in suite for child in case] == ["failure", "system-out"]


def test_junit_without_problems_is_a_test_that_passed() -> None:
    suite = etree.fromstring(render("junit", [], files=7).encode())[0]

    assert [case.get("name") for case in suite] == ["7 files"]


@pytest.mark.parametrize("name", FORMATS)
@given(text=texts)
def test_any_text_makes_a_readable_document(name: str, text: str) -> None:
    problem = Problem(text, Severity.ERROR, Location(text, 1, 1), text, text, text)

    document = render(name, [problem], files=1)

    if name in {"json", "sarif"}:
        json.loads(document)
    elif name == "junit":
        etree.fromstring(document.encode())
    elif name == "github":
        assert document.count("\n") == 1


@pytest.mark.npm
@given(text=texts)
def test_sarif_fits_its_schema(text: str) -> None:
    problem = Problem(text, Severity.WARNING, Location(text, 1, 1), text, text, text)

    log = json.loads(render("sarif", [HOSTILE, problem], files=1))

    Draft7Validator(json.loads(SCHEMA.read_text())).validate(log)
