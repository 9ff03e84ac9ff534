from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from evalmeta.errors import ProjectError
from evalmeta.package.files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from cli.team import Team
    from conftest import Outcome

    Program = Callable[..., Outcome]

# A command that is killed before one of its functions is called.
KILLED: Final = """
import os, signal, sys
from importlib import import_module
from evalmeta.cli.main import main
module, name = sys.argv.pop(1).split(":")
*_, owner = import_module(module), *(getattr(import_module(module), part) for part in name.split(".")[:-1])
setattr(owner, name.rpartition(".")[2], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
main()
"""
MOMENTS: Final = {
    "before the deployment is sent": "evalmeta.client.metadata:submit",
    "after it was sent": "evalmeta.store.components:Receipts.name",
    "while it is done": "evalmeta.org.jobs:run_deployment",
    "after it was committed": "evalmeta.api.deployments:_remember",
}


@pytest.fixture
def deployed(team: Team, evalmeta: Program) -> Team:
    """A team of which both have A and B as the org has them."""
    for name in "AB":
        team.write(name)
    evalmeta("deploy")
    team.go("theirs")
    evalmeta("retrieve")
    team.go("mine")
    return team


def change_in_org(team: Team, evalmeta: Program, name: str, utterance: str = "theirs") -> None:
    team.go("theirs")
    team.write(name, utterance)
    assert evalmeta("deploy", "-c").code == 0
    team.go("mine")


def test_a_deploy_does_not_overwrite_what_was_changed_in_the_org(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "A")
    deployed.write("B", "mine")
    before = deployed.jobs("deploy")

    done = evalmeta("deploy")

    assert done.code == 1
    assert "Error (Conflict): 1 component was changed in the org" in done.err
    assert "aiEvaluationDefinitions/A.aiEvaluationDefinition\n  error A was changed in the org since" in done.err
    assert "by Local Admin" in done.err
    assert "evalmeta deploy --ignore-conflicts" in done.err
    assert deployed.jobs("deploy") == before


def test_a_conflict_as_json_names_the_components(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "A")
    deployed.write("A", "mine")

    error = json.loads(evalmeta("deploy", "--json").out)

    assert (error["name"], error["status"]) == ("Conflict", 1)
    assert [each["component"] for each in error["data"]] == ["AiEvaluationDefinition:A"]
    assert "here and in the org" in error["data"][0]["message"]


def test_the_suggestions_of_a_conflict_succeed(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "A")
    deployed.write("A", "mine")

    assert "Take the org's: evalmeta retrieve --ignore-conflicts" in evalmeta("deploy").err
    assert "Keep yours: evalmeta deploy --ignore-conflicts" in evalmeta("retrieve").err


def test_a_conflict_can_be_ignored(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "A")

    assert evalmeta("deploy", "-c").code == 0
    assert "are the same" in evalmeta("status").out


def test_a_selection_without_the_conflict_is_deployed(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "A")
    deployed.write("B", "mine")

    assert evalmeta("deploy", "--metadata", "AiEvaluationDefinition:B").code == 0


def test_the_same_change_on_both_sides_is_not_a_conflict(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "A", "ours")
    deployed.write("A", "ours")

    assert evalmeta("deploy").code == 0


def test_what_was_never_synced_from_here_is_deployed(team: Team, evalmeta: Program) -> None:
    team.write("A", "first")
    evalmeta("deploy")
    team.go("theirs")
    team.write("A", "from a fresh checkout")

    assert evalmeta("deploy").code == 0


def test_a_deployment_that_failed_is_not_remembered(deployed: Team, evalmeta: Program) -> None:
    deployed.write("A", "mine")
    bad = deployed.write("Bad")
    bad.write_text(bad.read_text().replace("AGENT", "BOT"))

    assert evalmeta("deploy").code == 1
    bad.unlink()
    assert "changed locally  A" in evalmeta("status").out


def test_a_retrieve_does_not_overwrite_what_was_changed_here(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "B")
    mine = deployed.write("A", "mine")
    before = mine.read_text(), deployed.path("B").read_text()

    done = evalmeta("retrieve")

    assert done.code == 1
    assert "Error (Conflict): 1 component was changed here and not deployed; nothing was written" in done.err
    assert "A was changed here since the last deploy or retrieve" in done.err
    assert (mine.read_text(), deployed.path("B").read_text()) == before


def test_a_retrieve_does_not_overwrite_an_unknown_file(team: Team, evalmeta: Program) -> None:
    team.write("A", "theirs")
    evalmeta("deploy")
    team.go("theirs")
    team.write("A", "mine")

    done = evalmeta("retrieve")

    assert done.code == 1
    assert "A was never deployed or retrieved from here" in done.err


def test_a_retrieve_overwrites_with_ignore_conflicts(deployed: Team, evalmeta: Program) -> None:
    mine = deployed.write("A", "mine")

    assert "Changed    A" in evalmeta("retrieve", "-c").out
    assert "<utterance>Hi</utterance>" in mine.read_text()


def test_a_retrieve_brings_what_was_changed_in_the_org_only(deployed: Team, evalmeta: Program) -> None:
    change_in_org(deployed, evalmeta, "A")

    assert evalmeta("retrieve").code == 0
    assert "theirs" in deployed.path("A").read_text()
    assert evalmeta("deploy").code == 0


