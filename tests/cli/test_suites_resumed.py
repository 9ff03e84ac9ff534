"""A suite is one thing: what a command with many tests began is completed, or says what is missing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

import pytest

from client.salesforce import Scene, case, done, salesforce
from client.servers import TOKEN
from evalmeta.api.servers import make_token
from evalmeta.client.logins import user_logins
from evalmeta.model.login import Login, Secrets
from evalmeta.package.project import find_project
from evalmeta.store.database import open_database
from org.servers import served
from stores import store_in
from suites import make_suite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome
    from suites import Suite

    Program = Callable[..., Outcome]

TESTS = 12
WAIT = 120


class Stopped(NamedTuple):
    """A suite whose command was stopped; `begun` are the tests that had started, and `missing` the others."""

    suite: Suite
    begun: list[str]
    missing: list[str]

    def file(self, name: str) -> Path:
        """Return the file of a test."""
        return self.suite.root / "aiEvaluationDefinitions" / f"{name}.aiEvaluationDefinition"


def stop(suite: Suite, evalmeta: Program, *words: str) -> Stopped:
    """Run the suite with a command that Ctrl-C stops while its tests are starting, and say which tests had a run."""
    interruption = Thread(target=lambda: [wait_for_a_run(suite, runs(suite)), os.kill(os.getpid(), signal.SIGINT)])
    interruption.start()
    assert evalmeta("test", "run", ".", "--wait", *words).code == 130
    interruption.join()
    # A start that was in progress is carried out by its thread, which a process would wait for at its end.
    count = -1
    while count != runs(suite):
        count = runs(suite)
        time.sleep(0.3)
    return stopped_of(suite)


def wait_for_a_run(suite: Suite, before: int) -> None:
    """Wait until the first test has a run."""
    until = time.monotonic() + WAIT
    while runs(suite) <= before:
        assert time.monotonic() < until
        time.sleep(0.001)


def runs(suite: Suite) -> int:
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        return int(database.query("SELECT count(*) FROM run")[0][0])


def stopped_of(suite: Suite) -> Stopped:
    begun = started(suite)
    return Stopped(suite, begun, [name for name in names(suite) if name not in begun])


def names(suite: Suite) -> list[str]:
    return [f"Test_{number:02}" for number in range(suite.tests)]


def started(suite: Suite) -> list[str]:
    """Return the tests with a run in the newest suite."""
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        sql = "SELECT definition FROM run WHERE suite = (SELECT id FROM suite ORDER BY created_at DESC) ORDER BY place"
        return [name for (name,) in database.query(sql)]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite whose agent answers at once."""
    made = make_suite(tmp_path / "project", tests=TESTS, cases=2, wanted=0, concurrency=4)
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def killed(suite: Suite, program: list[str]) -> Stopped:
    """The suite after its command was killed while its tests were starting."""
    command = [*program, "test", "run", ".", "--wait"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        wait_for_a_run(suite, 0)
        running.kill()
    assert running.returncode == -signal.SIGKILL
    return stopped_of(suite)


@pytest.fixture
def stopped(suite: Suite, evalmeta: Program) -> Stopped:
    """The suite after Ctrl-C while its tests were starting."""
    return stop(suite, evalmeta)


def reported(outcome: Outcome) -> list[str]:
    """Return the tests in a JSON report, in order."""
    return [run["evalmeta"]["definition"] for run in json.loads(outcome.out)["result"]]


@pytest.mark.slow
def test_a_suite_that_was_killed_says_what_is_missing_and_is_completed(evalmeta: Program, killed: Stopped) -> None:
    assert killed.missing
    results = evalmeta("test", "results", "--job-id", "latest")
    assert results.code == 1
    assert f"the suite is not complete: {len(killed.missing)} tests never started: {killed.missing[0]}, " in results.err

    resumed = evalmeta("test", "resume", "--unfinished", "--json")
    assert (resumed.code, reported(resumed)) == (0, names(killed.suite))
    assert f"{len(killed.missing)} tests never started, and start now: {killed.missing[0]}, " in resumed.err
    # Only the questions that were in progress may be asked again.
    again = Counter(killed.suite.asked()) - Counter(killed.suite.questions)
    assert (set(killed.suite.asked()), again.total() <= 4) == (set(killed.suite.questions), True)


@pytest.mark.slow
def test_a_completed_suite_is_completed_again_without_a_question(evalmeta: Program, stopped: Stopped) -> None:
    evalmeta("test", "resume", "--unfinished")
    asked = stopped.suite.asked()
    assert "No run of this project is unfinished" in evalmeta("test", "resume", "--unfinished").err
    for name in ("latest", "4KB000000000001GAA", "4KB000000000012GAA"):
        again = evalmeta("test", "resume", "--job-id", name, "--json")
        assert (again.code, reported(again)) == (0, names(stopped.suite))
    assert reported(evalmeta("test", "results", "--job-id", "latest", "--json")) == names(stopped.suite)
    assert reported(evalmeta("test", "results", "--job-id", "latest:Test_03", "--json")) == ["Test_03"]
    assert stopped.suite.asked() == asked


@pytest.mark.slow
def test_the_id_of_one_run_completes_its_suite(evalmeta: Program, stopped: Stopped) -> None:
    resumed = evalmeta("test", "resume", "--job-id", "4KB000000000001GAA", "--json")
    assert (resumed.code, reported(resumed)) == (0, names(stopped.suite))


@pytest.mark.slow
@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_a_test_that_changed_before_it_started_is_refused_and_the_others_are_completed(
    evalmeta: Program, stopped: Stopped, change: str
) -> None:
    *others, last = stopped.missing
    file = stopped.file(last)
    content = file.read_text()
    if change == "edited":
        file.write_text(content.replace("Question 11 02", "Question 11 09"))
    else:
        file.unlink()
    refused = evalmeta("test", "resume", "--job-id", "latest", "--json")
    assert (refused.code, reported(refused)) == (2, [*stopped.begun, *others])
    what = "changed since the suite began" if change == "edited" else "cannot be found any more"
    assert f"never started, and cannot start now: {what}: {last}" in refused.err
    assert evalmeta("test", "resume", "--unfinished").code == 2

    if change == "edited":
        now = evalmeta("test", "resume", "--unfinished", "--ignore-changes", "--json")
        assert (now.code, "Question 11 09" in stopped.suite.asked()) == (0, True)
    else:
        file.write_text(content)
        now = evalmeta("test", "resume", "--unfinished", "--json")
    assert (now.code, reported(now)) == (0, names(stopped.suite))


def test_tests_that_were_given_up_are_no_longer_due_but_their_suite_never_passes(
    evalmeta: Program, stopped: Stopped
) -> None:
    canceled = evalmeta("test", "cancel", "--unfinished")
    assert f"{len(stopped.missing)} tests will not start: {stopped.missing[0]}, " in canceled.err
    assert "No run of this project is unfinished" in evalmeta("test", "resume", "--unfinished").err
    resumed = evalmeta("test", "resume", "--job-id", "latest")
    assert resumed.code == 1
    assert f"{len(stopped.missing)} tests canceled before the start: {stopped.missing[0]}, " in resumed.err


@pytest.mark.slow
def test_tests_that_another_agent_would_answer_start_only_with_mixed(evalmeta: Program, stopped: Stopped) -> None:
    folder, away = stopped.file("").parent, stopped.suite.root / "away"
    folder.rename(away)
    folder.mkdir()
    for name in stopped.begun:
        (away / stopped.file(name).name).rename(stopped.file(name))
    assert evalmeta("test", "resume", "--unfinished").code == 2
    for file in away.iterdir():
        file.rename(folder / file.name)
    agent = stopped.suite.root / "desk.py"
    agent.write_text(f"{agent.read_text()}\nversion = 2\n")
    refused = evalmeta("test", "resume", "--unfinished")
    assert (refused.code, started(stopped.suite)) == (2, stopped.begun)
    assert "the suite of run 4KB000000000001GAA would have answers of two agents" in refused.err
    assert evalmeta("test", "resume", "--unfinished", "--mixed").code == 0
    assert started(stopped.suite) == names(stopped.suite)


@pytest.mark.slow
def test_two_suites_in_flight_are_both_completed(evalmeta: Program, suite: Suite) -> None:
    stop(suite, evalmeta, "--case", "1")
    stop(suite, evalmeta, "--case", "2")
    resumed = evalmeta("test", "resume", "--unfinished", "--json")
    assert (resumed.code, reported(resumed)) == (0, names(suite) * 2)
    assert set(suite.asked()) == set(suite.questions)
    assert reported(evalmeta("test", "results", "-i", "latest", "--json")) == names(suite)
    assert reported(evalmeta("test", "results", "-i", "previous", "--json")) == names(suite)


@pytest.mark.slow
def test_a_shard_is_completed_as_a_shard_and_its_skipped_tests_are_not_missing(evalmeta: Program, suite: Suite) -> None:
    stop(suite, evalmeta, "--shard", "2/3")
    resumed = evalmeta("test", "resume", "--unfinished")
    assert resumed.code == 0
    first = set(suite.asked())
    suite.forget()
    for shard in ("1/3", "3/3"):
        assert evalmeta("test", "run", ".", "--shard", shard, "--wait").code == 0
    assert (first & set(suite.asked()), first | set(suite.asked())) == (set(), set(suite.questions))
    assert "No run of this project is unfinished" in evalmeta("test", "resume", "--unfinished").err


def test_a_command_that_runs_nothing_leaves_no_suite(evalmeta: Program, suite: Suite) -> None:
    evalmeta("test", "run", "aiEvaluationDefinitions/Test_00.aiEvaluationDefinition", "--wait")
    shards = [f"{number}/64" for number in range(1, 65)]
    empty = next(
        shard
        for shard in shards
        if "Nothing was run: no case is in shard" in evalmeta("test", "run", ".", "--shard", shard, "--wait").err
    )
    assert empty
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        assert database.query("SELECT count(*) FROM suite WHERE id NOT IN (SELECT suite FROM run)") == [(0,)]


@pytest.mark.slow
def test_the_failed_cases_of_a_suite_that_was_killed_are_completed(evalmeta: Program, suite: Suite) -> None:
    wrong = [question for question in suite.questions if question.endswith("02")]
    suite.write("wrong", *wrong)
    assert evalmeta("test", "run", ".", "--wait").code == 100
    suite.forget()
    stop(suite, evalmeta, "--last-failed")
    suite.write("wrong", "nothing")
    resumed = evalmeta("test", "resume", "--unfinished", "--json")
    assert (resumed.code, reported(resumed)) == (0, names(suite))
    assert set(suite.asked()) == set(wrong)


@pytest.mark.slow
def test_the_names_latest_and_previous_compare_two_suites(evalmeta: Program, suite: Suite) -> None:
    evalmeta("test", "run", ".", "--wait")
    suite.write("wrong", "Question 04 02")
    evalmeta("test", "run", ".", "--wait")
    compared = json.loads(evalmeta("test", "compare", "previous", "latest", "--json").out)["result"]
    assert [(test["before"], test["after"]) for test in compared] == [
        (f"4KB0000000000{number:02}GAA", f"4KB0000000000{number + TESTS:02}GAA") for number in range(1, TESTS + 1)
    ]
    alone = json.loads(evalmeta("test", "compare", "latest", "--json").out)["result"]
    assert [test["after"] for test in alone] == [test["after"] for test in compared]
    again = evalmeta("test", "run", ".", "--failed-from", "latest", "--wait", "--json")
    assert reported(again) == ["Test_04"]
    # A suite is compared with the one before it that had one of its tests.
    assert reported(evalmeta("test", "results", "-i", "previous", "--json")) == names(suite)
    partly = evalmeta("test", "compare", "previous", "latest")
    assert "11 tests of previous did not run in latest: Test_00, Test_01, Test_02 and 8 more" in partly.err


@pytest.mark.slow
def test_the_only_failing_case_of_a_number_in_the_latest_suite_is_accepted(evalmeta: Program, suite: Suite) -> None:
    suite.write("wrong", "Question 04 02")
    evalmeta("test", "run", ".", "--wait")
    accepted = evalmeta("test", "accept", "--job-id", "latest", "--case", "2", "--yes", "--json")
    assert json.loads(accepted.out)["result"]["file"] == "aiEvaluationDefinitions/Test_04.aiEvaluationDefinition"
    refused = evalmeta("test", "accept", "--job-id", "latest", "--case", "1", "--yes")
    assert (refused.code, "latest is a suite of 12 runs, and one run is needed" in refused.err) == (2, True)


@pytest.mark.usefixtures("suite")
def test_a_name_of_several_runs_is_refused_where_one_is_needed(evalmeta: Program) -> None:
    evalmeta("test", "run", ".", "--wait")
    refused = evalmeta("test", "rescore", "latest")
    assert refused.code == 2
    assert "latest is a suite of 12 runs, and one run is needed: Test_00, Test_01, Test_02 and 9 more" in refused.err
    assert "Name a test of it: latest:Test_00" in refused.err
    assert evalmeta("test", "rescore", "latest:Test_00").code == 0


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A folder without agents, and what logs in from there."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "evalmeta.toml").touch()
    monkeypatch.chdir(tmp_path / "ours")
    return lambda url, token: user_logins().save(Login("me@dev.example", url, alias="dev"), Secrets(token))


@pytest.mark.slow
def test_a_wait_that_times_out_in_a_salesforce_org_leaves_tests_that_a_resume_starts(
    evalmeta: Program, elsewhere: Callable[[str, str], None]
) -> None:
    going = Scene("IN_PROGRESS", done(case(1), case(2, status="IN_PROGRESS"), status="IN_PROGRESS"))
    passed = Scene("COMPLETED", done(case(1), case(2)))
    with salesforce([*[going] * 6, passed], [passed], others=("Returns", "Visits_2")) as org:
        elsewhere(org.url, TOKEN)
        over = evalmeta("test", "run", "-o", "dev", "--wait", "0.001")
        assert (over.code, "Not started: Returns, Visits_2." in over.err) == (69, True)
        results = evalmeta("test", "results", "--job-id", "latest")
        assert (results.code, "2 tests never started: Returns, Visits_2" in results.err) == (1, True)

        resumed = evalmeta("test", "resume", "--job-id", "latest", "--json")
        assert (resumed.code, reported(resumed)) == (0, ["Orders", "Returns", "Visits_2"])
        assert len(org.starts) == 3
    assert evalmeta("test", "resume", "--job-id", "latest").code == 0


def test_a_test_that_was_deployed_again_before_it_started_is_refused_in_a_salesforce_org(
    evalmeta: Program, elsewhere: Callable[[str, str], None]
) -> None:
    going = Scene("IN_PROGRESS", done(case(1), status="IN_PROGRESS"))
    with salesforce([going], others=("Returns",), modified="2026-01-01T00:00:00.000Z") as org:
        elsewhere(org.url, TOKEN)
        evalmeta("test", "run", "-o", "dev", "--wait", "0.001")
        org.deploy_again("2026-02-02T00:00:00.000Z")
        refused = evalmeta("test", "resume", "--job-id", "latest", "--wait", "0.001")
        assert "cannot start now: changed since the suite began: Returns" in refused.err
        evalmeta("test", "resume", "--job-id", "latest", "--wait", "0.001", "--ignore-changes")
        evalmeta("test", "cancel", "--job-id", "latest")
        assert len(org.starts) == 1
    assert "1 test canceled before the start: Returns" in evalmeta("test", "results", "-i", "latest").err


@pytest.mark.slow
def test_a_suite_in_a_served_org_is_completed_after_its_client_was_killed(
    evalmeta: Program, suite: Suite, elsewhere: Callable[[str, str], None], program: list[str]
) -> None:
    theirs = find_project(suite.root)
    with served(theirs) as url:
        elsewhere(url, make_token(theirs))
        shutil.copytree(suite.root / "aiEvaluationDefinitions", "aiEvaluationDefinitions")
        assert evalmeta("deploy", "-o", "dev").code == 0
        command = [*program, "test", "run", "-o", "dev", "--wait"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            wait_for_a_run(suite, 0)
            running.kill()
        assert runs(suite) < TESTS
        resumed = evalmeta("test", "resume", "--unfinished", "--json")
        assert (resumed.code, reported(resumed)) == (0, names(suite))
        again = evalmeta("test", "resume", "--job-id", "latest", "--json")
        assert (again.code, reported(again)) == (0, names(suite))
    # A start whose reply was lost is not repeated.
    assert (runs(suite), sorted(suite.asked())) == (TESTS, suite.questions)
