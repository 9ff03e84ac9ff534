from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from client.servers import listening
from engine.raters.llm.model_server import judging, model_serving
from engine.subjects.conversations import says
from evalmeta.model.run import CaseResult
from evalmeta.store.runs import Runs
from viewer.exports import read_export

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Outcome
    from engine.raters.llm.model_server import ModelServer

    Program = Callable[..., Outcome]

AGENT = """
def answer(question):
    return {"answer": "Monday.", "tokens": {"input": 1000, "output": 100, "model": "clever-1"}}
"""
SETTINGS = """
[subjects.Shop]
adapter = "python"
target = "shop:answer"

[prices."clever-1"]
input = 1.0
output = 10

[raters.judge]
adapter = "llm"
model = "judge-1"
url = "URL"

[score]
rater = "judge"
"""
SPEC = """
subjectName: Shop
cases:
  - {input: When are you open?, expectedOutcome: On Mondays.}
  - {input: When do you open?, expectedOutcome: On Mondays.}
"""
JUDGE_PRICE = '\n[prices."judge-1"]\ninput = 2\noutput = 0.5\n'


@pytest.fixture
def judge() -> Iterator[ModelServer]:
    with model_serving(judging(5)) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: ModelServer) -> Path:
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "evalmeta.toml").write_text(SETTINGS.replace("URL", judge.url) + JUDGE_PRICE)
    (tmp_path / "t.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


AGENT_LINE = "cost of the agent (clever-1): $0.004; 2,000 tokens in, 200 out"
RATER_LINE = "cost of the rater (judge-1): $0.00289; 1,400 tokens in, 180 out"


def test_every_report_has_the_cost_of_agent_and_rater_apart(evalmeta: Program, folder: Path) -> None:
    files = [f"r.{end}" for end in ("html", "md", "xml", "csv", "jsonl", "json", "ctrf.json")]
    done = evalmeta("test", "run", "t.yaml", "--wait", *(word for file in files for word in ("--report", file)))

    assert done.code == 0, done.out
    assert AGENT_LINE in done.out
    assert RATER_LINE in done.out
    for file in ("r.html", "r.md"):
        text = (folder / file).read_text().replace("&#36;", "$")
        assert all(part in text for part in ("$0.004", "$0.00289", "clever-1", "judge-1")), file
    junit = (folder / "r.xml").read_text()
    assert f'<property name="cost-of-rater" value="{RATER_LINE}"/>' in junit
    assert junit.count('<property name="agent-usd" value="0.002"/>') == 2
    rows = list(csv.DictReader((folder / "r.csv").read_text().splitlines()))
    assert [(row["agent_usd"], row["rater_usd"]) for row in rows] == [("0.002", "0.001445")] * 2
    cases = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    assert {case["cost"]["rater"]["usd"] for case in cases} == {0.001445}
    document = json.loads((folder / "r.json").read_text())
    assert document["evalmeta"]["statistics"]["cost"]["rater"] == {
        "usd": 0.00289,
        "isComplete": True,
        "replies": 2,
        "withoutPrice": 0,
        "reused": 0,
        "tokens": {"input": 1400, "output": 180, "cached": 0},
    }
    assert document["testCases"][0]["cost"]["agent"]["usd"] == 0.002
    ctrf = json.loads((folder / "r.ctrf.json").read_text())["results"]
    assert ctrf["extra"]["cost"]["agent"]["usd"] == ctrf["extra"]["runs"][0]["cost"]["agent"]["usd"] == 0.004


def test_a_suite_has_the_sum_of_its_runs(evalmeta: Program, folder: Path) -> None:
    (folder / "u.yaml").write_text(SPEC)
    done = evalmeta("test", "run", "t.yaml", "u.yaml", "--wait")

    # The answers are the same in both tests, so that half of the judgements may be reused.
    assert "  cost of the agent (clever-1): $0.008; 4,000 tokens in, 400 out" in done.out.splitlines()


@pytest.mark.usefixtures("folder")
def test_stored_judgements_cost_nothing_and_are_said_to_be_stored(evalmeta: Program) -> None:
    evalmeta("test", "run", "t.yaml", "--wait")
    done = evalmeta("test", "run", "t.yaml", "--wait")

    assert "cost of the rater (judge-1): $0.00 (2 from the cache)" in done.out
    assert AGENT_LINE in done.out


@pytest.mark.usefixtures("folder")
def test_answers_that_are_judged_again_are_not_paid_twice(evalmeta: Program) -> None:
    evalmeta("test", "run", "t.yaml", "--wait")
    done = evalmeta("test", "rescore", "latest", "--threshold", "4")

    assert "cost of the agent: $0.00 (2 recorded)" in done.out


@pytest.mark.usefixtures("folder")
def test_a_resumed_run_counts_each_answer_once(evalmeta: Program) -> None:
    evalmeta("test", "run", "t.yaml", "--wait")
    done = evalmeta("test", "run", "--extend", "latest", "--iterations", "2", "--wait")

    assert "cost of the agent (clever-1): $0.008; 4,000 tokens in, 400 out" in done.out
    assert "cost of the rater (judge-1): $0.00289 (2 from the cache); 1,400 tokens in, 180 out" in done.out


def test_a_judge_without_a_price_is_unknown_and_its_tokens_are_shown(evalmeta: Program, folder: Path) -> None:
    settings = folder / "evalmeta.toml"
    settings.write_text(settings.read_text().replace(JUDGE_PRICE, ""))
    done = evalmeta("test", "run", "t.yaml", "--wait")

    line = "cost of the rater (judge-1): unknown, 2 requests without a price; 1,400 tokens in, 180 out"
    assert line in done.out


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("input = -1\noutput = 1", "input"),
        ("input = 1", "output"),
        ('input = "much"\noutput = 1', "input"),
        ("input = 1\noutput = 0.0000001", "output"),
    ],
)
def test_a_price_that_is_none_is_an_error(evalmeta: Program, folder: Path, table: str, words: str) -> None:
    with (folder / "evalmeta.toml").open("a") as settings:
        settings.write(f'\n[prices."x"]\n{table}\n')
    done = evalmeta("test", "run", "t.yaml", "--wait")

    assert (done.code, f"prices.x.{words}" in done.err) == (2, True), done.err


