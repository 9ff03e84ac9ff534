"""`evalmeta run` and `evalmeta test` with cases in quarantine."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.evaluation import today

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
def answer(utterance):
    if "crash" in utterance:
        raise ValueError("down")
    return {"outcome": utterance, "topic": "Orders"}
"""
YESTERDAY = today() - timedelta(days=1)
REASON = f"in quarantine until {today()}: flaky"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").write_text('[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, *quarantined: str, counted: tuple[str, ...] = (), until: object = None) -> None:
    """Write a spec whose cases expect `good`; the first ones are in quarantine."""
    quarantine = f"  quarantine: {{reason: flaky, until: {until or today()}}}\n"
    cases = [f"- input: {each}\n  contains: good\n{quarantine}" for each in quarantined]
    cases += [f"- input: {each}\n  contains: good\n" for each in counted]
    (folder / "t.yaml").write_text("subject: Desk\ntestCases:\n" + "".join(cases))


@pytest.mark.parametrize(("counted", "code"), [(("good",), 0), (("bad",), 100), (("crash",), 1)])
@pytest.mark.parametrize("quarantined", ["bad", "crash", "good"])
def test_a_case_in_quarantine_makes_a_run_neither_red_nor_green(
    folder: Path, evalmeta: Program, quarantined: str, counted: tuple[str, ...], code: int
) -> None:
    write(folder, quarantined, counted=counted)
    assert evalmeta("run", "t.yaml").code == code


def test_a_case_in_quarantine_is_counted_apart_and_shown(folder: Path, evalmeta: Program) -> None:
    write(folder, "bad", "good", counted=("good too",))
    done = evalmeta("run", "t.yaml")
    assert "3 cases: 1 passed, 0 failed, 0 errors, 0 undecided, 2 quarantined (1 passed)" in done.out
    assert f"  case 1: fails, {REASON}\n" in done.out
    assert f"  case 2: passes, {REASON}\n" in done.out
    assert "t.yaml passed: all judged cases passed\n" in done.out


def test_a_run_with_only_cases_in_quarantine_says_that_nothing_counted(folder: Path, evalmeta: Program) -> None:
    write(folder, "bad", "good")
    done = evalmeta("run", "t.yaml")
    assert done.code == 0
    assert "t.yaml nothing counted: 2 cases in quarantine\n" in done.out
    assert "passed:" not in done.out


def test_a_case_counts_again_after_the_end_and_the_report_says_so(folder: Path, evalmeta: Program) -> None:
    write(folder, "bad", until=YESTERDAY)
    done = evalmeta("run", "t.yaml")
    assert done.code == 100
    assert f"case 1: its quarantine ended on {YESTERDAY}, so it counts" in done.out
    assert "quarantine-ended" in done.err


def test_json_counts_quarantined_results_and_keeps_their_verdicts(folder: Path, evalmeta: Program) -> None:
    write(folder, "bad", counted=("good",))
    [run] = json.loads(evalmeta("run", "t.yaml", "--json").out)["result"]
    assert run["evalmeta"]["counts"] | {"passed": 1, "failed": 0, "quarantined": 1} == run["evalmeta"]["counts"]
    assert run["evalmeta"]["passRate"] == 1
    assert run["testCases"][0]["verdict"] == "FAILURE"
    assert run["testCases"][0]["quarantine"] == {"reason": "flaky", "until": str(today()), "hasEnded": False}


def test_junit_skips_a_case_in_quarantine_and_shows_its_result(folder: Path, evalmeta: Program) -> None:
    write(folder, "bad", "good", counted=("good too",))
    text = evalmeta("run", "t.yaml", "--result-format", "junit").out
    assert 'tests="3" failures="0" errors="0" skipped="2"' in text
    messages = re.findall(r'<skipped message="([^"]*)"', text)
    assert messages[0].startswith(f"{REASON}: FAILED: contains: ")
    assert messages[1] == f"{REASON}: passed"


def test_tap_and_ctrf_mark_cases_in_quarantine(folder: Path, evalmeta: Program) -> None:
    write(folder, "bad", "good", counted=("good too",))
    tap, ctrf, html = (evalmeta("run", "t.yaml", "--result-format", each).out for each in ("tap", "ctrf", "html"))
    points = [line for line in tap.splitlines() if line[:2] in {"ok", "no"}]
    assert [point.partition("#")[2].strip() for point in points] == [*[f"TODO {REASON}"] * 2, ""]
    results = json.loads(ctrf)["results"]
    assert [test["status"] for test in results["tests"]] == ["other", "other", "passed"]
    assert (results["summary"]["other"], results["summary"]["failed"]) == (2, 0)
    assert '<span class="pill mark quarantined">quarantined</span>' in html


def test_a_case_in_quarantine_is_not_run_again_as_failed(folder: Path, evalmeta: Program) -> None:
    write(folder, "bad", counted=("good",))
    evalmeta("test", "run", "t.yaml", "--wait")
    again = evalmeta("test", "run", "t.yaml", "--wait", "--last-failed")
    assert again.code == 0
    assert "bad" not in again.out


def test_a_baseline_ignores_a_case_in_quarantine(folder: Path, evalmeta: Program) -> None:
    write(folder, counted=("good", "good two", "good three"))
    evalmeta("run", "t.yaml")
    assert evalmeta("test", "baseline", "-o", "base.json").code == 0
    write(folder, counted=("good", "good two", "good three"))
    spec = (folder / "t.yaml").read_text()
    quarantine = f"  quarantine: {{reason: flaky, until: {today()}}}\n"
    (folder / "t.yaml").write_text(spec + quarantine)
    worse = '    utterance = "bad" if "three" in utterance else utterance\n    return '
    (folder / "desk.py").write_text(AGENT.replace("    return ", worse))
    done = evalmeta("run", "t.yaml", "--baseline", "base.json")
    assert done.code == 0
    assert "0 suspect" in done.out
    assert "removed" not in done.out


def test_a_case_that_still_fails_after_its_quarantine_is_red_also_with_a_baseline_from_that_time(
    folder: Path, evalmeta: Program
) -> None:
    write(folder, "bad", counted=("good",))
    assert evalmeta("run", "t.yaml").code == 0
    assert evalmeta("test", "baseline", "-o", "base.json").code == 0
    write(folder, "bad", counted=("good",), until=YESTERDAY)
    done = evalmeta("run", "t.yaml", "--baseline", "base.json")
    assert (done.code, "1 failing case is not in base.json" in done.out) == (100, True)


def test_lists_of_runs_do_not_count_a_case_in_quarantine(folder: Path, evalmeta: Program) -> None:
    write(folder, "bad", counted=("good",))
    evalmeta("run", "t.yaml")
    [past] = json.loads(evalmeta("test", "history", "--json").out)["result"]
    assert (past["verdict"], past["passed"], past["failed"], past["quarantined"]) == ("PASS", 1, 0, 1)
