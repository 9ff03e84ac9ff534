from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from cli.remote import CANCELED, GOING_ON, JOB, SUCCEEDED, calls_of, remote
from client.servers import http_reply
from evalmeta.protocol.soap import write_fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]
    Copy = Callable[..., Path]

RESUME = f"evalmeta deploy resume --job-id {JOB}"


@pytest.fixture
def project(copy_samples: Copy) -> Path:
    return copy_samples("dx-project")


@pytest.mark.usefixtures("project")
def test_an_asynchronous_deployment_prints_suggestions(evalmeta: Program) -> None:
    begun = evalmeta("deploy", "--async")

    assert (begun.code, begun.out) == (0, f"Deployment {JOB} continues in the org.\n")
    assert RESUME in begun.err


@pytest.mark.parametrize("command", ["resume", "report"])
def test_what_was_deployed_asynchronously_is_remembered_when_it_is_known_to_be_done(
    evalmeta: Program, project: Path, command: str
) -> None:
    evalmeta("deploy", "--async")
    [file] = project.rglob("Tariff_Criteria*")

    done = evalmeta("deploy", command, "--use-most-recent")
    file.write_text(file.read_text().replace("AGENT", "AGENT "))

    assert (done.code, "Deployed 3 components" in done.out) == (0, True)
    assert "changed locally" in evalmeta("status").out


def test_a_change_after_a_deployment_that_was_not_asked_about_is_not_a_conflict(
    evalmeta: Program, project: Path
) -> None:
    evalmeta("deploy", "--async")
    [file] = project.rglob("Tariff_Criteria*")
    file.write_text(file.read_text().replace("AGENT", "AGENT "))

    assert "changed locally" in evalmeta("status").out


@pytest.mark.usefixtures("project")
def test_a_validation_changes_nothing_and_is_deployed_quickly_once(evalmeta: Program) -> None:
    validated = evalmeta("deploy", "validate")
    nothing = evalmeta("test", "list")
    deployed = evalmeta("deploy", "quick", "--use-most-recent")
    again = evalmeta("deploy", "quick", "--use-most-recent")

    assert validated.out.startswith("Validated 3 components; the org was not changed")
    assert f"evalmeta deploy quick --job-id {JOB}" in validated.err
    assert nothing.out.startswith("No agent tests")
    assert (deployed.code, "Created" in deployed.out) == (0, True)
    assert (again.code, "was already deployed" in again.err) == (1, True)
    assert "are the same (3 components)" in evalmeta("status").out