def test_the_page_of_a_run_shows_the_cost(evalmeta: Program, folder: Path) -> None:
    evalmeta("test", "run", "t.yaml", "--wait")
    evalmeta("view", "--export", "site")
    pages = "".join(read_export(folder / "site").html)

    assert "<dt>cost of the agent (clever-1)</dt><dd>$0.004</dd>" in pages
    assert "<dt>cost of the rater (judge-1)</dt><dd>$0.00289</dd>" in pages


@pytest.mark.usefixtures("folder")
def test_an_estimate_says_what_it_is_based_on_and_asks_nothing(evalmeta: Program, judge: ModelServer) -> None:
    for _ in range(2):
        evalmeta("test", "run", "t.yaml", "--wait")
    asked = len(judge.bodies)
    done = evalmeta("test", "run", "t.yaml", "--estimate", "--iterations", "10")

    assert (done.code, len(judge.bodies)) == (0, asked)
    assert done.out.splitlines() == [
        "t.yaml: 20 case results, estimated from 2 runs, 4 answers",
        "  cost of the agent (clever-1): $0.04; 20,000 tokens in, 2,000 out",
        # The judgements of the second run came from the cache, which a new answer does not.
        "  cost of the rater (judge-1): $0.0289; 14,000 tokens in, 1,800 out",
        "Would cost about $0.0689. No case was run.",
    ]
    [estimate] = json.loads(evalmeta("run", "t.yaml", "--estimate", "--case", "1", "--json").out)["result"]
    assert (estimate["usd"], estimate["basis"]) == (0.003445, {"runs": 2, "answers": 4})
    assert json.loads(evalmeta("test", "results", "latest", "--json").out)["result"][0]["evalmeta"]["total"] == 2