def test_a_run_warns_of_changes_that_were_not_deployed(deployed: Team, evalmeta: Program) -> None:
    deployed.write("A", "mine")

    warned = evalmeta("test", "run", "-n", "A").err
    silent = evalmeta("test", "run", "-n", "B").err

    assert "Warning: A differs from the org's; deploy to test your changes" in warned
    assert "Warning" not in silent


def test_a_file_renamed_in_case_only_keeps_its_place_and_its_changes(deployed: Team, evalmeta: Program) -> None:
    deployed.path("A").rename(deployed.path("a"))
    mine = deployed.path("a")
    mine.write_bytes(mine.read_bytes().replace(b"Hi", b"mine"))

    refused = evalmeta("retrieve")
    taken = evalmeta("retrieve", "--ignore-conflicts")

    assert (refused.code, taken.code) == (1, 0)
    assert "A was changed here since" in refused.err
    assert b"Hi" in mine.read_bytes()
    assert not deployed.path("A").exists()


def test_a_retrieve_writes_through_a_link_that_stays_inside(deployed: Team, evalmeta: Program) -> None:
    target = deployed.path("A").rename("elsewhere.xml").absolute()
    deployed.path("A").symlink_to(target)
    change_in_org(deployed, evalmeta, "A")

    assert evalmeta("retrieve").code == 0

    assert deployed.path("A").is_symlink()
    assert b"theirs" in target.read_bytes()


def test_a_retrieve_checks_every_path_before_it_writes(deployed: Team, evalmeta: Program, tmp_path: Path) -> None:
    for name in "AB":
        change_in_org(deployed, evalmeta, name)
    before = deployed.path("A").read_bytes()
    deployed.path("B").unlink()
    deployed.path("B").symlink_to(tmp_path / "outside")

    done = evalmeta("retrieve")

    assert "a link leads out of the project" in done.err
    assert deployed.path("A").read_bytes() == before


def test_what_a_retrieve_wrote_before_it_failed_is_remembered(
    deployed: Team, evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "AB":
        change_in_org(deployed, evalmeta, name)

    def fail_at_b(root: Path, files: Iterable[tuple[Path, bytes]]) -> Iterator[Path]:
        for path, content in files:
            if path.name.startswith("B"):
                raise ProjectError("B: cannot be written")
            yield from write_files(root, [(path, content)])

    with monkeypatch.context() as patched:
        patched.setattr("evalmeta.api.retrievals.write_files", fail_at_b)
        assert evalmeta("retrieve").code != 0
    change_in_org(deployed, evalmeta, "A", "again")

    assert evalmeta("retrieve").code == 0
    assert b"again" in deployed.path("A").read_bytes()


def test_a_retrieve_sweeps_what_a_killed_one_left_beside_a_definition(deployed: Team, evalmeta: Program) -> None:
    path = deployed.path("A")
    left, other = path.with_name(f".{path.name}.x7_kd02a"), path.with_name(".notes.x7_kd02a")
    for file in (left, other):
        file.touch()
        os.utime(file, (0, 0))

    assert evalmeta("retrieve").code == 0
    assert (left.exists(), other.exists()) == (False, True)


def test_a_conflict_counts_its_files_without_the_files_that_were_not_looked_at(
    deployed: Team, evalmeta: Program
) -> None:
    change_in_org(deployed, evalmeta, "A")
    assert "\n1 error in 1 file\n" in evalmeta("deploy").err


def killed(moment: str, *arguments: str) -> None:
    """Runs a command that is killed at a moment."""
    done = subprocess.run([sys.executable, "-c", KILLED, MOMENTS[moment], *arguments], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_deployment_that_is_killed_is_no_conflict_with_oneself(
    deployed: Team, evalmeta: Program, moment: str
) -> None:
    deployed.write("A", "second")
    killed(moment, "deploy")
    deployed.write("A", "third")

    assert "conflict" not in evalmeta("status").out
    assert evalmeta("deploy").code == 0
    assert "are the same" in evalmeta("status").out


@pytest.mark.slow
def test_a_retrieve_after_a_killed_deployment_offers_to_keep_what_was_changed_since(
    deployed: Team, evalmeta: Program
) -> None:
    deployed.write("A", "second")
    killed("after it was committed", "deploy")
    deployed.write("A", "third")

    assert "Keep yours: evalmeta deploy\n" in evalmeta("retrieve").err


@pytest.mark.slow
def test_changes_of_others_after_a_killed_deployment_are_still_a_conflict(deployed: Team, evalmeta: Program) -> None:
    deployed.write("A", "second")
    killed("after it was committed", "deploy")
    change_in_org(deployed, evalmeta, "A")
    deployed.write("A", "third")

    assert "A was changed here and in the org" in evalmeta("deploy").err


@pytest.mark.slow
def test_what_a_killed_deployment_sent_counts_once(deployed: Team, evalmeta: Program) -> None:
    deployed.write("A", "second")
    killed("after it was committed", "deploy")
    deployed.write("A", "third")
    evalmeta("deploy")
    change_in_org(deployed, evalmeta, "A", "second")
    deployed.write("A", "fourth")

    assert "A was changed here and in the org" in evalmeta("deploy").err
