from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from engine.raters.llm.model_server import NONCE_PLACE, ModelServer, judgement, judging, model_serving, saying, serving
from evalmeta.cli.commands.rater import check
from evalmeta.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

RIGHT = {"expected": "It is 5.", "actual": "It is 6.", "right": False}
WRONG = {"expected": "It is 5.", "actual": "It is 5.", "right": False}
OPEN = {"expected": "The agent helps with tea.", "actual": "Take a cup.", "right": True}


def run(folder: Path, pairs: list[dict[str, object]], *options: str) -> tuple[int, str]:
    file = folder / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, pairs)))
    result = CliRunner().invoke(check, [str(file), *options], standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.return_value, result.stdout


def test_the_table_has_a_row_for_each_rule(tmp_path: Path) -> None:
    code, out = run(tmp_path, [RIGHT, WRONG, OPEN])
    assert code == 0
    assert out.splitlines()[0] == "all: 3 pairs, 2 decided (66.7%), 1 undecided"
    assert [line.split() for line in out.splitlines()[2:5]] == [
        ["numbers", "1", "1", "100.0%", "0", "0"],
        ["same", "1", "0", "0.0%", "1", "0"],
        ["all", "2", "1", "50.0%", "1", "0"],
    ]


def test_wrong_decisions_are_listed(tmp_path: Path) -> None:
    assert "PASS  It is 5. | It is 5." in run(tmp_path, [WRONG])[1]
    many = run(tmp_path, [WRONG] * 30)[1]
    assert many.count("PASS  It is 5.") == 20
    assert "and 10 more; --json lists all" in many


def test_each_split_has_a_table(tmp_path: Path) -> None:
    out = run(tmp_path, [RIGHT | {"split": "one"}, OPEN | {"split": "two"}])[1]
    assert "one: 1 pair, 1 decided (100.0%), 0 undecided" in out
    assert "two: 1 pair, 0 decided (0.0%), 1 undecided" in out
    assert "Decided wrongly" not in out


def test_json_has_counts_and_every_pair(tmp_path: Path) -> None:
    code, out = run(tmp_path, [RIGHT, WRONG], "--json")
    result = json.loads(out)["result"]
    assert code == 0
    assert result["splits"][0]["accuracy"] == 0.5
    assert result["splits"][0]["rules"][0]["rule"] == "numbers"
    assert [pair["verdict"] for pair in result["pairs"]] == ["FAILURE", "PASS"]


def test_pairs_that_cannot_be_rated_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").write_text('[raters.own]\nadapter = "rules"\nembed = "bad_vectors:embed"\n')
    (tmp_path / "bad_vectors.py").write_text("def embed(texts):\n    return []\n")
    code, out = run(
        tmp_path, [OPEN, {"expected": "Tea is hot.", "actual": "Tea is hot today.", "right": True}], "--rater", "own"
    )
    assert code == 1
    assert "1 error" in out
    assert "1 pair could not be rated; the first: the rater's embed" in out


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    error = CliRunner().invoke(check, [str(tmp_path / "no.jsonl")], standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert "the file does not exist" in str(error)


def test_agreement_is_shown_with_kappa_rates_and_intervals(tmp_path: Path) -> None:
    _, out = run(tmp_path, [RIGHT, RIGHT | {"actual": "It is 5.", "right": True}, WRONG, OPEN])
    lines = [line.split("  ") for line in out.splitlines()]
    found = {line[0].strip(): " ".join(" ".join(line[1:]).split()) for line in lines}

    assert found["agreement on decided pairs"] == "66.7% 20.8% to 93.9% 2 of 3"
    assert found["Cohen's kappa"] == "0.40"
    assert found["right answers that pass"] == "100.0% 20.7% to 100.0% 1 of 1"
    assert found["wrong answers that fail"] == "50.0% 9.5% to 90.5% 1 of 2"
    assert found["decided"] == "75.0% 30.1% to 95.4% 3 of 4"


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.51", 100)])
def test_too_little_agreement_fails_the_check(tmp_path: Path, least: str, code: int) -> None:
    assert run(tmp_path, [RIGHT, WRONG, OPEN], "--min-agreement", least)[0] == code


@pytest.mark.parametrize(("least", "code"), [("0.66", 0), ("0.67", 100)])
def test_too_few_decided_pairs_fail_the_check(tmp_path: Path, least: str, code: int) -> None:
    assert run(tmp_path, [RIGHT, WRONG, OPEN], "--min-decided", least)[0] == code


def test_a_rater_that_decides_nothing_reaches_no_agreement(tmp_path: Path) -> None:
    code, out = run(tmp_path, [OPEN], "--min-agreement", "0", "--json")
    result = json.loads(out)
    assert (code, result["status"]) == (100, 100)
    assert result["warnings"] == ["no pair was decided; --min-agreement is 0.0%"]


def test_forms_that_change_verdicts_are_shown(tmp_path: Path) -> None:
    _, out = run(tmp_path, [RIGHT, WRONG])
    assert "Verdicts that change with the form of the answer:" in out
    assert "Verdicts that change" not in run(tmp_path, [RIGHT, WRONG], "--probes", "0")[1]


def test_json_has_measures_probes_and_no_usage_of_the_offline_rater(tmp_path: Path) -> None:
    result = json.loads(run(tmp_path, [RIGHT, WRONG, OPEN], "--json")[1])["result"]
    assert result["all"]["coverage"] == {**result["all"]["coverage"], "value": 2 / 3, "count": 2, "of": 3}
    assert result["all"]["kappa"] is None or result["all"]["kappa"] <= 1
    assert [each["form"] for each in result["probes"]][:2] == ["longer", "list"]
    assert (result["usage"], result["examples"], result["leftOut"]) == (None, None, 0)


# LLM raters.

PAIRS = [{"expected": "An even number.", "actual": f"Number {n}.", "right": n % 2 == 0} for n in range(20)]


def learning(request: bytes) -> bytes:
    """Passes everything, unless there are examples; then it knows what is even."""
    body = json.loads(request.partition(b"\r\n\r\n")[2])
    system, user = (each["content"] for each in body["messages"])
    number = int(json.loads(user)["answer"].strip().removeprefix("Number ").removesuffix("."))
    passes = "Judge as they do" not in system or number % 2 == 0
    return saying(json.dumps({**judgement(5 if passes else 0), "nonce": NONCE_PLACE}))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALMETA_HOME", str(tmp_path / "state"))
    return tmp_path


def configure(folder: Path, server: ModelServer, lines: str = "") -> None:
    table = f'[raters.judge]\nadapter = "llm"\nmodel = "judge-1"\nurl = "{server.url}"\n{lines}'
    (folder / "evalmeta.toml").write_text(table)


def test_requests_and_tokens_of_a_model_are_shown_and_repeated_checks_cost_nothing(project: Path) -> None:
    with model_serving(judging(5)) as server:
        configure(project, server)
        first, second = (run(project, [RIGHT, WRONG], "--rater", "judge", "--probes", "0")[1] for _ in range(2))
    assert "Requests: 2, answers from the cache: 0, tokens: 1,400 in, 180 out." in first
    assert "Requests: 0, answers from the cache: 2, tokens: 0 in, 0 out." in second


def test_the_number_of_requests_is_announced(project: Path) -> None:
    file = project / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, [RIGHT, WRONG])))
    with model_serving(judging(5)) as server:
        configure(project, server, "samples = 3")
        result = CliRunner().invoke(check, [str(file), "--rater", "judge"], standalone_mode=False)
    assert result.stderr == "Checking judge with at most 42 requests.\n"