def test_an_estimate_follows_the_prices_of_now_and_the_agent(evalmeta: Program, folder: Path) -> None:
    evalmeta("test", "run", "t.yaml", "--wait")
    settings = folder / "evalmeta.toml"
    settings.write_text(settings.read_text().replace("input = 1.0", "input = 2.0"))
    assert "cost of the agent (clever-1): $0.006;" in evalmeta("test", "run", "t.yaml", "--estimate").out

    settings.write_text(settings.read_text().replace("shop:answer", "shop:other"))
    done = evalmeta("test", "run", "t.yaml", "--estimate")
    assert done.out.splitlines() == [
        "t.yaml: unknown for 2 case results: no earlier run of this test and agent",
        "The cost is not known; 2 case results would have requests without a known price. No case was run.",
    ]
    assert done.code == 0


def test_an_estimate_prices_a_version_that_nobody_lists_as_a_run_does(evalmeta: Program, folder: Path) -> None:
    (folder / "shop.py").write_text(AGENT.replace("clever-1", "clever-1-2026"))
    settings = folder / "evalmeta.toml"
    settings.write_text(settings.read_text().replace('"shop:answer"', '"shop:answer"\nmodel = "clever-1"'))
    ran = evalmeta("test", "run", "t.yaml", "--wait").out
    estimated = evalmeta("test", "run", "t.yaml", "--estimate").out

    line = "cost of the agent (clever-1-2026): $0.004; 2,000 tokens in, 200 out"
    assert (line in ran, line in estimated) == (True, True), estimated


@pytest.mark.usefixtures("folder")
def test_an_estimate_knows_the_model_of_an_agent_behind_a_url(evalmeta: Program) -> None:
    reply = {
        "model": "clever-1-2026",
        "choices": [{"message": {"content": "Monday."}}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100},
    }
    with listening(lambda _: says(reply)) as server:
        call = ("run", "t.yaml", "--agent", f"{server.url}/v1", "--model", "clever-1")
        ran = evalmeta(*call).out
        estimated = evalmeta(*call, "--estimate").out

    line = "cost of the agent (clever-1-2026): $0.004; 2,000 tokens in, 200 out"
    assert (line in ran, line in estimated) == (True, True), estimated


@pytest.mark.usefixtures("folder")
def test_an_estimate_keeps_no_results_in_memory(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    evalmeta("test", "run", "t.yaml", "--wait")
    alive = [0]

    class Counted(CaseResult):
        def __del__(self) -> None:
            alive[0] -= 1

    most = 0

    def stream(runs: Runs, run_id: str) -> Iterator[CaseResult]:
        nonlocal most
        [first, *_] = runs.page(run_id, after=(0, 0))
        for _ in range(50):
            alive[0] += 1
            most = max(most, alive[0])
            yield Counted(*first)

    monkeypatch.setattr(Runs, "stream", stream)
    assert "estimated from 1 run, 50 answers" in evalmeta("test", "run", "t.yaml", "--estimate").out
    assert most <= 2


def test_an_estimate_with_unknown_parts_says_at_least(evalmeta: Program, folder: Path) -> None:
    settings = folder / "evalmeta.toml"
    settings.write_text(settings.read_text().replace(JUDGE_PRICE, ""))
    (folder / "u.yaml").write_text(SPEC)
    evalmeta("test", "run", "t.yaml", "--wait")
    out = evalmeta("test", "run", "t.yaml", "u.yaml", "--estimate").out

    assert "cost of the rater (judge-1): unknown, 2 requests without a price" in out
    assert "u.yaml: unknown for 2 case results" in out
    assert "Would cost at least about $0.004; 4 case results would have requests without a known price." in out


def test_a_judgement_in_a_check_of_the_project_counts(evalmeta: Program, folder: Path) -> None:
    checks = "import evalmeta\n\nasync def good(answer):\n    return await evalmeta.judge('?', answer, 'Good.')\n"
    (folder / "checks.py").write_text(checks)
    (folder / "c.yaml").write_text("subject: Shop\ntestCases:\n- {input: Hi, function: 'checks:good'}\n")
    done = evalmeta("test", "run", "c.yaml", "--wait")

    assert "cost of the rater (judge-1): $0.001445; 700 tokens in, 90 out" in done.out
