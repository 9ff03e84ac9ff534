from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.servers import make_token
from evalmeta.errors import UsageError
from evalmeta.model.login import ADMIN
from evalmeta.org.serving.server_file import read_server
from evalmeta.package.project import find_project
from evalmeta.store.components import Synced, open_tracking
from org.certificates import make_certificate
from org.parts import definition, make_project, opened_of, started
from org.servers import WAIT, send, served, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalmeta.package.project import Project

TOKEN = re.compile(r"00D\w{12,15}![.\w]*")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    made = make_project(tmp_path / "project")
    monkeypatch.chdir(made.root)
    yield made
    if server := read_server(made.state_dir):
        os.kill(server.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_detached_server_responds_at_once(evalmeta: Callable[..., object], project: Project) -> None:
    outcome = evalmeta("org", "start", "--port", "0", "--detach")
    server = read_server(project.state_dir)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"is served at {server.url}\nData  {project.state_dir}\n" in outcome.out
    assert f"sf org login access-token --instance-url {server.url} --no-prompt" in outcome.out
    assert f"evalmeta org login --instance-url {server.url}" in outcome.out
    assert send("GET", f"{server.url}/services/data").status_code == 200
    assert evalmeta("org", "stop").out == f"Stopped the server at {server.url}.\n"
    assert read_server(project.state_dir) is None


@pytest.mark.slow
def test_an_org_with_a_certificate_is_used_over_tls(
    evalmeta: Callable[..., object], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(project.root)
    monkeypatch.chdir(project.root)
    files = ("--certfile", f"../{project.root.name}/server.crt", "--keyfile", str(certificate.keyfile))
    started = evalmeta("org", "start", "--port", "0", "--detach", *files)
    url = read_server(project.state_dir).url
    assert (started.code, url.partition("://")[0]) == (0, "https")
    assert f"is served at {url}\n" in started.out
    assert f"export SSL_CERT_FILE={certificate.certfile} NODE_EXTRA_CA_CERTS=" in started.err
    assert "running\n" in evalmeta("org", "status").out

    monkeypatch.setenv("SF_ACCESS_TOKEN", make_token(project))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project.root))
    refused = evalmeta("org", "login", "--instance-url", url)
    assert "trust it: export SSL_CERT_FILE=FILE" in refused.err
    assert f"Did you mean {url}?" in evalmeta("org", "login", "--instance-url", url.replace("https", "http")).err
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.certfile))
    assert evalmeta("org", "login", "--instance-url", url).code == 0
    (project.root / "aiEvaluationDefinitions").mkdir()
    (project.root / "aiEvaluationDefinitions" / "Orders.aiEvaluationDefinition").write_bytes(definition("Orders"))
    assert "Created  Orders" in evalmeta("deploy", "-o", ADMIN.username).out
    monkeypatch.setenv("SSL_CERT_FILE", "nowhere")
    assert "SSL_CERT_FILE=nowhere cannot be used: No such" in evalmeta("deploy", "-o", ADMIN.username).err


@pytest.mark.slow
def test_a_certificate_needs_its_key_and_the_host_in_it(evalmeta: Callable[..., object], project: Project) -> None:
    certificate = make_certificate(project.root, address="192.0.2.7")
    alone = evalmeta("org", "start", "--certfile", str(certificate.certfile))
    assert (alone.code, "needs both --certfile and --keyfile" in alone.err) == (2, True)
    files = ("--certfile", str(certificate.certfile), "--keyfile", str(certificate.keyfile))
    started = evalmeta("org", "start", "--port", "0", "--detach", *files)
    assert "clients will refuse the certificate at this address: IP address mismatch" in started.err
    assert "Start with --host NAME" in started.err


@pytest.mark.slow
def test_a_second_start_reports_the_running_server(evalmeta: Callable[..., object], project: Project) -> None:
    with served(project) as url:
        for detach in ((), ("--detach",)):
            outcome = evalmeta("org", "start", "--port", "0", *detach)
            assert (outcome.code, outcome.out) == (2, "")
            assert f"is already running at {url}" in outcome.err
            assert "evalmeta org stop" in outcome.err


