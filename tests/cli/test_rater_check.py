from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from evalmeta.cli.commands.rater import check
from evalmeta.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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
    assert "one: 1 pairs, 1 decided (100.0%), 0 undecided" in out
    assert "two: 1 pairs, 0 decided (0.0%), 1 undecided" in out
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
    assert "1 errors" in out
    assert "1 pairs could not be rated; the first: the rater's embed" in out


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    error = CliRunner().invoke(check, [str(tmp_path / "no.jsonl")], standalone_mode=False).exception
    assert isinstance(error, UsageError)
    assert "the file does not exist" in str(error)
