from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
from pathlib import Path

def answer(question):
    with Path("asked.txt").open("a") as file:
        file.write(question + "\\n")
    return {"answer": "Monday.", "tokens": {"input": 1000, "output": 0, "model": "clever-1"}}
"""
# An answer costs $1.
SETTINGS = """
[subjects.Shop]
adapter = "python"
target = "shop:answer"

[run]
concurrency = 1
"""
PRICE = '\n[prices."clever-1"]\ninput = 1000\noutput = 0\n'
SPEC = "subjectName: Shop\ncases:\n" + "".join(f"  - {{input: Q{number}, contains: Monday}}\n" for number in range(6))
CUT = "2 cases not run: cost limit of $3.50 reached, $4.00 spent (max_cost)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").write_text(SETTINGS + PRICE)
    (tmp_path / "t.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(folder: Path) -> int:
    file = folder / "asked.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_run_that_the_limit_cuts_is_green_nowhere(evalmeta: Program, folder: Path) -> None:
    files = ("r.xml", "r.tap", "r.ctrf.json", "r.json", "r.md", "r.html")
    words = [word for file in files for word in ("--report", file)]
    done = evalmeta("test", "run", "t.yaml", "--wait", "--max-cost", "3.5", *words)

    assert (done.code, asked(folder)) == (100, 4)
    assert f"t.yaml not passed: {CUT}" in done.out
    assert "evalmeta test resume --job-id 4KB000000000001GAA --max-cost 7" in done.err
    assert f'message="{CUT}"' in (folder / "r.xml").read_text()
    assert "not ok 5 - t.yaml: the run" in (folder / "r.tap").read_text()
    ctrf = json.loads((folder / "r.ctrf.json").read_text())["results"]
    assert (ctrf["summary"]["failed"], ctrf["extra"]["runs"][0]["passed"]) == (1, False)
    assert json.loads((folder / "r.json").read_text())["evalmeta"]["status"] == "ERROR"
    assert all("2 cases not run" in (folder / file).read_text() for file in ("r.md", "r.html"))
    again = evalmeta("test", "results", "latest", "--json")
    assert json.loads(again.out)["status"] == 100
    assert [line.split()[4:6] for line in evalmeta("test", "history").out.splitlines()[-1:]] == [["ERROR", "ERROR"]]


def test_the_limit_holds_for_all_runs_of_a_command(evalmeta: Program, folder: Path) -> None:
    (folder / "u.yaml").write_text(SPEC)
    done = evalmeta("test", "run", "t.yaml", "u.yaml", "--wait", "--max-cost", "5")

    # A case that was under way when the other run reached the limit is finished.
    assert (done.code, asked(folder) in {5, 6}) == (100, True), done.out


def test_resuming_needs_a_higher_limit_and_asks_only_what_is_missing(evalmeta: Program, folder: Path) -> None:
    evalmeta("test", "run", "t.yaml", "--wait", "--max-cost", "3.5")
    refused = evalmeta("test", "resume", "--job-id", "latest")
    assert (refused.code, "Give a higher limit" in refused.err, asked(folder)) == (2, True, 4)

    # What was spent before counts.
    again = evalmeta("test", "resume", "--job-id", "latest", "--max-cost", "4.5")
    assert (again.code, asked(folder)) == (100, 5)
    last = evalmeta("test", "resume", "--job-id", "latest", "--max-cost", "10")
    assert (last.code, asked(folder)) == (0, 6)
    assert "6 cases: 6 passed" in last.out


def test_failures_of_a_cut_run_are_not_forgiven_and_its_baseline_is_not_silent(evalmeta: Program, folder: Path) -> None:
    evalmeta("test", "run", "t.yaml", "--wait")
    evalmeta("test", "baseline", "latest", "-o", "b.json")
    cut = evalmeta("test", "run", "t.yaml", "--wait", "--max-cost", "3.5", "--baseline", "b.json")
    assert (cut.code, f"t.yaml not passed: {CUT}" in cut.out) == (100, True), cut.out

    made = evalmeta("test", "baseline", "latest", "-o", "c.json")
    assert f"is not complete, {CUT}" in made.err
    compared = evalmeta("test", "compare", "previous", "latest")
    assert f"is not complete, {CUT}" in compared.err
    evalmeta("test", "archive", "latest", "kept")
    assert CUT in evalmeta("test", "results", str(folder / "kept")).out


def test_shards_that_were_cut_are_not_merged(evalmeta: Program, folder: Path) -> None:
    for shard in ("1", "2"):
        options = ("--shard", f"{shard}/2", "--max-cost", "0.5", "--report", f"s{shard}.json")
        evalmeta("test", "run", "t.yaml", "--wait", *options)
    merged = evalmeta("test", "merge", "s1.json", "s2.json")

    assert (merged.code, "is not finished" in merged.err, asked(folder)) == (2, True, 2)


@pytest.mark.slow
def test_a_cost_limit_without_a_price_is_an_error_before_the_first_question(evalmeta: Program, folder: Path) -> None:
    agent = '[subjects.Shop]\nadapter = "openai"\nmodel = "ours-1"\nurl = "http://127.0.0.1:9/v1"\n'
    (folder / "evalmeta.toml").write_text(agent)
    done = evalmeta("test", "run", "t.yaml", "--wait", "--max-cost", "1")

    assert (done.code, done.out) == (2, "")
    assert "the cost limit (max_cost) needs the price of a model: ours-1 has none" in done.err
    assert '[prices."ours-1"]' in done.err
    (folder / "evalmeta.toml").write_text(f'{agent}\n[prices."ours-1"]\ninput = 1\noutput = 1\n')
    assert "needs the price" not in evalmeta("test", "run", "t.yaml", "--max-cost", "1", "--wait", "1").err


def test_a_run_whose_answers_have_no_price_stops(evalmeta: Program, folder: Path) -> None:
    (folder / "shop.py").write_text(AGENT.replace("clever-1", "nobody-knows"))
    (folder / "t.yaml").write_text(SPEC + "".join(f"  - {{input: R{n}, contains: Monday}}\n" for n in range(9)))
    done = evalmeta("test", "run", "t.yaml", "--wait", "--max-cost", "1")

    assert (done.code, asked(folder)) == (1, 10)
    assert "the cost limit cannot be kept: none of the first 10 answers has a price" in done.out


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf", "much", "1e9"])
def test_a_limit_that_is_none_is_wrong_usage(evalmeta: Program, folder: Path, amount: str) -> None:
    done = evalmeta("test", "run", "t.yaml", "--wait", "--max-cost", amount)

    assert (done.code, "--max-cost" in done.err, asked(folder)) == (2, True, 0)


def test_the_settings_have_the_limit_of_each_command(evalmeta: Program, folder: Path) -> None:
    (folder / "evalmeta.toml").write_text(f"{SETTINGS}max_cost = 2\n{PRICE}")

    assert (evalmeta("test", "run", "t.yaml", "--wait").code, asked(folder)) == (100, 2)
