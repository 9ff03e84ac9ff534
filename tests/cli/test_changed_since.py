"""`--changed-since` leaves out a test only if all that it depends on is known, and is as it was at a commit."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from api.runs.test_origins import git
from evalmeta import limits

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
    assert f"Nothing was run: nothing that the tests depend on changed since {since}." in done.err


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("specs/A.yaml", SPEC.format("A") + "# more\n", ["A"]),
        ("app/aiAuthoringBundles/B/B.agent", SCRIPT.replace("//Find", "//Search"), ["B"]),
        ("app/aiAuthoringBundles/B/B.agent", SCRIPT + "# more\n", []),
        ("actions/B/Find.yaml", "- outputs: {}\n", ["B"]),
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
    (desk / file).parent.mkdir(exist_ok=True)
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
    assert (
        "Not left out, because evalmeta does not know what their agents or checks depend on: specs/A.yaml." in done.err
    )


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


LIBRARY = """\
start_agent router:
    reasoning:
        actions:
            loans: @utils.transition to @subagent.Loans
            rooms: @utils.transition to @subagent.Rooms
subagent Loans:
    actions:
        Renew:
            target: "flow://Renew"
    reasoning:
        instructions: "Renew books."
        actions:
            renew: @actions.Renew
subagent Rooms:
    reasoning:
        instructions: "Book rooms."
