from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalmeta.errors import UsageError
from evalmeta.formats.baseline import read_baseline, write_baseline
from evalmeta.model.comparison import KnownTest
from evalmeta.model.run_options import Setup
from evalmeta.model.statistics import CaseCounts, RunCounts

SETUP = Setup("python shop:answer", "5f1c", "rules", evalmeta="0.1.0")
TESTS = {
    "Returns": KnownTest((CaseCounts(2, 'Say "no"', 0, 3), CaseCounts(1, "Wo ist er, Jürgen? 🚚", 3, 0))),
    "Orders": KnownTest((CaseCounts(10, "", checks="-"),), "Desk", "a1b2", SETUP),
}
TEXT = """{
  "evalmeta": "baseline",
  "version": 2,
  "tests": {
    "Orders": {
      "subject": "Desk",
      "agent": "python shop:answer",
      "agentVersion": "5f1c",
      "rater": "rules",
      "evalmeta": "0.1.0",
      "options": "a1b2",
      "cases": {
        "10": {"utterance": "", "checks": "-", "passed": [0], "failed": [0]}
      }
    },
    "Returns": {
      "cases": {
        "1": {"utterance": "Wo ist er, Jürgen? 🚚", "passed": [3], "failed": [0]},
        "2": {"utterance": "Say \\"no\\"", "passed": [0], "failed": [3]}
      }
    }
  }
}
"""
FIRST_VERSION = """{
  "evalmeta": "baseline",
  "version": 1,
  "tests": {
    "Orders": {
      "cases": {
        "10": {"utterance": "Where is it?", "passed": 2, "failed": 1, "errors": 4}
      }
    }
  }
}
"""

texts = st.text(st.characters(exclude_categories=["Cs"]))
counts = st.builds(RunCounts, *[st.integers(0, 9)] * 4)
cases = st.lists(
    st.builds(
        CaseCounts.of_runs,
        st.integers(1, 999_999_999),
        texts,
        st.lists(counts, min_size=1, max_size=3).map(tuple),
        checks=texts,
        asked=texts,
    ),
    unique_by=lambda case: case.number,
).map(lambda found: tuple(sorted(found, key=lambda case: case.number)))
# Comparisons do not need the check of the judge, so baselines do not have it.
setups = st.builds(Setup, *[texts] * 5, judge_check=st.just(""))
known = st.builds(KnownTest, cases, texts, texts, setups)


def test_a_baseline_is_stable_text_with_a_line_for_each_case(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    assert [write_baseline(path, TESTS) for _ in range(2)] == ["Created", "Unchanged"]
    assert path.read_bytes() == TEXT.encode()
    assert write_baseline(path, {}) == "Changed"
    assert path.read_text() == '{\n  "evalmeta": "baseline",\n  "version": 2,\n  "tests": {}\n}\n'


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tests=st.dictionaries(texts, known, max_size=3))
def test_a_baseline_reads_back_as_it_was_written(tmp_path: Path, tests: dict[str, KnownTest]) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, tests)
    assert read_baseline(path) == tests


def test_a_case_has_the_counts_of_each_run_on_its_line(tmp_path: Path) -> None:
    path, runs = tmp_path / "baseline.json", (RunCounts(2, 0), RunCounts(1, 1), RunCounts(0, 1, errors=1))
    write_baseline(path, {"Orders": KnownTest((CaseCounts.of_runs(1, "Where?", runs),))})
    assert '"1": {"utterance": "Where?", "passed": [2, 1, 0], "failed": [0, 1, 1], "errors": [0, 0, 1]}' in (
        path.read_text()
    )
    [case] = read_baseline(path)["Orders"].cases
    assert (case.by_run, case.passed, case.failed, case.errors) == (runs, 3, 2, 1)


