from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalmeta.errors import UsageError
from evalmeta.model.statistics import CaseCounts
from evalmeta.store.history import read_baseline, render_baseline, write_baseline

if TYPE_CHECKING:
    from pathlib import Path

TESTS = {
    "Returns": (CaseCounts(2, 'Say "no"', 0, 3), CaseCounts(1, "Wo ist er, Jürgen? 🚚", 3, 0)),
    "Orders": (CaseCounts(10, "", 0, 0),),
}
TEXT = """{
  "evalmeta": "baseline",
  "version": 1,
  "tests": {
    "Orders": {
      "cases": {
        "10": {"utterance": "", "passed": 0, "failed": 0}
      }
    },
    "Returns": {
      "cases": {
        "1": {"utterance": "Wo ist er, Jürgen? 🚚", "passed": 3, "failed": 0},
        "2": {"utterance": "Say \\"no\\"", "passed": 0, "failed": 3}
      }
    }
  }
}
"""

cases = st.lists(
    st.builds(CaseCounts, st.integers(1, 999_999_999), st.text(), *[st.integers(0, 9)] * 3),
    unique_by=lambda each: each.number,
).map(lambda found: tuple(sorted(found, key=lambda each: each.number)))


def test_a_baseline_is_stable_text_with_a_line_for_each_case(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    assert [write_baseline(path, TESTS) for _ in range(2)] == ["Created", "Unchanged"]
    assert path.read_bytes() == TEXT.encode()
    assert write_baseline(path, {}) == "Changed"
    assert path.read_text() == '{\n  "evalmeta": "baseline",\n  "version": 1,\n  "tests": {}\n}\n'


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tests=st.dictionaries(st.text(), cases, max_size=3))
def test_a_baseline_reads_back_as_it_was_written(tmp_path: Path, tests: dict[str, tuple[CaseCounts, ...]]) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, tests)
    assert read_baseline(path) == tests


def test_errors_are_written_only_for_cases_that_have_some(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, {"Orders": (CaseCounts(1, "", 0, 0, errors=2),)})
    assert '"1": {"utterance": "", "passed": 0, "failed": 0, "errors": 2}' in path.read_text()


def test_unknown_keys_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(TEXT.replace('"version": 1,', '"version": 1, "note": ["x", {"tests": 1}],'), encoding="utf-8-sig")
    assert list(read_baseline(path)) == ["Orders", "Returns"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"version": 1,\n', '"version": 1\n', "4:3: is not valid JSON: Expecting ',' delimiter"),
        ('"baseline"', '"report"', '1:1: the file is not a baseline of evalmeta: it has no "evalmeta": "baseline"'),
        ('"version": 1', '"version": 2', "3:3: version 2 is not supported, only 1"),
        ('"version": 1,', "", "1:1: version None is not supported, only 1"),
        ('"10": {', '"x": {', "7:9: tests.Orders.cases.x is not a case number"),
        ('"utterance": "",', "", "7:9: tests.Orders.cases.10.utterance must be a string"),
        ('"passed": 3', '"passed": -3', "12:52: tests.Returns.cases.1.passed must be a whole number of at least 0"),
        ('"failed": 3', '"failed": true', "13:55: tests.Returns.cases.2.failed must be a whole number"),
        ('"failed": 3', '"failed": 0.5', "13:55: tests.Returns.cases.2.failed must be a whole number"),
        ('"10": {"utterance": "", "passed": 0, "failed": 0}', '"10": []', "7:9: tests.Orders.cases.10 must be an obj"),
        ('"failed": 3', '"failed": 3, "errors": null', "13:68: tests.Returns.cases.2.errors must be a whole number"),
        (TEXT, "[]", "1:1: the file must be an object"),
        (TEXT, "[" * 100_000, ": is not valid JSON: it is nested too deeply"),
        (TEXT, f'{{"version": {"9" * 5_000}}}', ": is not valid JSON: a number has too many digits"),
        ('"failed": 3', f'"failed": {2**63}', "13:55: tests.Returns.cases.2.failed must be a whole number"),
        ('"utterance": ""', '"utterance": "\\ud800"', "7:16: tests.Orders.cases.10.utterance has a lone surrogate"),
        ('"Orders"', '"\\ud800"', r"4:3: tests has a test name with a lone surrogate: '\ud800'"),
        ("ü", "\udcff", "12: is not UTF-8"),
    ],
)
def test_errors_are_reported_with_their_position(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(TEXT.replace(old, new).encode(errors="surrogateescape"))
    with pytest.raises(UsageError) as raised:
        read_baseline(path)
    assert said in str(raised.value)
    assert str(raised.value).startswith(str(path))


def test_nested_keys_of_the_same_name_do_not_confuse_positions(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    other = '"other": [{"tests": 1}, {"tests": 2}], "tests": 5'
    path.write_text(f'{{"evalmeta": "baseline", "version": 1, {other}}}')
    with pytest.raises(UsageError, match=":1:79: tests must be an object"):
        read_baseline(path)


@given(st.dictionaries(st.text(), cases, max_size=2))
def test_a_baseline_ends_with_a_line_feed_and_has_no_carriage_return(tests: dict[str, tuple[CaseCounts, ...]]) -> None:
    text = render_baseline(tests)
    assert text.endswith("}\n")
    assert "\r" not in text
