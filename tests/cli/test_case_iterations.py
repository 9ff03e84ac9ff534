"""`evalmeta run` and `evalmeta test` with cases that say for themselves how often they run."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

# It answers `no` to the questions that are listed in the file `wrong`, so often, and breaks at its `broken`th question.
AGENT = """
import pathlib

def answer(utterance):
    with open("asked", "a") as asked:
        asked.write(utterance + "\\n")
    questions = pathlib.Path("asked").read_text().splitlines()
    broken = pathlib.Path("broken")
    if broken.exists() and len(questions) >= int(broken.read_text()):
        raise ValueError("down")
    wrong = pathlib.Path("wrong")
    is_wrong = wrong.exists() and f"{utterance} {questions.count(utterance)}" in wrong.read_text().splitlines()
    return "no" if is_wrong else "yes"
"""
SPEC = """\
subject: desk:answer
testCases:
- {input: often, contains: yes, iterations: 5}
- {input: once, contains: yes, iterations: 1}
- {input: plain, contains: yes}
"""
REPORTS = ("junit.xml", "r.html", "r.md", "r.json", "r.csv", "r.tap", "r.ctrf.json")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").write_text("[run]\nconcurrency = 1\nretries = 0\n")
    (tmp_path / "t.yaml").write_text(SPEC.replace("yes", "'yes'"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(folder: Path) -> dict[str, int]:
    """Return how often each question was asked since the last call."""
    file = folder / "asked"
    questions = Counter(file.read_text().splitlines()) if file.exists() else Counter[str]()
    file.unlink(missing_ok=True)
    return dict(questions)


def run_json(done: Outcome) -> dict[str, object]:
    [run] = json.loads(done.out)["result"]
    return run


def places(run: dict[str, object]) -> list[tuple[int, int]]:
    return sorted((case["testNumber"], case["iteration"]) for case in run["testCases"])  # type: ignore[attr-defined]


def job(done: Outcome) -> str:
    return job_of(run_json(done))


def job_of(run: dict[str, object]) -> str:
    return str(run["evalmeta"]["runId"])  # type: ignore[index]


@pytest.mark.parametrize(("words", "plain"), [((), 1), (("--iterations", "2"), 2)])
def test_a_cases_own_number_wins_over_that_of_the_run_both_ways(
    folder: Path, evalmeta: Program, words: tuple[str, ...], plain: int
) -> None:
    done = evalmeta("run", "t.yaml", *words, "--json")
    assert done.code == 0
    assert asked(folder) == {"often": 5, "once": 1, "plain": plain}
    expected = [*((1, n) for n in range(1, 6)), (2, 1), *((3, n) for n in range(1, plain + 1))]
    assert places(run_json(done)) == expected


def test_a_case_of_a_table_and_of_json_lines_has_its_own_number(folder: Path, evalmeta: Program) -> None:
    (folder / "q.csv").write_text("input,contains,iterations\noften,yes,3\nplain,yes,\n")
    (folder / "q.jsonl").write_text('{"input": "lines", "contains": "yes", "iterations": 2}\n')
    assert evalmeta("run", "q.csv", "q.jsonl", "--agent", "desk:answer").code == 0
    assert asked(folder) == {"often": 3, "plain": 1, "lines": 2}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("0", "'iterations' is 0; whole numbers from 1 to 1000 are allowed"),
        ("1001", "'iterations' is 1001; whole numbers from 1 to 1000 are allowed"),
        ("often", "'iterations' of a test case is a text, not a whole number"),
        ("true", "'iterations' of a test case is a boolean, not a whole number"),
        ("1.5", "'iterations' of a test case is a number, not a whole number"),
        ("[3]", "'iterations' of a test case is a list, not a whole number"),
    ],
)
def test_a_wrong_number_is_an_error_before_the_first_question(
    folder: Path, evalmeta: Program, value: str, problem: str
) -> None:
    (folder / "t.yaml").write_text(f"subject: desk:answer\ntestCases:\n- {{input: x, iterations: {value}}}\n")
    done = evalmeta("run", "t.yaml")
    assert problem in done.err + done.out
    assert done.code not in {0, 100}
    assert not asked(folder)


def test_the_number_for_all_cases_is_not_one_of_the_defaults(folder: Path, evalmeta: Program) -> None:
    (folder / "t.yaml").write_text("subject: desk:answer\ndefaults: {iterations: 3}\ntestCases: [{input: x}]\n")
    done = evalmeta("run", "t.yaml")
    assert "Write it in the test spec, beside defaults" in done.err + done.out


@pytest.mark.parametrize(("rate", "code"), [("0.86", 100), ("0.85", 0)])
def test_every_result_counts_for_the_pass_rate(folder: Path, evalmeta: Program, rate: str, code: int) -> None:
    # 6 of 7 results, which are 85.7 %; 2 of 3 cases would be 67 %.
    (folder / "wrong").write_text("often 5\n")
    done = evalmeta("run", "t.yaml", "--min-pass-rate", rate)
    assert done.code == code
    assert "3 cases in up to 5 iterations, 7 case results: 6 passed, 1 failed" in done.out
    assert "1 (iteration 5) t.yaml:3" in done.out


def test_all_reports_show_all_iterations(folder: Path, evalmeta: Program) -> None:
    (folder / "wrong").write_text("often 2\noften 4\n")
    files = [word for name in REPORTS for word in ("--report", name)]
    done = evalmeta("run", "t.yaml", *files)
    assert "2 of 5 iterations" in done.out
    texts = {name: (folder / name).read_text() for name in REPORTS}
    assert texts["junit.xml"].count("<testcase") == 7
    assert texts["r.json"].count('"testNumber": 1,') == 6  # five results and the counts of the case
    assert len(texts["r.csv"].splitlines()) == 8
    assert "1..7" in texts["r.tap"]
    assert json.loads(texts["r.ctrf.json"])["results"]["summary"]["tests"] == 7
    assert "2 of 5 iterations gave this answer" in texts["r.html"]
    assert "3 cases, up to 5 iterations" in texts["r.html"]
    assert "60 % (3 of 5)" in texts["r.html"]
    assert "60 % (3 of 5)" in texts["r.md"]


def test_a_run_in_which_only_single_iterations_are_left_looks_like_one(evalmeta: Program) -> None:
    done = evalmeta("run", "t.yaml", "--case", "2,3")
    assert "iteration" not in done.out
    assert "2 cases: 2 passed" in done.out


def test_the_plan_counts_the_questions_of_each_case(evalmeta: Program) -> None:
    plan = evalmeta("run", "t.yaml", "--dry-run")
    assert "1 often (5 iterations)" in plan.out
    assert "Would run 3 cases in up to 5 iterations: 7 questions" in plan.out
    [run] = json.loads(evalmeta("run", "t.yaml", "--dry-run", "--json").out)["result"]
    assert [case["iterations"] for case in run["cases"]] == [5, 1, 1]
    assert run["questions"] == 7
    estimate = json.loads(evalmeta("run", "t.yaml", "--estimate", "--json").out)["result"]
    assert [row["caseResults"] for row in estimate] == [7]


def test_a_run_that_stopped_in_between_is_not_complete_and_asks_only_what_is_missing(
    folder: Path, evalmeta: Program
) -> None:
    (folder / "broken").write_text("4")
    stopped = evalmeta("run", "t.yaml", "--max-errors", "1", "--json")
    assert stopped.code == 1
    assert places(run_json(stopped)) == [(1, 1), (1, 2), (2, 1), (3, 1)]
    assert "with 4 of 7 case results" in evalmeta("test", "results", "--job-id", job(stopped)).out
    asked(folder)
    (folder / "broken").unlink()
    resumed = evalmeta("test", "resume", "--job-id", job(stopped), "--json")
    assert asked(folder) == {"often": 3}
    assert len(run_json(resumed)["testCases"]) == 7  # type: ignore[arg-type]


def test_more_iterations_are_added_to_the_other_cases_only(folder: Path, evalmeta: Program) -> None:
    first = evalmeta("run", "t.yaml", "--json")
    asked(folder)
    longer = evalmeta("test", "run", "--extend", job(first), "--iterations", "3", "--wait", "--json")
    assert asked(folder) == {"plain": 2}
    assert len(run_json(longer)["testCases"]) == 9  # type: ignore[arg-type]
    assert evalmeta("test", "run", "--extend", job(first), "--iterations", "3", "--wait").code != 0


def test_a_run_without_other_cases_is_not_extended(folder: Path, evalmeta: Program) -> None:
    first = evalmeta("run", "t.yaml", "--case", "1,2", "--json")
    asked(folder)
    done = evalmeta("test", "run", "--extend", job(first), "--iterations", "9", "--wait")
    assert "cannot be extended: each of its cases has its own number of iterations" in done.err
    assert (done.code, asked(folder)) != (0, {})


def test_all_answers_are_judged_again(folder: Path, evalmeta: Program) -> None:
    first = evalmeta("run", "t.yaml", "--json")
    asked(folder)
    again = run_json(evalmeta("test", "rescore", job(first), "--json"))
    assert (places(again), asked(folder)) == (places(run_json(first)), {})


def test_a_failed_case_is_asked_again_as_often(folder: Path, evalmeta: Program) -> None:
    (folder / "wrong").write_text("often 3\n")
    evalmeta("run", "t.yaml")
    asked(folder)
    (folder / "wrong").unlink()
    assert evalmeta("run", "t.yaml", "--last-failed").code == 0
    assert asked(folder) == {"often": 5}


def test_the_runs_of_shards_have_all_iterations_when_they_are_merged(folder: Path, evalmeta: Program) -> None:
    # Only one shard has the case that runs most often.
    times = [4, *(1 + n % 3 for n in range(1, 12))]
    cases = "".join(f"- {{input: q{n}, contains: 'yes', iterations: {times[n]}}}\n" for n in range(12))
    (folder / "t.yaml").write_text(f"subject: desk:answer\ntestCases:\n{cases}")
    for shard in ("1/2", "2/2"):
        assert evalmeta("run", "t.yaml", "--shard", shard).code == 0
    assert asked(folder) == {f"q{n}": times[n] for n in range(12)}
    merged = run_json(evalmeta("test", "merge", ".evalmeta", "--json"))
    assert places(merged) == [(n + 1, m) for n in range(12) for m in range(1, 1 + times[n])]
    assert merged["evalmeta"]["counts"]["passed"] == sum(times)  # type: ignore[index]
    assert "in up to 4 iterations" in evalmeta("test", "results", "--job-id", job_of(merged)).out


def test_a_shard_that_stopped_between_iterations_is_not_merged(folder: Path, evalmeta: Program) -> None:
    (folder / "broken").write_text("4")
    evalmeta("run", "t.yaml", "--shard", "1/1", "--max-errors", "1")
    refused = evalmeta("test", "merge", ".evalmeta")
    assert "with 4 of 7 results" in refused.err
    assert refused.code not in {0, 100}


@pytest.mark.slow
def test_a_baseline_compares_the_rate_of_each_case(folder: Path, evalmeta: Program) -> None:
    (folder / "wrong").write_text("often 2\n")
    for _ in range(2):
        evalmeta("run", "t.yaml")
        asked(folder)
    assert evalmeta("test", "baseline", "-o", "evalmeta-baseline.json").code == 0
    assert evalmeta("run", "t.yaml", "--baseline", "evalmeta-baseline.json").code == 0
    (folder / "wrong").write_text("".join(f"often {n}\n" for n in range(60)))
    asked(folder)
    red = evalmeta("run", "t.yaml", "--baseline", "evalmeta-baseline.json")
    assert red.code == 100
    # A suspect is asked as often as the comparison needs.
    rounds = [int(times or 1) for times in re.findall(r"Asking 1 suspect case again(?:, (\d+) times)?\.", red.err)]
    assert asked(folder)["often"] == 5 + sum(rounds) > 5
    _, again, *_ = re.findall(r"run (\w+)\): started", red.err)
    assert len(run_json(evalmeta("test", "rescore", again, "--json"))["testCases"]) == rounds[0]  # type: ignore[arg-type]


def test_salesforce_definitions_cannot_hold_the_number(evalmeta: Program) -> None:
    done = evalmeta("convert", "t.yaml", "--to", "definition", "-o", "t.aiEvaluationDefinition-meta.xml")
    assert "test case 1: its number of iterations; run it with --iterations 5" in done.err + done.out