def test_a_check_beyond_the_limit_of_requests_sends_nothing(project: Path) -> None:
    with model_serving(judging(5)) as server:
        configure(project, server, "samples = 3")
        with pytest.raises(UsageError, match="may need 42 requests, and the limit is 41; nothing was sent"):
            run(project, [RIGHT, WRONG], "--rater", "judge", "--max-requests", "41")
    assert server.bodies == []


def test_the_limit_also_holds_for_requests_that_nobody_foresaw(project: Path) -> None:
    with model_serving(saying("no")) as server:
        configure(project, server)
        code, out = run(project, [RIGHT, WRONG], "--rater", "judge", "--probes", "0", "--max-requests", "2")
    assert (code, len(server.bodies)) == (1, 2)
    assert "2 pairs could not be rated" in out


@pytest.mark.slow
def test_examples_are_chosen_measured_and_saved(project: Path) -> None:
    file = project / "examples.jsonl"
    with serving(learning) as server:
        configure(project, server)
        options = ("--rater", "judge", "--probes", "0", "--examples", "2", "--save-examples", str(file))
        code, out = run(project, PAIRS, *options)

    assert code == 0
    assert "2 examples, measured on 8 held-out pairs:" in out
    assert [" ".join(line.split()) for line in out.splitlines() if line.startswith(("before", "after"))] == [
        "before 50.0% 21.5% to 78.5% 4 of 8 4 of 8",
        "after 100.0% 67.6% to 100.0% 8 of 8 8 of 8",
    ]
    assert f'Then add this line to [raters.judge] in evalmeta.toml:\n\nexamples = "{file.as_posix()}"' in out
    assert len(file.read_text().splitlines()) == 2