"""
CASES = """\
subject: L
testCases:
- {name: renews, input: Renew, topic: Loans, actions: [Renew]}
- {name: lends, input: Renew, topic: Loans}
- {name: books, input: Book, topic: Rooms}
- {name: says, input: Book, contains: Done}
"""
RULES = """\
rules:
- {utterance: Renew, subagent: router, call: loans}
- {utterance: Renew, subagent: Loans, call: renew}
- {utterance: Book, subagent: router, call: rooms}
- {answer: Done}
"""
NAMES = ("renews", "lends", "books", "says")
LOANS, ROOMS, SAYS, EVERY = {"renews", "lends"}, {"books"}, {"says"}, {*NAMES}
SCRIPT_FILE = "app/aiAuthoringBundles/L/L.agent"


@pytest.fixture
def library(desk: Path) -> Path:
    """Gives a repository with one agent more, which has two subagents, and a test of four cases, in a second commit."""
    for name in ("A", "B"):
        (desk / f"specs/{name}.yaml").unlink()
    files = {
        "app/aiAuthoringBundles/L/L.agent": LIBRARY,
        "specs/L.yaml": CASES,
        "rules/L.yaml": RULES,
        "actions/L/Renew.yaml": "- outputs: {}\n",
    }
    for name, text in files.items():
        (desk / name).parent.mkdir(parents=True, exist_ok=True)
        (desk / name).write_text(text)
    git(desk, "add", "--all")
    git(desk, "commit", "--quiet", "--message", "two")
    return desk


def ran_cases(outcome: Outcome) -> set[str]:
    """Return the names of the cases that ran; their inputs are unique."""
    assert outcome.code == 0, outcome.err
    [run] = json.loads(outcome.out)["result"]
    return {NAMES[case["testNumber"] - 1] for case in run["testCases"]}


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        (SCRIPT_FILE, "Renew books.", "Renew all books.", LOANS | SAYS),
        (SCRIPT_FILE, "Book rooms.", "Book any rooms.", ROOMS | SAYS),
        (SCRIPT_FILE, "start_agent router:\n", 'system:\n    instructions: "a"\nstart_agent router:\n', EVERY),
        ("actions/L/Renew.yaml", "outputs: {}", "error: down", EVERY),
        ("actions/Find.yaml", "outputs: {}", "error: down", EVERY - {"renews"}),
        ("rules/L.yaml", "Done", "'Done.'", EVERY),
        ("specs/L.yaml", "input: Book, topic", "input: book, topic", EVERY),
    ],
)
def test_only_the_cases_that_a_change_may_affect_run(
    library: Path, evalmeta: Evalmeta, file: str, old: str, new: str, expected: set[str]
) -> None:
    text = (library / file).read_text()
    assert text.count(old) == 1
    (library / file).write_text(text.replace(old, new))
    assert ran_cases(evalmeta("run", "--changed-since", "main", "--json")) == expected


def test_the_double_of_an_agent_that_is_gone_lets_its_cases_run(library: Path, evalmeta: Evalmeta) -> None:
    (library / "actions/L/Renew.yaml").rename(library / "actions/Renew.yaml")
    git(library, "add", "--all")
    git(library, "commit", "--quiet", "--message", "three")
    assert ran_cases(evalmeta("run", "--changed-since", "main~1", "--json")) == EVERY


def change_loans(library: Path) -> None:
    script = library / SCRIPT_FILE
    script.write_text(script.read_text().replace("Renew books.", "Renew all books."))


def test_how_many_cases_are_left_out_is_said_with_the_reason(library: Path, evalmeta: Evalmeta) -> None:
    change_loans(library)
    why = "of the agent only the subagent Loans changed since main, and the cases expect others"
    assert f"Not run, because {why}: specs/L.yaml (1 of 4 cases)." in evalmeta("run", "--changed-since", "main").err
    (library / "specs/L.yaml").write_text("subject: L\ntestCases:\n- {input: Book, topic: Rooms}\n")
    git(library, "commit", "--quiet", "--message", "three", "specs/L.yaml")
    done = evalmeta("run", "--changed-since", "HEAD")
    assert done.code == 0
    assert "others: specs/L.yaml (1 of 1 case)." in done.err
    assert "Nothing was run: nothing that the tests depend on changed since HEAD." in done.err


def test_a_chosen_case_that_is_not_affected_is_no_mistake(library: Path, evalmeta: Evalmeta) -> None:
    change_loans(library)
    done = evalmeta("run", "--changed-since", "main", "--case", "3")
    assert (done.code, "Nothing was run: no case is left." in done.err) == (0, True)
    assert ran_cases(evalmeta("run", "--changed-since", "main", "--case", "1,3", "--json")) == {"renews"}


def test_an_agent_that_its_change_breaks_is_not_left_out(library: Path, evalmeta: Evalmeta) -> None:
    (library / "specs/L.yaml").write_text("subject: L\ntestCases:\n- {input: Book, topic: Rooms}\n")
    git(library, "commit", "--quiet", "--all", "--message", "three")
    script = library / SCRIPT_FILE
    script.write_text(script.read_text().replace("            renew: @actions", "            extend: @actions"))
    refused = evalmeta("run", "--changed-since", "HEAD")
    assert refused.code not in {0, 100}
    assert "the subagent 'Loans' cannot call 'renew'" in refused.err


@pytest.mark.parametrize("file", ["schema.json", "test_config.json"])
def test_other_files_that_decide_about_a_test_let_it_run(desk: Path, evalmeta: Evalmeta, file: str) -> None:
    (desk / "specs/schema.json").write_text('{"type": "string"}')
    (desk / "specs/A.yaml").write_text(SPEC.format("A").replace("contains: Done", "json: {schema: schema.json}"))
    git(desk, "add", "--all")
    git(desk, "commit", "--quiet", "--message", "two")
    (desk / "specs" / file).write_text('{"type": ["string"]}')
    assert "A" in ran(evalmeta("run", "--changed-since", "HEAD"))


@pytest.mark.parametrize("after", ['{"expected": "a", "actual": "b", "right": false}\n', None])
def test_the_examples_of_a_rater_that_change_let_all_tests_run(
    desk: Path, evalmeta: Evalmeta, after: str | None
) -> None:
    examples = desk / "labels/examples.jsonl"
    examples.parent.mkdir()
    examples.write_text('{"expected": "a", "actual": "a", "right": true}\n')
    (desk / "evalmeta.toml").write_text(
        '[raters.judge]\nadapter = "llm"\nmodel = "m"\nexamples = "labels/examples.jsonl"\n'
    )
    (desk / "specs/A.yaml").write_text("subject: A\ntestCases:\n- {input: Hi, expectedOutcome: It is done}\n")
    git(desk, "add", "--all")
    git(desk, "commit", "--quiet", "--message", "two")
    arguments = ("run", "--changed-since", "HEAD", "--rater", "judge", "--dry-run")
    assert ran(evalmeta(*arguments)) == []
    examples.write_text(after) if after else examples.unlink()
    assert ran(evalmeta(*arguments)) == ["A", "B"]


@pytest.fixture
def tagged(desk: Path) -> Path:
    """Gives a repository whose test A has a tag and a named case, and has not changed since its last commit."""
    case = "- {name: greets, input: Hi, contains: Done, tags: [smoke]}\n"
    (desk / "specs/A.yaml").write_text(f"subject: A\ntestCases:\n{case}")
    git(desk, "commit", "--quiet", "--all", "--message", "two")
    return desk


@pytest.mark.parametrize("is_other_changed", [True, False])
@pytest.mark.parametrize(
    "options", [("--tag", "smoke"), ("--case", "A:1"), ("--case", "A:greets"), ("--case", "greets")]
)
def test_chosen_cases_of_a_test_that_is_left_out_are_no_mistake(
    tagged: Path, evalmeta: Evalmeta, options: tuple[str, str], *, is_other_changed: bool
) -> None:
    if is_other_changed:
        (tagged / "specs/B.yaml").write_text(SPEC.format("B") + "# more\n")
    why = "no case is left" if is_other_changed else "nothing that the tests depend on changed since HEAD"
    for more in ((), ("--dry-run",)):
        done = evalmeta("run", "--changed-since", "HEAD", *options, *more)
        assert (done.code, ran(done)) == (0, []), done.err
        assert f"Nothing was run: {why}." in done.err
    (tagged / "actions/A").mkdir()
    (tagged / "actions/A/Find.yaml").write_text("- outputs: {}\n")
    assert ran(evalmeta("run", "--changed-since", "HEAD", *options)) == ["A"]


@pytest.mark.parametrize("is_other_changed", [True, False])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tag", "smokes"), "there is no tag 'smokes'"),
        (("--case", "A:9"), "no test case matches the selection"),
        (("--case", "A:greetings"), "no case of A has the label 'greetings'"),
        (("--tag", "smoke", "--case", "B:1"), "no test case matches the selection"),
    ],
)
def test_a_choice_that_no_test_matches_stays_a_mistake(
    tagged: Path, evalmeta: Evalmeta, options: tuple[str, ...], message: str, *, is_other_changed: bool
) -> None:
    if is_other_changed:
        (tagged / "specs/B.yaml").write_text(SPEC.format("B") + "# more\n")
    refused = evalmeta("run", "--changed-since", "HEAD", *options)
    assert (refused.code, message in refused.err) == (2, True), refused.err


def test_a_script_that_is_too_large_to_be_carried_out_is_not_left_out(desk: Path, evalmeta: Evalmeta) -> None:
    # As comments alone, these would change nothing.
    comments = f"# {'é' * 100}\n" * (limits.MAX_SCRIPT_BYTES // 200)
    assert len(comments) < limits.MAX_SCRIPT_BYTES < len(comments.encode())
    (desk / "app/aiAuthoringBundles/A/A.agent").write_text(SCRIPT + comments, encoding="utf-8")
    refused = evalmeta("run", "--changed-since", "HEAD")
    assert refused.code not in {0, 100}
    assert f"larger than {limits.MAX_SCRIPT_BYTES:,} bytes" in refused.err