def test_averaged_iterations_are_one_observation_of_a_baseline(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    write_baseline(path, {"Orders": KnownTest((CaseCounts(1, "Where?", 0, 5, is_averaged=True),))})
    [case] = read_baseline(path)["Orders"].cases
    assert case.by_run == (RunCounts(0, 1),)


def test_the_first_version_is_read_as_one_run_about_which_nothing_else_is_known(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(FIRST_VERSION)
    assert read_baseline(path) == {"Orders": KnownTest((CaseCounts(10, "Where is it?", 2, 1, 4),))}
    assert read_baseline(path)["Orders"].cases[0].by_run == (RunCounts(2, 1, 4),)


def test_unknown_keys_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(TEXT.replace('"version": 2,', '"version": 2, "note": ["x", {"tests": 1}],'), encoding="utf-8-sig")
    assert list(read_baseline(path)) == ["Orders", "Returns"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"version": 2,\n', '"version": 2\n', "4:3: this is not valid JSON: "),
        ('"baseline"', '"report"', '1:1: the file is not a baseline of evalmeta: it has no "evalmeta": "baseline"'),
        ('"version": 2', '"version": 3', "3:14: version 3 is not supported, only 1 and 2"),
        ('"version": 2', '"version": true', "3:14: version True is not supported, only 1 and 2"),
        ('"version": 2', '"version": []', "3:14: version [] is not supported, only 1 and 2"),
        ('"version": 2,', "", "1:1: version None is not supported, only 1 and 2"),
        ('"10": {', '"x": {', "13:14: tests.Orders.cases.x is not a case number"),
        ('"utterance": "", ', "", "13:15: tests.Orders.cases.10.utterance must be a string"),
        ('"checks": "-"', '"checks": 1', "13:43: tests.Orders.cases.10.checks must be a string"),
        ('"rater": "rules"', '"rater": null', "9:16: tests.Orders.rater must be a string"),
        ('"passed": [3]', '"passed": [-3]', "18:62: tests.Returns.cases.1.passed must be a whole number of at least 0"),
        ('"passed": [3]', '"passed": []', "18:62: tests.Returns.cases.1.passed must have a number for each run"),
        ('"failed": [3]', '"failed": true', "19:67: tests.Returns.cases.2.failed must be a whole number"),
        ('"failed": [3]', '"failed": [0.5]', "19:67: tests.Returns.cases.2.failed must be a whole number"),
        ('"failed": [3]', '"failed": [3, 1]', "19:67: tests.Returns.cases.2.failed must have a number for each of"),
        (
            '"failed": [3]',
            '"failed": [3], "errors": null',
            "19:82: tests.Returns.cases.2.errors must be a whole number",
        ),
        ('"failed": [3]', f'"failed": [{2**63}]', "19:67: tests.Returns.cases.2.failed must be a whole number"),
        (
            '{"utterance": "", "checks": "-", "passed": [0], "failed": [0]}',
            "[]",
            "tests.Orders.cases.10 must be an obj",
        ),
        (TEXT, "[]", "1:1: the file must be an object"),
        (TEXT, "[" * 100_000, "is not valid JSON"),
        (TEXT, f'{{"version": {"9" * 5_000}}}', "is not valid JSON: "),
        ('"utterance": ""', '"utterance": "\\ud800"', "13:"),
        ('"Orders"', '"\\ud800"', "5:"),
        ('"Orders"', '"Returns"', "16:5: the key 'Returns' is repeated in one object"),
        ("ü", "\udcff", "18:41: the file is not UTF-8 from here on"),
    ],
)
def test_errors_are_reported_with_their_position(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(TEXT.replace(old, new).encode(errors="surrogateescape"))
    with pytest.raises(UsageError) as raised:
        read_baseline(path)
    assert said in str(raised.value)
    assert str(raised.value).startswith(str(path))
    assert raised.value.actions == ("Restore the committed file, or write a new one with `evalmeta test baseline`.",)


def test_nested_keys_of_the_same_name_do_not_confuse_positions(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    other = '"other": [{"tests": 1}, {"tests": 2}], "tests": 5'
    path.write_text(f'{{"evalmeta": "baseline", "version": 1, {other}}}')
    with pytest.raises(UsageError, match=":1:88: tests must be an object"):
        read_baseline(path)


@given(st.dictionaries(texts, known, max_size=2))
def test_a_baseline_ends_with_a_line_feed_and_has_no_carriage_return(tests: dict[str, KnownTest]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "baseline.json"
        write_baseline(path, tests)
        content = path.read_bytes()
    assert content.endswith(b"}\n")
    assert b"\r" not in content
