"""`--report FILE`: one call writes the same runs in several formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

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
