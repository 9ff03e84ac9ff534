"""Run again only what failed: --last-failed, and the command that reports print."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
import pathlib
def answer(utterance):
    with pathlib.Path("asked.txt").open("a") as log:
        log.write(utterance + "\\n")
    if utterance in pathlib.Path("broken.txt").read_text().splitlines():
        raise ConnectionError("no route to host")
    is_wrong = utterance in pathlib.Path("wrong.txt").read_text().splitlines()
    return {"outcome": "Yes.", "topic": "Other" if is_wrong else "Orders", "actions": []}
"""


class Suite:
    """A project whose agent writes down what it is asked, and answers wrongly or not at all on request."""

    def __init__(self, evalmeta: Program) -> None:
        self.evalmeta = evalmeta
        Path("desk.py").write_text(AGENT)
        Path("evalmeta.toml").write_text('[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
        Path("aiEvaluationDefinitions").mkdir()
        self.answers()

    def test(self, name: str, *utterances: str, scorer: str = "") -> None:
        cases = "".join(
            f"<testCase><number>{number}</number><inputs><utterance>{text}</utterance></inputs>"
            "<expectation><name>topic_sequence_match</name><expectedValue>Orders</expectedValue></expectation>"
            f"{scorer}</testCase>"
            for number, text in enumerate(utterances, 1)
        )
        Path(f"aiEvaluationDefinitions/{name}.aiEvaluationDefinition").write_text(
            f'<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata"><name>{name}</name>'
            f"<subjectName>Desk</subjectName><subjectType>AGENT</subjectType>{cases}</AiEvaluationDefinition>"
        )

    def answers(self, *, wrong: tuple[str, ...] = (), broken: tuple[str, ...] = ()) -> None:
        Path("wrong.txt").write_text("\n".join(wrong))
        Path("broken.txt").write_text("\n".join(broken))

    def run(self, *words: str) -> tuple[Outcome, list[str]]:
        """Runs tests, and gives what the agent was asked."""
        Path("asked.txt").write_text("")
        done = self.evalmeta("test", "run", "--wait", "--retries", "0", *words)
        return done, sorted(Path("asked.txt").read_text().splitlines())


@pytest.fixture
def suite(evalmeta: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """Gives two deployed tests of three cases each."""
    monkeypatch.chdir(tmp_path)
    made = Suite(evalmeta)
    made.test("First", "a1", "a2", "a3")
    made.test("Second", "b1", "b2", "b3")
    assert evalmeta("deploy").code == 0
    return made


def printed_commands(done: Outcome) -> list[list[str]]:
    """Returns the words of the commands that run the failed cases again, as a shell would read them."""
    lines = [line.split(": ", 1)[1] for line in done.out.splitlines() if line.startswith("To run only these again: ")]
    return [shlex.split(line)[1:] for line in lines]


def asked_by(suite: Suite, words: list[str]) -> list[str]:
    Path("asked.txt").write_text("")
    suite.evalmeta(*words)
    return sorted(Path("asked.txt").read_text().splitlines())


def test_the_printed_command_asks_exactly_the_cases_that_failed(suite: Suite) -> None:
    suite.answers(wrong=("a2", "b3"), broken=("b1",))
    done, asked = suite.run()
    assert asked == ["a1", "a2", "a3", "b1", "b2", "b3"]
    [words] = printed_commands(done)
    assert words == ["test", "run", "--last-failed", "--wait", "--retries", "0"]
    assert asked_by(suite, words) == ["a2", "b1", "b3"]


def test_the_printed_command_writes_no_report_over_that_of_all_cases(suite: Suite) -> None:
    suite.answers(wrong=("a2",))
    done, _ = suite.run("--report", "run.xml", "--report=run.html")
    [words] = printed_commands(done)
    assert words == ["test", "run", "--last-failed", "--wait", "--retries", "0"]


def test_the_printed_command_of_results_names_the_run(suite: Suite) -> None:
    suite.answers(wrong=("a2", "b3"))
    suite.run()
    suite.run("-n", "First", "--case", "1")
    [words] = printed_commands(suite.evalmeta("test", "results", "--job-id", "4KB000000000002GAA"))
    assert words == ["test", "run", "--failed-from", "4KB000000000002GAA", "--wait"]
    assert asked_by(suite, words) == ["b3"]


@pytest.mark.parametrize("selection", [("--case", "1-2"), ("-n", "First"), ("--shard", "2/2"), ("--seed", "3")])
def test_the_printed_command_keeps_the_selection(suite: Suite, selection: tuple[str, str]) -> None:
    wrong = ("a1", "a2", "a3", "b1", "b2", "b3")
    suite.answers(wrong=wrong)
    suite.run()
    done, asked = suite.run(*selection)
    [words] = printed_commands(done)
    assert asked_by(suite, words) == asked


def test_a_path_with_blanks_is_quoted(suite: Suite) -> None:
    folder = Path("my tests")
    Path("aiEvaluationDefinitions").rename(folder)
    suite.answers(wrong=("a2", "b3"))
    done, _ = suite.run(str(folder / "First.aiEvaluationDefinition"), "my tests/Second.aiEvaluationDefinition")
    assert "'my tests/First.aiEvaluationDefinition'" in done.out
    [words] = printed_commands(done)
    assert asked_by(suite, words) == ["a2", "b3"]
    [words] = printed_commands(suite.evalmeta("test", "results", "-r"))
    assert asked_by(suite, words) == ["b3"]


def test_a_run_that_passed_prints_no_command(suite: Suite) -> None:
    assert not printed_commands(suite.run()[0])


def test_if_nothing_failed_nothing_is_asked(suite: Suite) -> None:
    suite.run()
    done, asked = suite.run("--last-failed")
    assert (done.code, asked) == (0, [])
    assert "Not run again, because nothing failed in their last runs: 2 tests." in done.err
    assert "Nothing was run: no case is left." in done.err


def test_if_nothing_failed_the_reports_are_empty(suite: Suite) -> None:
    files = ("--report", "run.xml", "--report", "run.json", "--result-format", "junit", "--output-dir", "results")
    suite.run(*files)
    assert '<testsuites name="evalmeta" tests="6"' in Path("run.xml").read_text()

    done, asked = suite.run("--last-failed", *files)
    assert (done.code, asked, Path("run.json").read_text()) == (0, [], "[]\n")
    empty = Path("results/test-result-none.xml").read_text()
    assert 'tests="0" failures="0"' in empty
    assert done.out == Path("run.xml").read_text() == empty


def test_a_test_that_never_ran_runs_as_a_whole(suite: Suite) -> None:
    suite.answers(wrong=("a2",))
    suite.run("-n", "First")
    done, asked = suite.run("--lf")
    assert asked == ["a2", "b1", "b2", "b3"]
    assert "Not run before, so all cases run: Second." in done.err


@pytest.mark.parametrize("selection", [("--case", "1"), ("--shard", "1/3")])
def test_cases_that_no_run_asked_are_asked(suite: Suite, selection: tuple[str, str]) -> None:
    before = suite.run(*selection)[1]
    never = {"a1", "a2", "a3", "b1", "b2", "b3"} - {*before}
    assert before
    done, asked = suite.run("--last-failed")
    assert {*asked} == never
    assert "never asked" in done.err
    assert suite.run("--last-failed")[1] == []


def test_cases_after_a_stop_at_max_errors_are_asked(suite: Suite) -> None:
    suite.answers(broken=("a1",))
    assert suite.run("-n", "First", "--max-errors", "1", "--concurrency", "1")[1] == ["a1"]
    done, asked = suite.run("-n", "First", "--last-failed", "--max-errors", "1", "--concurrency", "1")
    assert "2 cases of First were never asked: 2-3." in done.err
    assert asked == ["a1"]
    suite.answers()
    assert suite.run("-n", "First", "--last-failed", "--case", "1")[1] == ["a1"]
    done, asked = suite.run("-n", "First", "--last-failed")
    assert asked == ["a2", "a3"]
    assert "nothing failed" not in done.err
    done, asked = suite.run("-n", "First", "--last-failed")
    assert asked == []
    assert "Not run again, because nothing failed in their last runs: 1 test." in done.err


def test_a_test_whose_runs_have_no_results_counts_as_never_run(suite: Suite) -> None:
    suite.evalmeta("test", "run", "-n", "First")
    assert suite.evalmeta("test", "cancel", "--job-id", "latest").code == 0
    done, asked = suite.run("-n", "First", "--last-failed")
    assert asked == ["a1", "a2", "a3"]
    assert "Not run before, so all cases run: First." in done.err


@pytest.mark.parametrize("before", [False, True])
def test_an_unfinished_run_is_reported_also_if_nothing_failed(suite: Suite, *, before: bool) -> None:
    if before:
        suite.run("-n", "First")
    suite.evalmeta("test", "run", "-n", "First")
    done = suite.run("-n", "First", "--last-failed", "--dry-run")[0]
    run_id = "4KB000000000002GAA" if before else "4KB000000000001GAA"
    assert f"Run {run_id} of First is not finished; its results do not count." in done.err
    assert "test resume --unfinished" in done.err


def test_cases_that_were_added_are_asked(suite: Suite) -> None:
    suite.run("-n", "First")
    suite.test("First", "new", "a1", "a2", "a3")
    suite.evalmeta("deploy")
    assert suite.run("-n", "First", "--last-failed")[1] == ["new"]


def test_cases_that_a_run_left_out_keep_their_last_result(suite: Suite) -> None:
    suite.answers(wrong=("a1", "a2"))
    suite.run()
    suite.answers()
    suite.run("-n", "First", "--case", "1")
    assert suite.run("--last-failed")[1] == ["a2"]
    assert suite.run("--last-failed")[1] == []


def test_errors_count_as_failed(suite: Suite) -> None:
    suite.answers(broken=("b2",))
    assert suite.run()[0].code == 1
    suite.answers()
    done, asked = suite.run("--last-failed")
    assert (done.code, asked) == (0, ["b2"])


@pytest.mark.parametrize("policy", [("--undecided", "fail"), ("--min-decided", "1")])
def test_undecided_cases_that_fail_the_run_count_as_failed(suite: Suite, policy: tuple[str, str]) -> None:
    suite.test("First", "a1", scorer="<expectation><name>coherence</name></expectation>")
    suite.evalmeta("deploy")
    suite.run()
    assert suite.run("--last-failed")[1] == []
    done, _ = suite.run(*policy)
    assert "case 1" in done.out
    assert suite.run("--last-failed")[1] == ["a1"]


def test_other_selections_narrow_what_failed(suite: Suite) -> None:
    suite.answers(wrong=("a1", "a2", "b1"))
    suite.run()
    assert suite.run("--last-failed", "--case", "2-3")[1] == ["a2"]
    assert suite.run("--last-failed", "-n", "Second")[1] == ["b1"]


def test_a_dry_run_shows_what_failed(suite: Suite) -> None:
    suite.answers(wrong=("a2",))
    suite.run()
    done, asked = suite.run("--last-failed", "--dry-run")
    assert "Would run 1 case: 1 question" in done.out
    assert not asked


def test_cases_that_changed_since_are_found_or_reported(suite: Suite) -> None:
    suite.answers(wrong=("a1", "a2", "a3"))
    suite.run("-n", "First")
    suite.test("First", "new", "a1", "other")
    suite.evalmeta("deploy")
    done, asked = suite.run("--last-failed", "-n", "First")
    assert asked == ["a1", "new", "other"]
    assert "Cases 2-3 of First were changed since the last run." in done.err
    assert "1 case of First was never asked: 1." in done.err


def test_a_case_that_was_removed_is_reported(suite: Suite) -> None:
    suite.answers(wrong=("a1", "a3"))
    suite.run("-n", "First")
    suite.test("First", "a1")
    suite.evalmeta("deploy")
    done, asked = suite.run("--last-failed", "-n", "First")
    assert asked == ["a1"]
    assert "Case 3 of First was removed since the last run." in done.err


def test_a_run_of_what_failed_is_not_compared_with_as_a_whole(suite: Suite) -> None:
    suite.answers(wrong=("a2",))
    suite.run("-n", "First")
    suite.run("-n", "First", "--last-failed")
    suite.run("-n", "First")
    done = suite.evalmeta("test", "compare", "4KB000000000003GAA")
    assert "4KB000000000001GAA" in done.out
    assert "4KB000000000002GAA" not in done.out


@pytest.mark.slow
def test_runs_are_named_latest_and_previous_wherever_a_command_takes_an_id(suite: Suite) -> None:
    suite.answers(wrong=("a2",))
    suite.run("-n", "First")
    suite.answers()
    suite.run("-n", "First")
    call = suite.evalmeta
    assert "4KB000000000002GAA against 4KB000000000001GAA" in call("test", "compare", "previous", "latest").out
    assert call("test", "results", "--job-id", "previous", "-q").code == 100
    assert call("test", "results", "--job-id", "latest:First").code == 0
    assert call("test", "resume", "--job-id", "latest").code == 0
    assert call("test", "rescore", "previous").code == 100
    assert suite.run("--failed-from", "previous:First")[1] == []
    assert call("test", "baseline", "-o", "baseline.json", "latest").code == 0
    assert suite.run("-n", "First", "--baseline", "previous")[0].code == 0
    assert call("test", "run", "--wait", "--extend", "latest", "--iterations", "2").code == 0
    cancel = call("test", "cancel", "--job-id", "previous:Second")
    assert "there is no run of Second here" in cancel.err


def test_a_suite_is_compared_with_the_previous_run_of_each_test(suite: Suite) -> None:
    suite.answers(wrong=("a2", "b1"))
    suite.run()
    done, _ = suite.run("--baseline", "previous")
    assert done.code == 0
    assert "exit 0: 2 failures are already in the previous runs" in done.out


def test_quiet_and_verbose_change_what_the_report_shows(suite: Suite) -> None:
    suite.answers(wrong=("a2",))
    quiet = suite.run("-n", "First", "-q", "--report", "run.xml")[0]
    assert quiet.out.splitlines()[0] == "First not passed: 1 case failed"
    assert len(quiet.out.splitlines()) == 2
    assert (quiet.err.count("\n"), Path("run.xml").is_file()) == (1, True)  # the org
    assert "ok        1 a1\n" in suite.evalmeta("test", "results", "-r", "-v").out
    done = suite.evalmeta("test", "results", "-r", "-q", "-v")
    assert (done.code, "--verbose and --quiet exclude each other" in done.err) == (2, True)


@pytest.mark.slow
def test_suspect_cases_of_all_tests_of_a_suite_are_asked_again_together(suite: Suite) -> None:
    suite.test("Long", *(f"c{number}" for number in range(1, 13)))
    suite.evalmeta("deploy")
    suite.run()
    suite.answers(wrong=("a1", "c1", "c2", "c3"))
    done, asked = suite.run("--baseline", "previous")
    assert done.err.count("Asking 4 suspect cases again.") == 2
    assert all(15 < asked.count(word) <= 21 for word in ("a1", "c1", "c2", "c3"))
    assert done.out.endswith("exit 100: 4 cases broke compared with the previous runs\n")


def test_passing_cases_that_show_whether_answers_are_alike_are_not_called_suspect(suite: Suite) -> None:
    runs = {f"c{number}": [1] * 8 + [0] * 2 if number > 1 else [1] * 10 for number in range(1, 13)}
    suite.test("Long", *runs)
    suite.evalmeta("deploy")
    cases = {
        f"{number}": {"utterance": utterance, "passed": passed, "failed": [1 - each for each in passed]}
        for number, (utterance, passed) in enumerate(runs.items(), 1)
    }
    baseline = {"evalmeta": "baseline", "version": 2, "tests": {"Long": {"subject": "Desk", "cases": cases}}}
    Path("base.json").write_text(json.dumps(baseline))
    suite.answers(wrong=("c1",))
    done, asked = suite.run("-n", "Long", "--baseline", "base.json")
    assert {*re.findall(r"Asking (\d+ \w+) cases? again", done.err)} == {"1 suspect", "5 passing", "4 passing"}
    assert asked.count("c2") > 1


def test_a_conversation_that_ended_at_its_first_turn_has_not_changed(suite: Suite) -> None:
    suite.answers(broken=("c1",))
    spec = "subject: desk:answer\ntestCases:\n- turns: [{input: c1, contains: 'Yes'}, {input: c2, contains: 'Yes'}]\n"
    Path("talk.yaml").write_text(spec)
    suite.run("talk.yaml")
    suite.answers()
    done, asked = suite.run("--last-failed", "talk.yaml")
    assert asked == ["c1", "c2"]
    assert "changed" not in done.err
