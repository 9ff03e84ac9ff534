"""What runs of files are known by in the history, comparisons and baselines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from cli.test_agent_test_run_files import AGENT, DEFINITION, SPEC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

FIRST, SECOND = "4KB000000000001GAA", "4KB000000000002GAA"
FILE = "Orders.aiEvaluationDefinition-meta.xml"
RUN = ("--agent", "desk:answer", "--wait")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with a definition, and a spec with the same file name in two folders."""
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "desk.py").write_text(AGENT)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "orders.yaml").write_text(SPEC.format(topic="Orders"))
    (tmp_path / "a" / FILE).write_text(DEFINITION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    # Seen from a/, the agent is an installed module, which stays imported.
    sys.modules.pop("desk", None)


def names_in(baseline: Path) -> list[str]:
    return sorted(json.loads(baseline.read_text())["tests"])


def test_a_definition_that_is_run_as_a_file_is_known_by_its_full_name(
    evalmeta: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"Orders (run {FIRST}): started, 1 case" in evalmeta("test", "run", f"a/{FILE}", *RUN).err
    monkeypatch.chdir(folder / "a")
    evalmeta("test", "run", f"../b/../a/{FILE}", *RUN)
    listed = json.loads(evalmeta("test", "history", "-n", "orders", "--json").out)["result"]
    assert [each["runId"] for each in listed] == [FIRST, SECOND]
    assert f"{SECOND} against {FIRST}" in evalmeta("test", "compare", SECOND).out
    evalmeta("test", "baseline", "-o", str(folder / "b.json"))
    assert names_in(folder / "b.json") == ["Orders"]
    compared = evalmeta("test", "run", FILE, *RUN, "--baseline", "../b.json")
    assert "1 still failing" in compared.out


def test_a_definition_of_agentforce_studio_has_its_type_before_its_name(evalmeta: Program, folder: Path) -> None:
    (folder / "Orders.aiTestingDefinition").write_text(STUDIO_DEFINITION)
    both = evalmeta("test", "run", "Orders.aiTestingDefinition", f"a/{FILE}", *RUN)
    assert both.code == 100
    evalmeta("test", "baseline", "-o", "b.json")
    assert names_in(folder / "b.json") == ["AiTestingDefinition:Orders", "Orders"]


def test_a_moved_definition_keeps_its_history_and_another_file_of_its_name_has_its_own(
    evalmeta: Program, folder: Path
) -> None:
    evalmeta("test", "run", f"a/{FILE}", *RUN)
    (folder / "a" / FILE).rename(folder / "b" / FILE)
    evalmeta("test", "run", f"b/{FILE}", *RUN)
    assert evalmeta("test", "compare", SECOND).code == 0
    (folder / "a" / FILE).write_text(DEFINITION)
    assert "there is no earlier complete run of Orders" in evalmeta("test", "compare", SECOND).err
    refused = evalmeta("test", "baseline", "-o", "b.json")
    assert (refused.code, f"a/{FILE} (run {FIRST}) and b/{FILE} (run {SECOND})" in refused.err) == (2, True)
    together = evalmeta("test", "run", "a", "b", *RUN)
    assert (together.code, "have the same full name, 'Orders'" in together.err) == (2, True)


def test_paths_of_one_full_name_in_a_baseline_are_not_mixed(evalmeta: Program, folder: Path) -> None:
    evalmeta("test", "run", f"a/{FILE}", *RUN)
    evalmeta("test", "baseline", "-o", "b.json")
    tests = json.loads((folder / "b.json").read_text())
    tests["tests"] = {f"{where}/{FILE}": tests["tests"]["Orders"] for where in ("a", "b")}
    (folder / "b.json").write_text(json.dumps(tests))
    assert "Orders is not in b.json" in evalmeta("test", "run", f"a/{FILE}", *RUN, "--baseline", "b.json").err


@pytest.mark.usefixtures("folder")
def test_files_of_one_name_in_two_folders_are_two_tests(evalmeta: Program) -> None:
    evalmeta("test", "run", "a/orders.yaml", *RUN)
    evalmeta("test", "baseline", "-o", "b.json")
    other = evalmeta("test", "run", "b/orders.yaml", *RUN, "--baseline", "b.json")
    assert "b/orders.yaml is not in b.json" in other.err
    assert "there is no earlier complete run of b/orders.yaml" in evalmeta("test", "compare", SECOND).err


def test_a_file_that_is_run_from_another_folder_is_found_in_a_baseline(
    evalmeta: Program, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "evalmeta.toml").unlink()
    evalmeta("test", "run", "a/orders.yaml", *RUN)
    evalmeta("test", "baseline", "-o", "b.json")
    assert names_in(folder / "b.json") == ["a/orders.yaml"]
    monkeypatch.chdir(folder / "a")
    below = evalmeta("test", "run", "orders.yaml", *RUN, "--baseline", "../b.json")
    assert (below.code, "1 still passing" in below.out) == (0, True)
    evalmeta("test", "baseline", "-o", "../b.json")
    assert names_in(folder / "b.json") == ["orders.yaml"]


@pytest.mark.usefixtures("folder")
def test_cases_of_a_definition_in_a_file_are_chosen_by_its_names(evalmeta: Program) -> None:
    for name in ("Orders", f"a/{FILE}", FILE):
        planned = evalmeta("test", "run", "a", *RUN[:2], "--case", f"{name}:1", "--dry-run", "--json")
        assert [each["definition"] for each in json.loads(planned.out)["result"] if each["cases"]] == ["Orders"]


STUDIO_DEFINITION = """\
<AiTestingDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>Orders</name><subjectName>Order_Desk</subjectName><subjectType>AGENT</subjectType>
    <testCase>
        <number>1</number>
        <inputs><utterance>Where?</utterance></inputs>
        <scorer><name>topic_sequence_match</name><expectedValue>Returns</expectedValue></scorer>
    </testCase>
</AiTestingDefinition>
"""


@pytest.mark.parametrize("file", [f"a/{FILE}", "a/orders.yaml"])
def test_suggested_commands_name_the_file_of_a_run(evalmeta: Program, folder: Path, file: str) -> None:
    (folder / "a" / FILE).write_text(DEFINITION.replace("Returns", "Orders"))
    evalmeta("test", "run", file, *RUN)
    broken = AGENT.replace('"Orders"', '"Returns"')
    (folder / "other_desk.py").write_text(broken)
    evalmeta("test", "run", file, "--agent", "other_desk:answer", "--wait")
    compared = evalmeta("test", "compare", SECOND)
    assert f"evalmeta test run {file} --agent other_desk:answer --wait --baseline {FIRST}\n" in compared.out


def test_a_run_that_stopped_is_started_again_with_its_file(evalmeta: Program, folder: Path) -> None:
    (folder / "no_desk.py").write_text("def answer(utterance):\n    raise OSError\n")
    spec = "".join([SPEC.format(topic="Orders"), *(f"  - utterance: And {number}?\n" for number in range(3))])
    (folder / "a" / "orders.yaml").write_text(spec)
    stopping = ("--agent", "no_desk:answer", "--wait", "--max-errors", "1", "--concurrency", "1", "--retries", "0")
    evalmeta("test", "run", "a/orders.yaml", *stopping)
    told = evalmeta("test", "resume", "-r").err
    assert "evalmeta test run a/orders.yaml --agent no_desk:answer\n" in told
    assert f"evalmeta test run a/orders.yaml --agent no_desk:answer --failed-from {FIRST}" in told