@pytest.mark.usefixtures("project")
def test_a_report_lists_what_the_org_says(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with remote(monkeypatch, GOING_ON):
        shown = evalmeta("deploy", "report", "-i", JOB)
        as_json = json.loads(evalmeta("deploy", "report", "-i", JOB, "--json").out)

    assert (shown.code, shown.out.splitlines()[2].split()) == (0, ["Status", "InProgress"])
    assert shown.out.splitlines()[-1].split() == ["Components", "2", "of", "7"]
    assert (as_json["status"], as_json["result"]["status"]) == (0, "InProgress")
    assert as_json["result"]["deployResult"]["numberComponentsTotal"] == 7


@pytest.mark.usefixtures("project")
def test_a_timed_out_wait_exits_69_with_suggestions(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with remote(monkeypatch, GOING_ON):
        for words in (["deploy"], ["deploy", "resume", "-r"], ["deploy", "quick", "-i", JOB], ["deploy", "validate"]):
            done = evalmeta(*words, "--wait", "0.0001")
            assert (done.code, RESUME in done.err) == (69, True)


@pytest.mark.usefixtures("project")
def test_a_timed_out_wait_is_printed_as_json(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with remote(monkeypatch, GOING_ON):
        done = evalmeta("deploy", "--wait", "0.0001", "--json")

    said = json.loads(done.out)
    assert (done.code, said["status"], said["result"]["id"]) == (69, 69, JOB)


@pytest.mark.usefixtures("project")
def test_a_failed_deployment_exits_1_in_every_command(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with remote(monkeypatch, CANCELED):
        for command in ("resume", "report"):
            done = evalmeta("deploy", command, "--job-id", JOB)
            assert (done.code, "was canceled by Ada; the org was not changed" in done.err) == (1, True)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("end", "code", "said"),
    [(CANCELED, 0, "Canceled deployment"), (SUCCEEDED, 1, "was done before it could be canceled: Succeeded")],
)
def test_a_deployment_is_canceled_unless_it_is_done(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch, end: object, code: int, said: str
) -> None:
    with remote(monkeypatch, GOING_ON, end) as server:
        done = evalmeta("deploy", "cancel", "-i", JOB)

    assert (done.code, said in done.out) == (code, True)
    assert [call.name for call in calls_of(server)] == ["cancelDeploy", *["checkDeployStatus"] * 2]


@pytest.mark.usefixtures("project")
def test_a_cancellation_need_not_be_waited_for(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with remote(monkeypatch, GOING_ON) as server:
        done = json.loads(evalmeta("deploy", "cancel", "-i", JOB, "--async", "--json").out)

    assert (done["result"]["status"], len(calls_of(server))) == ("Canceling", 1)


@pytest.mark.usefixtures("project")
def test_a_finished_deployment_cannot_be_canceled(evalmeta: Program) -> None:
    evalmeta("deploy")

    done = evalmeta("deploy", "cancel", "--use-most-recent")

    assert (done.code, "Deployment already completed" in done.err) == (1, True)
    assert f"evalmeta deploy report --job-id {JOB}" in done.err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", ["report", "resume", "cancel", "quick"])
@pytest.mark.parametrize("words", [[], ["-i", JOB, "-r"], ["-r"], ["-i", "0Af"], ["-i", "4KB000000000001GAA"]])
def test_an_invalid_job_id_is_a_usage_error(evalmeta: Program, command: str, words: list[str]) -> None:
    assert evalmeta("deploy", command, *words).code == 2


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", ["report", "resume", "cancel"])
def test_an_unknown_job_is_a_usage_error(evalmeta: Program, command: str) -> None:
    done = evalmeta("deploy", command, "-i", "0Af000000000099XXX")

    assert (done.code, "has no deployment 0Af000000000099XXX that you can access" in done.err) == (2, True)


@pytest.mark.usefixtures("project")
def test_a_lost_connection_exits_4_and_the_job_is_not_lost(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with remote(monkeypatch, GOING_ON, http_reply(200, b"<html>proxy</html>")):
        done = evalmeta("deploy")

    assert (done.code, RESUME in done.err) == (4, True)


@pytest.mark.usefixtures("project")
def test_a_short_outage_is_tolerated(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<half"
    with remote(monkeypatch, GOING_ON, b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", half, SUCCEEDED):
        assert evalmeta("deploy").code == 0


@pytest.mark.usefixtures("project")
def test_a_deployment_that_may_have_been_accepted_is_not_sent_twice(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with remote(monkeypatch, GOING_ON, accepts=False) as server:
        done = evalmeta("deploy")

    assert done.code == 4
    assert [call.name for call in calls_of(server)].count("deploy") == 1


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_ctrl_c_leaves_the_job_and_prints_suggestions(monkeypatch: pytest.MonkeyPatch, program: list[str]) -> None:
    with remote(monkeypatch, GOING_ON) as server:
        running = subprocess.Popen([*program, "deploy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while len(server.requests) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=120)

    assert (running.returncode, RESUME in err, "Traceback" in err) == (130, True, False)


@pytest.mark.usefixtures("project")
def test_an_expired_session_is_reported(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with remote(monkeypatch, write_fault("INVALID_SESSION_ID", "Session expired")):
        assert evalmeta("deploy", "report", "-i", JOB).code == 4
