"""`--changed-since` leaves out a test only if all that it depends on is known, and is as it was at a commit."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from api.runs.test_origins import git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]

SCRIPT = """\
start_agent router:
    actions:
        Find:
            target: "flow://Find"
    reasoning:
        actions:
            find: @actions.Find
"""
SPEC = "subject: {}\ntestCases:\n- {{input: Hi, contains: Done}}\n"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives a repository with two agents, and a test of each, in one commit."""
    monkeypatch.chdir(tmp_path)
    files = {
        "sfdx-project.json": '{"packageDirectories": [{"path": "app"}]}',
        "evalmeta.toml": "[run]\nconcurrency = 1\n",
        ".gitignore": ".evalmeta/\n",
        "actions/Find.yaml": "- outputs: {}\n",
        "actions/Other.yaml": "- outputs: {}\n",
    }
    for name in ("A", "B"):
        files |= {
            f"app/aiAuthoringBundles/{name}/{name}.agent": SCRIPT,
            f"specs/{name}.yaml": SPEC.format(name),
            f"rules/{name}.yaml": "rules:\n- answer: Done\n",
        }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    return tmp_path


def ran(outcome: Outcome) -> list[str]:
    return re.findall(r"^(?:ok )?specs/(\w)\.yaml: (?:subject|\d+ passed)", outcome.out, re.MULTILINE)


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("since", ["main", "HEAD"])
def test_nothing_changed_is_said_and_passes(evalmeta: Evalmeta, since: str) -> None:
    done = evalmeta("run", "--changed-since", since)
    assert done.code == 0
    assert ran(done) == []
    assert f"Not run, because nothing changed since {since}: specs/A.yaml, specs/B.yaml." in done.err
    assert f"Nothing was run: nothing changed since {since}." in done.err


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("specs/A.yaml", SPEC.format("A") + "# more\n", ["A"]),
        ("app/aiAuthoringBundles/B/B.agent", SCRIPT + "# more\n", ["B"]),
        ("rules/B.yaml", "rules:\n- answer: Done.\n", ["B"]),
        ("actions/Find.yaml", "- outputs: {}\n# more\n", ["A", "B"]),
        ("actions/New.yaml", "- outputs: {}\n", ["A", "B"]),
        ("evalmeta.toml", "[run]\nconcurrency = 2\n", ["A", "B"]),
        ("readme.txt", "more", []),
    ],
)
def test_what_a_test_depends_on_lets_it_run(
    desk: Path, evalmeta: Evalmeta, file: str, text: str, expected: list[str]
) -> None:
    (desk / file).write_text(text)
    assert ran(evalmeta("run", "--changed-since", "main")) == expected
    # A commit of the change is compared as the files are.
    git(desk, "add", "--all")
    git(desk, "commit", "--quiet", "--message", "two")
    assert ran(evalmeta("run", "--changed-since", "HEAD~1")) == expected
    assert ran(evalmeta("run", "--changed-since", "main")) == []


@pytest.mark.parametrize("file", ["actions/Other.yaml", "evalmeta.toml"])
def test_a_file_that_is_gone_lets_its_tests_run(desk: Path, evalmeta: Evalmeta, file: str) -> None:
    (desk / file).unlink()
    assert ran(evalmeta("run", "--changed-since", "main")) == ["A", "B"]


def test_a_new_test_that_git_does_not_know_runs(desk: Path, evalmeta: Evalmeta) -> None:
    (desk / "specs/A.yaml").rename(desk / "specs/C.yaml")
    done = evalmeta("run", "--changed-since", "main")
    assert ran(done) == ["C"]


def test_packed_commits_are_read_too(desk: Path, evalmeta: Evalmeta) -> None:
    for number in range(8):
        (desk / "specs/A.yaml").write_text(SPEC.format("A") + f"# {number}\n")
        git(desk, "commit", "--quiet", "--all", "--message", str(number))
    git(desk, "repack", "-a", "-d", "-f", "--quiet")
    git(desk, "tag", "old", "HEAD~8")
    assert ran(evalmeta("run", "--changed-since", "old")) == ["A"]
    assert ran(evalmeta("run", "--changed-since", git(desk, "rev-parse", "HEAD"))) == []


@pytest.mark.parametrize(
    "line", ["- {input: Hi, contains: Done, function: 'checks:good'}\n", "- {input: Hi, function: 'checks:good'}\n"]
)
def test_what_code_decides_is_never_left_out(desk: Path, evalmeta: Evalmeta, line: str) -> None:
    (desk / "checks.py").write_text("def good(answer):\n    return True\n")
    (desk / "specs/A.yaml").write_text(f"subject: A\ntestCases:\n{line}")
    git(desk, "add", "--all")
    git(desk, "commit", "--quiet", "--message", "two")
    done = evalmeta("run", "--changed-since", "main")
    assert ran(done) == ["A"]
    assert "Run, because what the agent or a check depends on is not known: specs/A.yaml." in done.err


def test_an_agent_whose_files_are_not_known_is_always_asked(desk: Path, evalmeta: Evalmeta) -> None:
    (desk / "desk.py").write_text("def answer(utterance):\n    return 'Done'\n")
    (desk / "evalmeta.toml").write_text('[subjects.A]\nadapter = "python"\ntarget = "desk:answer"\n')
    git(desk, "add", "--all")
    git(desk, "commit", "--quiet", "--message", "two")
    assert ran(evalmeta("run", "--changed-since", "main")) == ["A"]


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("since", ["nothing", "HEAD~5", "0" * 40, "HEAD~x"])
def test_a_commit_that_cannot_be_read_lets_all_tests_run(evalmeta: Evalmeta, since: str) -> None:
    done = evalmeta("run", "--changed-since", since)
    assert ran(done) == ["A", "B"]
    assert f"All tests run, because the commit '{since}' cannot be read." in done.err


def test_without_a_repository_all_tests_run(desk: Path, evalmeta: Evalmeta) -> None:
    shutil.rmtree(desk / ".git")
    done = evalmeta("run", "--changed-since", "main")
    assert ran(done) == ["A", "B"]
    assert "All tests run, because the project is not in a git repository." in done.err


@pytest.mark.usefixtures("desk")
def test_tests_of_an_org_cannot_be_chosen_by_their_files(evalmeta: Evalmeta) -> None:
    refused = evalmeta("test", "run", "--changed-since", "main", "--wait")
    assert refused.code == 2
    assert "--changed-since is for tests in files" in refused.err
