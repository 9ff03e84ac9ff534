from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import watchfiles

from cli.test_agent_test_run_files import AGENT, SPEC
from evalmeta.cli.commands.run import affected, file_events, not_written, watched_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an agent and two tests."""
    (tmp_path / "desk.py").write_text(AGENT)
    for topic in ("Orders", "Returns"):
        (tmp_path / f"{topic.lower()}.yaml").write_text(SPEC.format(topic=topic))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_changed_test_runs_alone(folder: Path) -> None:
    assert affected({folder / "orders.yaml"}, [folder]) == [folder / "orders.yaml"]


def test_a_changed_agent_runs_all_tests(folder: Path) -> None:
    assert affected({folder / "orders.yaml", folder / "desk.py"}, [folder]) == [folder]


def test_results_are_not_watched(folder: Path) -> None:
    (folder / ".evalmeta").mkdir()
    (folder / ".evalmeta" / "run.json").touch()
    assert sorted(path.name for path in watched_files(folder, [folder])) == ["desk.py", "orders.yaml", "returns.yaml"]


def test_data_that_a_run_writes_is_not_a_change_but_code_and_tests_are(folder: Path) -> None:
    (folder / "set.evalset.json").write_text('[{"query": "Hi", "expected_tool_use": [], "reference": "Hello"}]')
    tests = ["desk.py", "returns.yaml", "set.evalset.json"]
    for name in ("memory.json", "results.xml", *tests):
        (folder / name).touch()
    changed = watched_files(folder, [folder]) - {folder / "orders.yaml"}
    assert sorted(path.name for path in not_written(changed, [folder])) == tests


def test_a_project_with_more_folders_than_the_system_watches_is_polled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(place: Path, *, force_polling: bool | None, debounce: int) -> Iterator[object]:
        if not force_polling:
            raise OSError("OS file watch limit reached.")
        yield from watchfiles.watch(
            place, force_polling=True, debounce=debounce, rust_timeout=50, yield_on_timeout=True
        )

    monkeypatch.setattr(
        "evalmeta.cli.commands.run.watch",
        lambda place, *, force_polling, debounce, **_: limited(place, force_polling=force_polling, debounce=debounce),
    )
    events = file_events(folder, [folder])
    assert next(events) == set()
    os.utime(folder / "desk.py", (2_000_000_000, 2_000_000_000))
    assert next(filter(None, events)) == {folder / "desk.py"}


@pytest.mark.slow
def test_a_change_of_the_agent_is_seen_and_ctrl_c_ends_the_watch(folder: Path) -> None:
    # A file of the project does not replace a library of evalmeta.
    (folder / "click.py").write_text("raise SystemExit('not click')")
    command = [sys.executable, "-P", "-m", "evalmeta", "run", "returns.yaml", "--watch", "--agent", "desk:answer"]
    # The report is not a change.
    with subprocess.Popen(
        [*command, "-q", "--report", "results.json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as running:
        assert running.stdout is not None
        lines = iter(running.stdout.readline, "")

        def next_with(words: str) -> str:
            return next(line for line in lines if words in line)

        try:
            assert "1 failed" in next_with("1 case:")
            next_with("Watching")
            (folder / "desk.py").write_text(AGENT.replace('"Orders"', '"Returns"'))
            next_with("Changed: desk.py")
            assert "1 passed" in next_with("1 case:")
            next_with("Watching")
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 0
        finally:
            running.kill()