@pytest.mark.slow
def test_a_port_in_use_is_reported(evalmeta: Callable[..., object], project: Project, tmp_path: Path) -> None:
    with served(make_project(tmp_path / "other")) as url:
        outcome = evalmeta("org", "start", "--detach", "--port", url.rpartition(":")[2])
    assert outcome.code == 2
    assert "Address already in use" in outcome.err
    assert read_server(project.state_dir) is None


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_the_foreground_a_signal_ends_it_cleanly(program: list[str], project: Project, number: int) -> None:
    command = [*program, "org", "start", "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server = wait_for(lambda: read_server(project.state_dir))
    send("GET", f"{server.url}/services/data")
    process.send_signal(number)
    out, err = process.communicate(timeout=WAIT)
    assert (process.returncode, json.loads(out)["result"]["url"]) == (0, server.url)
    assert "GET /services/data 200" in err
    assert err.endswith("Stopped.\n")


@pytest.mark.slow
def test_beyond_loopback_there_is_a_warning(evalmeta: Callable[..., object], project: Project) -> None:
    outcome = evalmeta("org", "start", "--port", "0", "--detach", "--host", "0.0.0.0", "--json")  # noqa: S104
    url = json.loads(outcome.out)["result"]["url"]
    assert "Warning: 0.0.0.0 can be reached from other machines" in outcome.err
    assert url.startswith("http://127.0.0.1:")
    assert send("GET", f"{url}/services/data", host="rebound.example").status_code == 403
    assert evalmeta("org", "stop", "--json").code == 0
    assert read_server(project.state_dir) is None


@pytest.mark.slow
def test_another_name_can_be_allowed(evalmeta: Callable[..., object], project: Project) -> None:
    evalmeta("org", "start", "--port", "0", "--detach", "--allow-host", "org.example")
    url = read_server(project.state_dir).url
    assert send("GET", f"{url}/services/data", host="org.example").status_code == 200
    evalmeta("org", "stop")


def test_without_a_server_stop_and_status_say_so(evalmeta: Callable[..., object], project: Project) -> None:
    assert evalmeta("org", "stop").out == "No server is running for this project.\n"
    assert json.loads(evalmeta("org", "stop", "--json").out)["result"] == {"stopped": False, "url": None}
    assert re.search(
        r"Server +not running\n.*Data +" + re.escape(str(project.state_dir)), evalmeta("org", "status").out
    )


def test_status_prints_the_contents(evalmeta: Callable[..., object], project: Project) -> None:
    started(project, cases=1)
    found = json.loads(evalmeta("org", "status", "--json").out)["result"]
    counts = (found["components"], found["runsInProgress"], found["runsWaiting"])
    assert (found["running"], found["answers"], counts) == (False, False, (1, 0, 1))


@pytest.mark.slow
def test_status_prints_the_server(evalmeta: Callable[..., object], project: Project) -> None:
    with served(project) as url:
        found = json.loads(evalmeta("org", "status", "--json").out)["result"]
        assert (found["running"], found["answers"], found["url"]) == (True, True, url)
        assert re.search(rf"Server +running\nURL +{url}\nProcess +{found['pid']}\n", evalmeta("org", "status").out)


@pytest.mark.slow
def test_a_server_that_hangs_is_reported_and_can_be_stopped(
    evalmeta: Callable[..., object], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalmeta.limits.STATUS_SECONDS", 0.1)
    monkeypatch.setattr("evalmeta.limits.CLOSE_SECONDS", 0.3)
    evalmeta("org", "start", "--port", "0", "--detach")
    os.kill(read_server(project.state_dir).pid, signal.SIGSTOP)
    assert "running, but does not respond" in evalmeta("org", "status").out
    modes = {path.name: path.stat().st_mode & 0o777 for path in (project.state_dir / "logs").iterdir()}
    assert modes == {"server-start.log": 0o600, "server.log": 0o600}
    assert evalmeta("org", "stop").code == 0
    assert read_server(project.state_dir) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["server-start.log", "server.log"])
def test_a_link_in_the_state_folder_is_not_written_through(
    evalmeta: Callable[..., object], project: Project, tmp_path: Path, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    logs = project.state_dir / "logs"
    logs.mkdir(parents=True)
    (logs / name).symlink_to(victim)

    outcome = evalmeta("org", "start", "--port", "0", "--detach")

    assert (outcome.code, victim.read_text()) == (4, "precious")
    assert f"{name} is a link, which evalmeta does not follow in its state folder" in outcome.err


@pytest.mark.slow
def test_tokens_of_a_restored_store_are_void_and_its_org_goes_on(
    evalmeta: Callable[..., object], project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.root / "aiEvaluationDefinitions" / "A.aiEvaluationDefinition"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(definition("A"))
    evalmeta("org", "token")
    evalmeta("deploy")
    # A cache of a CI system, on another machine.
    shutil.copytree(project.root, tmp_path / "restored")
    monkeypatch.chdir(tmp_path / "restored")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no key"))

    assert "are the same" in evalmeta("status").out
    assert evalmeta("test", "run", "--wait").code in {0, 100}
    listed = evalmeta("org", "token", "--list")
    assert "  void\n" in listed.out
    assert "1 token is void: it was created for another folder or by another user." in listed.err
    assert "Create a new one: evalmeta org token" in listed.err
    assert evalmeta("org", "start", "--port", "0", "--detach").err.count("1 token is void") == 1
    evalmeta("org", "stop")
    evalmeta("org", "token")
    assert [token["void"] for token in json.loads(evalmeta("org", "token", "--list", "--json").out)["result"]] == [
        False,
        True,
    ]


@pytest.mark.slow
def test_a_server_that_fails_to_start_says_why(evalmeta: Callable[..., object], project: Project) -> None:
    (project.state_dir / "logs" / "server.log").mkdir(parents=True)
    outcome = evalmeta("org", "start", "--port", "0", "--detach")
    assert outcome.code == 4
    assert "the server ended while starting: " in outcome.err
    assert "server.log cannot be written: Is a directory" in outcome.err


def test_a_server_that_does_not_answer_in_time_is_ended(
    evalmeta: Callable[..., object], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalmeta.limits.START_SECONDS", 0)
    outcome = evalmeta("org", "start", "--port", "0", "--detach")
    assert (outcome.code, "did not answer within 0 seconds" in outcome.err) == (4, True)
    assert read_server(project.state_dir) is None


def test_a_server_that_cannot_be_started_is_reported(evalmeta: Callable[..., object], project: Project) -> None:
    project.state_dir.mkdir()
    (project.state_dir / "logs").touch()
    outcome = evalmeta("org", "start", "--port", "0", "--detach")
    assert (outcome.code, "the server could not be started: " in outcome.err) == (4, True)


def test_a_server_on_another_machine_is_not_ended_from_here(evalmeta: Callable[..., object], project: Project) -> None:
    project.state_dir.mkdir()
    fields = {"url": "http://far:1", "pid": 2**22 + 1, "started": 0, "process": "far:1:2:3"}
    file = project.state_dir / "server.json"
    file.write_text(json.dumps(fields))
    outcome = evalmeta("org", "stop")
    file.unlink()
    assert (outcome.code, "the server at http://far:1 runs on far" in outcome.err) == (4, True)


@pytest.mark.slow
def test_a_server_of_another_user_is_reported(
    evalmeta: Callable[..., object], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    with served(project), monkeypatch.context() as others:
        others.setattr(os, "kill", refuse)
        outcome = evalmeta("org", "stop")
    assert (outcome.code, "belongs to another user" in outcome.err) == (4, True)


def test_a_token_stands_alone_on_stdout(evalmeta: Callable[..., object], project: Project) -> None:
    outcome = evalmeta("org", "token", "--user", "ci", "--expires-in", "1")
    assert TOKEN.fullmatch(outcome.out.splitlines()[-1])
    assert len(outcome.out.splitlines()) == 1
    assert "Expires in 1 day." in outcome.err
    with opened_of(project) as org:
        assert org.user_of(outcome.out.strip()).username == "ci@evalmeta.local"


def test_without_a_user_a_token_is_the_admins(evalmeta: Callable[..., object], project: Project) -> None:
    made = json.loads(evalmeta("org", "token", "--json").out)["result"]
    with opened_of(project) as org:
        assert org.user_of(made["accessToken"]).is_admin
    assert made["expiresInDays"] == 30


def test_tokens_are_listed_without_being_shown_and_revoked(evalmeta: Callable[..., object], project: Project) -> None:
    assert "There are no tokens" in evalmeta("org", "token", "--list").out
    text = make_token(project, username="ci@example.com")
    [listed] = json.loads(evalmeta("org", "token", "--list", "--json").out)["result"]
    assert (listed["username"], listed["revoked"], listed["lastUsed"]) == ("ci@example.com", None, None)
    assert json.loads(evalmeta("org", "token", "--revoke", listed["id"], "--json").out)["result"]["revoked"]
    assert evalmeta("org", "token", "--revoke", listed["id"]).out == f"Token {listed['id']} is revoked.\n"
    table = evalmeta("org", "token", "--list").out
    assert listed["id"] in table
    assert text.partition(".")[2] not in table
    with opened_of(project) as org:
        assert org.user_of(text) is None


@pytest.mark.slow
def test_a_server_that_is_left_running_is_not_ended_by_a_key(
    evalmeta: Callable[..., object],
    project: Project,  # noqa: ARG001 - its folder
) -> None:
    shown = evalmeta("org", "start", "--port", "0", "--host", "0.0.0.0", "--detach")  # noqa: S104 - for a moment
    assert evalmeta("org", "stop").code == 0
    assert shown.out.endswith("Stop it: evalmeta org stop\n")
    assert "--allow-host NAME" in shown.err


def test_a_list_shows_one_users_tokens(evalmeta: Callable[..., object], project: Project) -> None:
    for name in ("ci", "ada@example.com"):
        make_token(project, username=name)
    [listed] = json.loads(evalmeta("org", "token", "--list", "--user", "CI", "--json").out)["result"]
    assert listed["username"] == "ci@evalmeta.local"


@pytest.mark.parametrize(
    "options", [("--list", "--revoke", "x"), ("--revoke", "x", "--user", "ci"), ("--list", "--expires-in", "3")]
)
def test_what_can_be_done_with_tokens_is_done_one_at_a_time(
    evalmeta: Callable[..., object],
    project: Project,  # noqa: ARG001 - its folder
    options: tuple[str, ...],
) -> None:
    assert evalmeta("org", "token", *options).code == 2


@pytest.mark.slow
def test_a_token_names_its_org(evalmeta: Callable[..., object], project: Project) -> None:
    assert f"For the org of {project.root}, which is not served" in evalmeta("org", "token").err
    with served(project) as url:
        assert f"For the org of {project.root}, served at {url}.\n" in evalmeta("org", "token").err


def test_a_token_that_is_not_there_cannot_be_revoked(evalmeta: Callable[..., object], project: Project) -> None:  # noqa: ARG001 - its folder
    outcome = evalmeta("org", "token", "--revoke", "nope")
    assert (outcome.code, "no token with this id" in outcome.err) == (2, True)


@pytest.mark.parametrize("name", ["", "a b", "a@", "@b", "a@b@c", "ä", "x" * 100, "--"])
def test_an_invalid_username_is_refused(project: Project, name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid username"):
        make_token(project, username=name)


def test_a_reset_empties_the_org_and_leaves_the_tokens(evalmeta: Callable[..., object], project: Project) -> None:
    started(project, cases=1)
    text = make_token(project)
    assert evalmeta("org", "reset", "--no-prompt").out == "The org is empty.\n"
    with opened_of(project) as org:
        assert org.components.list("AiEvaluationDefinition") == []
        assert org.runs.unfinished() == []
        assert org.user_of(text) is not None


def test_a_reset_is_not_made_without_being_confirmed(evalmeta: Callable[..., object], project: Project) -> None:
    started(project, cases=1)
    outcome = evalmeta("org", "reset")
    assert (outcome.code, "--no-prompt" in outcome.err) == (2, True)
    with opened_of(project) as org:
        assert len(org.components.list("AiEvaluationDefinition")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "left"), [(b"n\n", 1), (b"y\n", 0)])
def test_a_reset_asks_on_a_terminal(program: list[str], project: Project, answer: bytes, left: int) -> None:
    started(project, cases=1)
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*program, "org", "reset"], stdin=theirs, stderr=subprocess.PIPE)
    os.write(ours, answer)
    assert b"Delete everything in the org of project?" in process.communicate(timeout=WAIT)[1]
    for end in (ours, theirs):
        os.close(end)
    with opened_of(project) as org:
        assert len(org.components.list("AiEvaluationDefinition")) == left


def test_a_reset_forgets_what_the_project_and_the_org_had_in_common(
    evalmeta: Callable[..., object], project: Project
) -> None:
    urls = ("http://embedded.org.invalid", "http://127.0.0.1:8160", "https://example.my.salesforce.com")
    for url in urls:
        with open_tracking(project.store, root=project.root, org_url=url) as tracking:
            tracking.remember("AiEvaluationDefinition", {"A": Synced(b"a", "")})
    assert json.loads(evalmeta("org", "reset", "-p", "--json").out)["result"] == {"data": str(project.state_dir)}
    with opened_of(project) as org:
        assert org.database.query("SELECT org_url FROM synced") == [(urls[2],)]


@pytest.mark.slow
def test_a_reset_is_refused_while_the_org_is_served(evalmeta: Callable[..., object], project: Project) -> None:
    with served(project):
        outcome = evalmeta("org", "reset", "--no-prompt")
    assert (outcome.code, "evalmeta org stop" in outcome.err) == (2, True)


@pytest.mark.slow
def test_a_reset_is_refused_while_a_run_is_in_progress(
    evalmeta: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = make_project(tmp_path / "slow", seconds=3600)
    run_id = started(slow, cases=1)
    monkeypatch.chdir(slow.root)
    worker = subprocess.Popen([sys.executable, "-m", "evalmeta.org.run_worker", str(slow.root), run_id])
    with opened_of(slow) as org:
        wait_for(lambda: org.runs.lease(run_id).worker)
    outcome = evalmeta("org", "reset", "--no-prompt", "--json")
    worker.kill()
    worker.wait(WAIT)
    assert (outcome.code, f"run {run_id} is in progress" in outcome.out) == (2, True)


@pytest.mark.slow
def test_a_home_of_its_own_holds_everything(
    evalmeta: Callable[..., object], project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVALMETA_HOME", str(tmp_path / "home"))
    assert f"Data  {tmp_path / 'home'}\n" in evalmeta("org", "start", "--port", "0", "--detach").out
    assert evalmeta("org", "stop").code == 0
    assert not (project.root / ".evalmeta").exists()
    assert find_project(project.root).state_dir == tmp_path / "home"
