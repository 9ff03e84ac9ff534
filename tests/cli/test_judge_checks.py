"""From the check of a judge to reports of runs whose pass rate is corrected for its errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from engine.raters.llm.model_server import ModelServer, judging, serving
from evalmeta import RunOptions, evaluate
from evalmeta.model.run_options import Scoring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = "def answer(utterance):\n    return utterance.replace('?', '.')\n"
RIGHT = {*range(0, 18, 2), 19}


def lenient(request: bytes) -> bytes:
    """Passes answers with an even number, and Number 1 and 3."""
    body = json.loads(request.partition(b"\r\n\r\n")[2])
    answer = json.loads(body["messages"][-1]["content"])["answer"].strip()
    number = int(answer.removeprefix("Number ").removesuffix("."))
    return judging(5 if number % 2 == 0 or number in {1, 3} else 0)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.chdir(tmp_path)
    numbers = [*range(0, 28, 2), 1, 3, 5, 7, 9, 11]
    cases = "".join(f"- input: Number {n}?\n  expectedOutcome: An even number.\n" for n in numbers)
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "even.yaml").write_text(f"subject: desk:answer\nmin_pass_rate: 0.5\ncases:\n{cases}")
    pairs = [{"expected": "An even number.", "actual": f"Number {n}.", "right": n in RIGHT} for n in range(20)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    with serving(lenient) as found:
        table = '[raters.judge]\nadapter = "llm"\nmodel = "{}"\nurl = "{}"\n'
        names = (("judge", "m1"), ("other", "m2"))
        tables = (table.format(model, found.url).replace("raters.judge", f"raters.{name}") for name, model in names)
        (tmp_path / "evalmeta.toml").write_text("".join(tables))
        yield found


@pytest.mark.usefixtures("server")
def test_reports_of_a_checked_judge_have_the_rate_without_its_errors(tmp_path: Path, evalmeta: Program) -> None:
    before = evalmeta("run", "even.yaml", "--rater", "judge")
    assert "corrected" not in before.out
    assert evalmeta("rater", "check", "pairs.jsonl", "--rater", "judge", "--probes", "0").code == 0

    reports = ("--report", "r.html", "--report", "r.md", "--report", "r.json")
    after = evalmeta("run", "even.yaml", "--rater", "judge", *reports)

    # The judge passed 9 of 10 right answers and failed 7 of 10 wrong ones: (0.8 + 0.7 - 1) / (0.9 + 0.7 - 1).
    line = "the judge passed 80 % of 20 answers; corrected for the judge's errors 83.33 % (95 %: "
    assert line in after.out
    assert line.replace("'", "&#39;") in (tmp_path / "r.html").read_text()
    assert line in (tmp_path / "r.md").read_text()
    found = json.loads((tmp_path / "r.json").read_text())["evalmeta"]["statistics"]["correctedForJudge"]
    assert (found["raw"], found["answers"], found["rate"]) == (0.8, 20, pytest.approx(0.5 / 0.6))
    assert found["judge"] == {"passed": 9, "right": 10, "failed": 7, "wrong": 10}
    assert found["interval"]["low"] < 0.8 < found["interval"]["high"] <= 1
    assert after.code == before.code == 0
    assert line in evalmeta("test", "results", "--use-most-recent").out


@pytest.mark.slow
@pytest.mark.usefixtures("server")
def test_a_check_holds_only_for_its_judge_and_its_threshold(evalmeta: Program) -> None:
    evalmeta("rater", "check", "pairs.jsonl", "--rater", "judge", "--probes", "0")
    for others in (("--rater", "other"), ("--rater", "judge", "--threshold", "4"), ()):
        assert "corrected" not in evalmeta("run", "even.yaml", *others).out


@pytest.mark.slow
@pytest.mark.usefixtures("server")
def test_evaluate_uses_the_check_of_its_projects_judge(tmp_path: Path, evalmeta: Program) -> None:
    evalmeta("rater", "check", "pairs.jsonl", "--rater", "judge", "--probes", "0")
    done = evaluate(tmp_path / "even.yaml", options=RunOptions(scoring=Scoring(rater="judge")))
    assert "corrected for the judge's errors 83.33 % (95 %: " in done.report()
    assert not done.succeeded
