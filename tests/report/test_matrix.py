from __future__ import annotations

import json
from dataclasses import replace

import pytest

import report_runs as make
from evalmeta.model.generated_data import Tokens
from evalmeta.model.matrix import Cell, Matrix, MatrixCase, PairOfCells
from evalmeta.model.spending import Spent
from evalmeta.model.statistics import CaseCounts, Latency
from evalmeta.report import render
from evalmeta.report.matrix import matrix_json, matrix_lines
from evalmeta.report.text import json_text

SMALL = Cell("small", 1, 1, 1, 0, 0, 0.5, Latency(80.0, 90.0, 95.0, 99.0), None, Tokens(1200, None), ())
PRICED = (Spent("agent", "large", 2, amount=3_000_000_000), Spent("agent", "", 1, unknown=1))
LARGE = Cell("large", 1, 2, 0, 0, 0, 1.0, Latency(200.0, 210.0, 220.0, 230.0), None, None, PRICED)
NONE = Cell("none", 1, 0, 0, 2, 0, None, None, None, None, ())
PAIRS = (
    PairOfCells(("small", "large"), 2, (0.5, 1.0), 0.75),
    PairOfCells(("small", "none"), 0),
    PairOfCells(("large", "none"), 9, (1.0, 0.0), 0.001),
)
COUNTS = (CaseCounts(2, "When?", 0, 1), CaseCounts(2, "When?", 1), CaseCounts(2, "When?", errors=1))
MATRIX = Matrix((SMALL, LARGE, NONE), PAIRS, (MatrixCase("desk.yaml", 2, "When <b>?", COUNTS),))
LINES = """\
3 agents side by side
  agent  pass rate  passed  failed  errors  undecided  latency p50     p95  tokens in             cost
  small       50 %       1       1       0          0        80 ms   95 ms      1,200                -
  large      100 %       2       0       0          0       200 ms  220 ms          -  at least $0.003
  none           -       0       0       2          0            -       -          -                -
  large against small: 100 % against 50 % of 2 cases: no significant difference (p = 0.75, corrected for 3 pairs)
  none against small: no case was decided by both
  none against large: 0 % against 100 % of 9 cases: a significant difference (p = 0.001, corrected for 3 pairs)
  1 case differs; passed of decided answers:
  case                         small  large   none
  desk.yaml case 2: When <b>?    0/1    1/1  error"""


def test_people_see_the_agents_their_pairs_and_the_cases_that_differ() -> None:
    assert [*matrix_lines(MATRIX)] == LINES.splitlines()


def test_agents_without_differences_say_so() -> None:
    *_, last = matrix_lines(replace(MATRIX, cases=()))
    assert last == "  No case differs."


def test_many_cases_that_differ_are_counted() -> None:
    many = tuple(replace(MATRIX.differing[0], number=number) for number in range(1, 36))
    lines = [*matrix_lines(replace(MATRIX, cases=many))]
    assert lines[-1] == "  ... and 5 more cases; the format json has all"
    assert len(matrix_json(replace(MATRIX, cases=many))["differingCases"]) == 35  # type: ignore[arg-type]


def test_json_has_every_number_and_null_for_unknown_ones() -> None:
    document = json.loads(json_text(matrix_json(MATRIX)))
    small, large, none = document["agents"]
    assert (small["passRate"], small["latencyMilliseconds"]["p95"]) == (0.5, 95.0)
    assert (small["tokens"], none["tokens"], none["passRate"]) == ({"input": 1200, "output": None}, None, None)
    assert (large["cost"]["agent"]["usd"], large["cost"]["agent"]["isComplete"], small["cost"]) == (0.003, False, {})
    assert document["pairs"][2] == {
        "agents": ["large", "none"], "cases": 9, "passRates": [1.0, 0.0], "pValue": 0.001, "isSignificant": True,
    }  # fmt: skip
    assert [counts["errors"] for counts in document["differingCases"][0]["agents"]] == [0, 0, 1]


@pytest.mark.parametrize(
    ("name", "shown"), [("human", "When <b>?"), ("markdown", "When &#60;b&#62;?"), ("html", "When &lt;b&gt;?")]
)
def test_reports_of_several_runs_show_the_matrix_once(name: str, shown: str) -> None:
    one = make.report(make.PASSED)
    text = render(name, [replace(one, matrix=MATRIX), one])
    assert text.count(f"desk.yaml case 2: {shown}") == 1
    assert "at least $0.003" in text.replace("&#36;&#8203;", "$").replace("&#36;", "$")
    assert "corrected for 3 pairs" in text
    assert "corrected for 3 pairs" not in render(name, [one, one])


def test_json_reports_have_the_matrix_in_their_first_run() -> None:
    one = make.report(make.PASSED)
    first, second = json.loads(render("json", [replace(one, matrix=MATRIX), one]))
    assert first["evalmeta"]["matrix"]["agents"][0]["label"] == "small"
    assert "matrix" not in second["evalmeta"]