@pytest.mark.slow
def test_examples_of_the_rater_are_left_out_of_its_check(project: Path) -> None:
    (project / "known.jsonl").write_text("\n".join(map(json.dumps, PAIRS[:4])))
    with serving(learning) as server:
        configure(project, server, 'examples = "known.jsonl"')
        _, out = run(project, PAIRS, "--rater", "judge", "--probes", "0")
    assert "all: 16 pairs, 16 decided (100.0%)" in out
    assert "4 pairs are examples of the rater and were left out." in out


@pytest.mark.slow
def test_examples_that_do_not_help_are_not_recommended(project: Path) -> None:
    with model_serving(judging(5)) as server:
        configure(project, server)
        _, out = run(project, PAIRS, "--rater", "judge", "--probes", "0", "--examples", "2")
    assert "The examples do not improve the rater. Do not add them." in out
    assert "Then add this line" not in out


@pytest.mark.parametrize(
    ("pairs", "options", "why"),
    [
        (PAIRS, ("--examples", "2"), "the rater 'rules' accepts no examples"),
        (PAIRS, ("--rater", "judge", "--examples", "5"), "20 labelled pairs are too few to choose 5 examples; 25 are"),
        (PAIRS[::2] * 2, ("--rater", "judge", "--examples", "2"), "all pairs have the same label"),
        (PAIRS, ("--save-examples", "x.jsonl"), "--save-examples needs --examples"),
        (PAIRS, ("--rater", "judge", "--examples", "2", "--save-examples", "pairs.jsonl"), "the file exists"),
    ],
)
def test_examples_that_cannot_be_chosen_cost_nothing(
    project: Path, pairs: list[dict[str, object]], options: tuple[str, ...], why: str
) -> None:
    with model_serving(judging(5)) as server:
        configure(project, server)
        with pytest.raises(UsageError, match=why):
            run(project, pairs, *options)
    assert server.bodies == []


@pytest.mark.parametrize(("threshold", "verdict"), [("4.5", "FAILURE"), ("4", "PASS")])
def test_the_projects_threshold_decides_what_passes(project: Path, threshold: str, verdict: str) -> None:
    with model_serving(judging(4)) as server:
        configure(project, server, f"[score]\nthreshold = {threshold}\n")
        out = run(project, [RIGHT], "--rater", "judge", "--json")[1]
    assert [each["verdict"] for each in json.loads(out)["result"]["pairs"]] == [verdict]


def test_other_metrics_are_checked_without_expectations(project: Path) -> None:
    pair = {"utterance": "When?", "actual": "On Monday.", "right": True}
    with model_serving(judging(4)) as server:
        configure(project, server)
        code, out = run(project, [pair], "--rater", "judge", "--metric", "coherence", "--probes", "0")
    assert (code, "all: 1 pair, 1 decided (100.0%)" in out) == (0, True)
    assert "how coherent the answer is" in str(server.bodies[0])


def test_a_metric_that_takes_no_examples_gets_none(project: Path) -> None:
    with model_serving(judging(4)) as server:
        configure(project, server)
        with pytest.raises(UsageError, match="the prompt of coherence accepts no examples; only bot_response_rating"):
            run(project, PAIRS, "--rater", "judge", "--metric", "coherence", "--examples", "2")
    assert server.bodies == []


def test_a_rater_that_does_not_judge_a_metric_decides_nothing(tmp_path: Path) -> None:
    _, out = run(tmp_path, [RIGHT], "--metric", "coherence")
    assert "all: 1 pair, 0 decided (0.0%), 1 undecided" in out
