"""`--report FILE`: one call writes the same runs in several formats."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]
    Copy = Callable[..., Path]


def test_one_run_is_written_in_several_formats(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples("failing")
    evalmeta("deploy")
    words = ("--report", "reports/junit.xml", "--report", "reports/a.github.txt", "--report", "summary.md")
    done = evalmeta("test", "run", "--wait", *words)
    assert done.code == 100
    assert "Wrote summary.md" in done.err
    begins = {"reports/junit.xml": "<?xml", "reports/a.github.txt": "::error ", "summary.md": "| | definition "}
    assert all(Path(name).read_text().startswith(start) for name, start in begins.items())


def test_an_unknown_extension_is_refused_before_a_case_runs(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples("failing")
    done = evalmeta("test", "run", "--wait", "--report", "results.pdf")
    assert done.code == 2
    assert "the format of 'results.pdf' is unknown" in done.err


def test_a_report_needs_results(evalmeta: Program, copy_samples: Copy) -> None:
    copy_samples("failing")
    assert "--report needs --wait" in evalmeta("test", "run", "--report", "a.xml").err


def test_a_report_that_cannot_be_written_costs_neither_the_others_nor_the_results(
    evalmeta: Program, copy_samples: Copy
) -> None:
    copy_samples("failing")
    evalmeta("deploy")
    too_long = f"{'x' * 300}.xml"
    done = evalmeta("test", "run", "--wait", "--report", too_long, "--report", "a.md")
    assert (done.code, Path("a.md").read_text()[:1]) == (2, "|")
    assert f"{too_long}: cannot be written: File name too long\n" in done.err
    command = done.err.partition("The results are stored. Write them to another FILE: evalmeta ")[2].split()
    assert evalmeta(*command[:-1], "b.md").code == 100
    assert Path("b.md").read_text() == Path("a.md").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives a folder with a test, its agent, and the report of an earlier run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "desk.py").write_text("def answer(utterance):\n    return utterance\n")
    (tmp_path / "spec.yaml").write_text("subject: desk:answer\ntestCases:\n- {input: Hello, contains: Hello}\n")
    (tmp_path / "old.xml").write_text("an earlier report")
    return tmp_path


@pytest.mark.parametrize(
    "call",
    [
        ["run", "spec.yaml", "--no-such-option"],
        ["run", "spec.yaml", "--shard", "none"],
        ["run", "spec.yaml", "--confirm", "2"],
        ["run", "spec.yaml", "--baseline", "missing.json"],
        ["run", "spec.yaml", "--agent", "desk:reply"],
        ["run", "missing.yaml"],
        ["test", "run", "spec.yaml"],
        ["test", "results", "--job-id", "4KB000000000001GAA"],
        ["test", "resume", "--job-id", "4KB000000000001GAA"],
        ["test", "rescore", "4KB000000000001GAA"],
    ],
)
@pytest.mark.parametrize("option", [["--report", "old.xml"], ["--report=old.xml"]])
def test_an_earlier_report_does_not_stay_in_place_of_one_that_is_not_written(
    evalmeta: Program, folder: Path, call: list[str], option: list[str]
) -> None:
    assert evalmeta(*call, *option).code == 2
    assert not (folder / "old.xml").exists()


@pytest.mark.parametrize("call", [["run", "--help"], ["run", "spec.yaml", "--dry-run"]])
def test_a_call_that_only_prints_keeps_the_report(evalmeta: Program, folder: Path, call: list[str]) -> None:
    assert evalmeta(*call, "--report", "old.xml").code == 0
    assert (folder / "old.xml").read_text() == "an earlier report"


def test_a_report_replaces_no_file_that_the_command_reads(evalmeta: Program, folder: Path) -> None:
    (folder / "base.json").write_text("{}")
    for words in (["--baseline", "base.json"], ["--baseline=base.json"], ["./base.json"]):
        done = evalmeta("run", "spec.yaml", *words, "--report", "base.json")
        assert (done.code, "--report base.json would replace a file that this command reads" in done.err) == (2, True)
        assert (folder / "base.json").read_text() == "{}"


def test_only_files_with_the_extension_of_a_report_are_removed(evalmeta: Program, folder: Path) -> None:
    assert evalmeta("run", "--report", "desk.py").code == 2
    assert (folder / "desk.py").exists()


def test_a_report_through_a_link_is_removed_and_written_there(evalmeta: Program, folder: Path) -> None:
    (folder / "link.xml").symlink_to("old.xml")
    evalmeta("run", "missing.yaml", "--report", "link.xml")
    assert not (folder / "old.xml").exists()
    assert evalmeta("run", "spec.yaml", "--report", "link.xml").code == 0
    assert (folder / "old.xml").read_text().startswith("<?xml")


EXITING = """
import asyncio, os
from concurrent.futures import ThreadPoolExecutor

def leave(utterance):
    if utterance == "Leave":
        try:
            os._exit(0)
        except Exception:
            pass
    return utterance

def in_pool(utterance):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(leave, utterance).result()

async def in_task(utterance):
    async def step():
        return leave(utterance)
    return (await asyncio.gather(step(), step()))[0]
"""
EXIT_SPEC = "testCases:\n- {input: Leave, contains: Leave}\n- {input: Hello, contains: Hello}\n"


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "words"), [("leave", ["run"]), ("in_pool", ["test", "run"]), ("in_task", ["run"])])
def test_an_agent_that_ends_the_process_is_an_error_with_a_report(folder: Path, agent: str, words: list[str]) -> None:
    (folder / "quitter.py").write_text(EXITING)
    (folder / "exit.yaml").write_text(EXIT_SPEC)
    # If it ended the process, it would end pytest too.
    command = [sys.executable, "-m", "evalmeta", *words, "exit.yaml", "--agent", f"quitter:{agent}", "--wait"]
    done = subprocess.run([*command, "--report", "old.xml"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr.count("Wrote old.xml")) == (1, 1)
    assert "ProcessExit: os._exit(0) was called, which would end evalmeta without a report" in done.stdout
    assert '<testsuites name="evalmeta" tests="2" failures="0" errors="1"' in (folder / "old.xml").read_text()


@pytest.mark.slow
def test_an_agent_that_ends_the_process_while_it_is_imported_is_refused(folder: Path) -> None:
    (folder / "quitter.py").write_text("import os\nos._exit(0)\n")
    command = [sys.executable, "-m", "evalmeta", "run", "spec.yaml", "--agent", "quitter:answer"]
    done = subprocess.run([*command, "--report", "old.xml"], capture_output=True, text=True, check=False)

    assert (done.returncode, (folder / "old.xml").exists()) == (2, False)
    assert "'quitter:answer' cannot be imported: quitter.py:2: ProcessExit: os._exit(0) was called" in done.stderr
