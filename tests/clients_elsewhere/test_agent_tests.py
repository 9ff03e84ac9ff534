from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from clients_elsewhere.workspace import asking, new_name

if TYPE_CHECKING:
    from clients_elsewhere.node import Outcome
    from clients_elsewhere.orgs import Org
    from clients_elsewhere.workspace import Workspace

RUN, RESULTS = "agent test run", "agent test results"


@pytest.fixture(scope="module")
def run_id(org: Org) -> str:
    """A run in which one case passed and one failed."""
    name = new_name("Finished")
    org.have(**{name: asking(name, 'Where\'s my "order" <7>?', "I return it")})
    return org.run(name)


def test_tests_are_listed_with_their_runner(workspace: Workspace) -> None:
    name, _ = workspace.deployed("Listed")

    done = workspace.sf("agent test list --json")

    [row] = [each for each in done.reply.result if each.fullName == name]
    assert (done.code, row.type, row.id[:3]) == (0, "AiEvaluationDefinition", "4KA")


def test_a_run_is_followed_to_its_end(workspace: Workspace) -> None:
    name = asked(workspace, "Where's my order 7?", "I return it")

    done = workspace.sf(RUN, "--api-name", name, "--wait", "5", "--verbose")

    assert done.code == 0, done
    for line in ("Completed Test Cases: 2/2", "Passing Test Cases: 1", "Failing Test Cases: 1"):
        assert f"   {line}\n" in done.out
    assert "Utterance: Where's my order 7?\n" in done.out
    assert "Topic Pass %    50.00%" in done.out
    assert '"name": "FindOrder",' in done.out


def test_a_run_with_errors_exits_with_1(workspace: Workspace) -> None:
    name = asked(workspace, "Where is it?", "break")

    done = workspace.sf(RUN, "--api-name", name, "--wait", "5")

    assert done.code == 1, done
    assert "Test Case #2  Topic" in done.out
    # How wide columns are hangs on the error's text.
    assert re.search(r"Topic\W+Error\W+Orders", done.out)


def test_a_run_is_resumed(workspace: Workspace) -> None:
    word = new_name("Word")
    name = asked(workspace, f"wait for {word}")
    started = workspace.sf(RUN, "--json", "--api-name", name, "--output-dir", "out", "--result-format", "junit")
    assert (started.code, started.reply.result.status) == (0, "NEW")

    early = workspace.sf(RESULTS, "--json", "--job-id", started.reply.result.runId)
    assert (early.code, early.reply.result.status) == (0, "IN_PROGRESS")

    workspace.org.release(word)
    done = workspace.sf("agent test resume --wait 5 --job-id", started.reply.result.runId)
    file = f"out/test-result-{started.reply.result.runId}.xml"
    assert (done.code, f"Created JUnit file at {file}" in done.out) == (0, True), done
    assert '<testsuite name="1"' in (workspace.folder / file).read_text()


def test_an_unknown_test_is_reported(workspace: Workspace) -> None:
    done = workspace.sf(RUN, "--json", "--api-name", "Never_There", "--test-runner", "testing-center")

    assert (done.code, done.reply.name) == (2, "TestNotFound"), done


def test_an_org_without_tests_is_reported(workspace: Workspace, idle: Org) -> None:
    done = workspace.sf(RUN, "--json", "--api-name", "Never_There", org=idle)

    assert (done.code, done.reply.name) == (1, "NoTestDefinitionsFound"), done


def test_an_unknown_run_is_reported(workspace: Workspace) -> None:
    done = workspace.sf(RESULTS, "--json", "--job-id", "4KB000000000999GAA")

    assert (done.code, done.reply.name) == (2, "JobNotFound"), done


def test_results_are_shown_to_people(workspace: Workspace, run_id: str) -> None:
    done = results(workspace, run_id, "human")

    assert 'Utterance: Where\'s my "order" <7>?\n' in done.out
    assert "│ Topic │ Fail   │" in done.out
    assert "Topic Pass %    50.00%" in done.out


def test_results_are_given_as_json(workspace: Workspace, run_id: str) -> None:
    first, second = json.loads(results(workspace, run_id, "json").out)["testCases"]

    assert first["inputs"]["utterance"] == 'Where\'s my "order" <7>?'
    assert [case["testResults"][0]["result"] for case in (first, second)] == ["PASS", "FAILURE"]


def test_results_are_given_as_junit(workspace: Workspace, run_id: str) -> None:
    out = results(workspace, run_id, "junit").out

    assert '<testsuites name="Desk" tests="2" failures="1"' in out
    assert re.search(r'<failure message="[^"]*Orders[^"]*" name="topic_assertion"></failure>', out)


def test_results_are_given_as_tap(workspace: Workspace, run_id: str) -> None:
    lines = results(workspace, run_id, "tap").out.splitlines()

    assert lines[:4] == ["Tap Version 14", "1..2", "ok 1 1.topic_assertion", "not ok 2 2.topic_assertion"]
    assert "  message: Unknown error" not in lines


def test_a_run_is_canceled(workspace: Workspace) -> None:
    name = asked(workspace, f"wait for {new_name('word')}")
    run = workspace.org.start(name)

    done = workspace.sf(
        f"api request rest --method POST --body {{}} services/data/v66.0/einstein/ai-evaluations/runs/{run}/cancel"
    )

    assert (done.code, done.reply.success) == (0, True), done


def asked(workspace: Workspace, *utterances: str) -> str:
    """Deploy a definition with these utterances and return its name."""
    name = new_name("Asked")
    workspace.org.have(**{name: asking(name, *utterances)})
    return name


def results(workspace: Workspace, run_id: str, style: str) -> Outcome:
    """Let sf write the results of a run to stdout."""
    done = workspace.sf(RESULTS, "--job-id", run_id, "--result-format", style)
    assert done.code == 0, done
    return done
