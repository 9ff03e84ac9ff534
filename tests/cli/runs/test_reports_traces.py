"""`--trace FILE|URL`: one call exports its runs as traces."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

import pytest

from collectors import Reply, collector
from evalmeta.traces.otlp import read_file, read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk.py").write_text(
        "from pathlib import Path\n\n\ndef answer(utterance):\n    Path('asked').touch()\n    return utterance\n"
    )
    cases = "- {input: Hello, contains: Hello}\n- {input: Bye, contains: Hello}\n"
    (tmp_path / "spec.yaml").write_text(f"subject: desk:answer\ntestCases:\n{cases}")
    return tmp_path


def test_a_file_has_the_spans_and_the_verdicts_of_all_runs(evalmeta: Program, folder: Path) -> None:
    (folder / "other.yaml").write_text((folder / "spec.yaml").read_text())
    done = evalmeta("test", "run", "spec.yaml", "other.yaml", "--wait", "--trace", "out/traces.jsonl")
    assert (done.code, "Wrote out/traces.jsonl" in done.err) == (100, True)
    found = read_file((folder / "out/traces.jsonl").read_bytes(), label="t")
    names = sorted(span.name for one in found for span in one.spans)
    assert names == [
        *["invoke_agent desk:answer"] * 4, *["test case 1"] * 2, *["test case 2"] * 2,
        "test run other.yaml", "test run spec.yaml", "test suite",
    ]  # fmt: skip
    labels = [log.event.attributes["gen_ai.evaluation.score.label"] for one in found for log in one.logs]
    assert sorted(map(str, labels)) == ["fail", "fail", "pass", "pass"]


def test_a_collector_gets_the_same_as_a_file(evalmeta: Program, folder: Path) -> None:
    with collector() as (url, requests):
        done = evalmeta("run", "spec.yaml", "--trace", url, "--trace", "traces.jsonl")
    assert (done.code, f"Sent the traces to {url}" in done.err) == (100, True)
    traces, logs = requests
    sent = read_request(traces.body).spans, read_request(logs.body, signal="logs").logs
    written = read_file((folder / "traces.jsonl").read_bytes(), label="t")
    assert sent == (written[0].spans, written[1].logs)


def test_an_export_that_fails_costs_neither_the_results_nor_the_reports(evalmeta: Program, folder: Path) -> None:
    with collector([Reply(400)]) as (url, requests):
        done = evalmeta("run", "spec.yaml", "--trace", url, "--report", "report.md")
        assert (done.code, "it answered 400" in done.err, (folder / "report.md").exists()) == (4, True, True)
        assert "1 passed, 1 failed" in done.out
        command = done.err.partition("The results are stored. Send them again to the URL: evalmeta ")[2].split()
        assert evalmeta(*command[:-1], url).code == 100
    assert [request.path for request in requests] == ["/v1/traces", "/v1/traces", "/v1/logs"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trace", "traces.txt"], "--trace traces.txt is not a file *.jsonl or a URL"),
        (["--trace", "ftp://127.0.0.1"], "the address of the collector is not valid"),
        (["--trace", "a.jsonl", "--report", "a.jsonl"], "a.jsonl is named twice"),
        (["--trace", "a.jsonl", "--trace", "a.jsonl"], "a.jsonl is named twice"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused_before_the_first_question(
    evalmeta: Program, folder: Path, words: list[str], said: str
) -> None:
    done = evalmeta("run", "spec.yaml", *words)
    assert (done.code, said in done.err, (folder / "asked").exists()) == (2, True, False)


def test_a_collector_without_the_extra_is_refused_before_the_first_question_and_a_file_is_not(
    evalmeta: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without(name: str, space: Mapping[str, object] | None = None, *others: object) -> object:
        if name.startswith("opentelemetry.proto"):
            raise ImportError(name)
        return original(name, space, *others)  # type: ignore[arg-type] # what importing passes on

    monkeypatch.setattr(builtins, "__import__", without)
    done = evalmeta("run", "spec.yaml", "--trace", "http://127.0.0.1:4318")
    assert (done.code, "evalmeta[otel]" in done.err, (folder / "asked").exists()) == (2, True, False)
    assert evalmeta("run", "spec.yaml", "--trace", "traces.jsonl").code == 100


@pytest.mark.usefixtures("folder")
def test_traces_need_results(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "spec.yaml", "--trace", "a.jsonl")
    assert "--trace needs --wait" in done.err
    assert "test resume --job-id ID --trace FILE|URL" in done.err


@pytest.mark.parametrize("option", [["--trace", "old.jsonl"], ["--trace=old.jsonl"]])
def test_an_earlier_export_does_not_stay_in_place_of_one_that_is_not_written(
    evalmeta: Program, folder: Path, option: list[str]
) -> None:
    (folder / "old.jsonl").write_text("{}")
    assert evalmeta("run", "missing.yaml", *option).code == 2
    assert not (folder / "old.jsonl").exists()


def test_only_a_file_of_traces_is_removed_and_none_that_is_read(evalmeta: Program, folder: Path) -> None:
    (folder / "cases.jsonl").write_text("{}")
    assert evalmeta("run", "cases.jsonl", "--trace", "cases.jsonl").code == 2
    assert evalmeta("run", "--trace", "spec.yaml").code == 2
    assert ((folder / "cases.jsonl").exists(), (folder / "spec.yaml").exists()) == (True, True)


@pytest.mark.usefixtures("folder")
def test_the_command_that_runs_the_failed_cases_again_does_not_replace_the_export(evalmeta: Program) -> None:
    done = evalmeta("run", "spec.yaml", "--trace", "a.jsonl")
    assert "evalmeta run --last-failed spec.yaml\n" in done.out
