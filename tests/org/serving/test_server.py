from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import orjson
import pytest

from evalmeta import limits
from evalmeta.api.servers import make_token, revoke_token
from evalmeta.errors import UsageError
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunStatus
from evalmeta.org.serving.server_file import read_server
from evalmeta.org.serving.sockets import listen
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.protocol.soap import deploy_call, write_call
from evalmeta.store.database import open_database
from org.certificates import make_certificate
from org.parts import asked, definition, make_project, opened_of, package, started
from org.servers import WAIT, begin, get, send, served, wait_for
from protocol.envelopes import jsforce_call

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from evalmeta.package.project import Project

SOAP = "/services/Soap/m/66.0"
RUNS = "/services/data/v66.0/einstein/ai-evaluations/runs"
USERINFO = "/services/oauth2/userinfo"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project", seconds=0.02)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, str]]:
    """Serve an org that tests share which change nothing but tokens."""
    project = make_project(tmp_path_factory.mktemp("shared") / "project")
    with served(project) as url:
        yield project, url


def status_of(project: Project, run_id: str) -> RunStatus:
    with opened_of(project) as org:
        return org.runs.get(run_id).status


def at_work(project: Project) -> int:
    with opened_of(project) as org:
        return sum(lease.worker is not None for _, lease in org.runs.unfinished())


def connected(url: str) -> socket.socket:
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port), timeout=WAIT)


def talk(url: str, sent: bytes) -> bytes:
    """Send bytes and return the reply until the server closes the connection."""
    with connected(url) as connection:
        connection.sendall(sent)
        return rest_of(connection)


def rest_of(connection: socket.socket) -> bytes:
    received = bytearray()
    while piece := connection.recv(65536):
        received += piece
    return bytes(received)


def call(url: str, operation: str, token: str) -> httpx.Response:
    return send("POST", url + SOAP, jsforce_call(operation, session=token), **{"content-type": "text/xml"})


def test_a_server_answers_those_with_a_token_in_either_spelling(shared: tuple[Project, str]) -> None:
    project, url = shared
    assert get(project, url, USERINFO).json()["user_id"] == "005000000000001AAA"
    assert get(project, url, f"/{USERINFO}").status_code == 200
    assert call(url, "<describeMetadata/>", make_token(project)).status_code == 200
    assert call(f"{url}/", "<describeMetadata/>", make_token(project)).status_code == 200


@pytest.mark.slow
def test_invalid_tokens_get_salesforces_error(shared: tuple[Project, str]) -> None:
    project, url = shared
    good, bad = make_token(project), make_token(project)
    revoke_token(project, bad.partition("!")[2].partition(".")[0])
    with opened_of(project) as org:
        expired = org.new_token(org.users.all_users()[0], now=0, expires=1)
    for token in ("wrong", f"{good}x", bad, expired):
        refused = send("GET", url + USERINFO, authorization=f"Bearer {token}")
        assert (refused.status_code, refused.json()[0]["errorCode"]) == (401, "INVALID_SESSION_ID")
        assert b"<faultcode>sf:INVALID_SESSION_ID<" in call(url, "<describeMetadata/>", token).content


def test_a_token_that_is_revoked_ends_while_the_server_runs(shared: tuple[Project, str]) -> None:
    project, url = shared
    token = make_token(project, username="ci")
    assert send("GET", url + USERINFO, authorization=f"Bearer {token}").json()["name"] == "ci"
    revoke_token(project, token.partition("!")[2].partition(".")[0])
    assert send("GET", url + USERINFO, authorization=f"Bearer {token}").status_code == 401


@pytest.mark.slow
def test_a_rebound_name_and_another_origin_are_refused(shared: tuple[Project, str]) -> None:
    project, url = shared
    assert get(project, url, USERINFO, host="evil.example").status_code == 403
    assert get(project, url, USERINFO, origin="http://evil.example").status_code == 403
    assert get(project, url, USERINFO, origin=url).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 70_000, b"431"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000 + b"\r\nConnection: close\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"\x16\x03\x01 no http at all\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n", b"413"),
        (b"GET / HTTP/1.0\r\n\r\n", b"403"),
    ],
)
def test_invalid_requests_get_salesforces_error_format(shared: tuple[Project, str], sent: bytes, status: bytes) -> None:
    head, _, body = talk(shared[1], sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert set(orjson.loads(body)[0]) == {"message", "errorCode"}


@pytest.mark.slow
def test_a_body_over_the_limit_is_refused_also_without_a_length(project: Project) -> None:
    chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    head = f"POST {SOAP} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with served(project, MAX_SOAP_BYTES=20_000) as url:
        answer = talk(url, head.encode() + 3 * chunk)
        assert b"sf:REQUEST_TOO_LARGE" in answer
        assert get(project, url, USERINFO).status_code == 200


@pytest.mark.slow
def test_a_client_that_does_not_end_its_head_is_let_go(project: Project) -> None:
    with served(project, HEAD_SECONDS=0.2) as url:
        for sent in (b"", b"GET / HTTP/1.1\r\nHost:"):
            assert talk(url, sent).startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
def test_a_tls_handshake_that_does_not_end_is_closed(project: Project) -> None:
    with (
        served(project, certificate=make_certificate(project.root), HANDSHAKE_SECONDS=0.2) as url,
        connected(url) as connection,
    ):
        connection.settimeout(30)
        connection.sendall(b"\x16\x03\x01")
        assert connection.recv(1) == b""


@pytest.mark.slow
def test_a_client_that_does_not_end_its_body_is_let_go(project: Project) -> None:
    with served(project, PIECE_SECONDS=0.2) as url:
        head = f"POST {SOAP} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\nConnection: close\r\n\r\n<"
        assert b"sf:REQUEST_RUNNING_TOO_LONG" in talk(url, head.encode())


@pytest.mark.slow
def test_a_client_that_sends_on_after_its_answer_is_let_go(project: Project) -> None:
    head = f"POST {SOAP} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
    with served(project, REST_SECONDS=0.2) as url, connected(url) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
        with suppress(ConnectionResetError):
            while connection.recv(65536):
                pass


@pytest.mark.slow
def test_invalid_http_after_a_reply_closes_the_connection_without_an_error(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    with served(project) as url, connected(url) as connection:
        connection.sendall(b"POST /nope HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")
        connection.sendall(b"no chunk\r\n")
        with suppress(ConnectionResetError):
            rest_of(connection)
    assert "Traceback" not in capfd.readouterr().err + (project.state_dir / "logs" / "server.log").read_text()


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answer_is_let_go(project: Project) -> None:
    with opened_of(project) as org:
        large = definition("Large", extra=f"<description>{'x' * 1_000_000}</description>")
        org.components.save(EVALUATION_DEFINITION, {"Large": large}, now=1)
    names = "<fullNames>Large</fullNames>" * 10
    operation = f"<readMetadata><type>AiEvaluationDefinition</type>{names}</readMetadata>"
    sent = jsforce_call(operation, session=make_token(project))
    head = f"POST {SOAP} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(sent)}\r\n\r\n"
    log = project.state_dir / "logs" / "server.log"
    with served(project, PIECE_SECONDS=0.3) as url, connected(url) as connection:
        connection.sendall(head.encode() + sent)
        wait_for(lambda: "POST" in log.read_text())
        assert len(rest_of(connection)) < 10_000_000


@pytest.mark.slow
def test_idle_connections_are_closed(project: Project) -> None:
    with served(project, KEEP_ALIVE_SECONDS=0) as url:
        assert talk(url, b"GET /services/data HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_cleanly(project: Project, number: int) -> None:
    process, _ = begin(project)
    process.send_signal(number)
    assert process.wait(WAIT) == 0
    assert read_server(project.state_dir) is None
    assert not (project.state_dir / "server.json").exists()


@pytest.mark.slow
def test_a_second_server_reports_the_address_of_the_first(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    with served(project) as url:
        command = [sys.executable, "-m", "evalmeta.viewer.server", str(project.root), "127.0.0.1", "0"]
        assert subprocess.run(command, check=False, timeout=WAIT).returncode == 2
    assert f"a server for this project is already running at {url}" in capfd.readouterr().err


@pytest.mark.slow
def test_a_killed_server_leaves_the_place_to_the_next(project: Project) -> None:
    process, _ = begin(project)
    process.kill()
    process.wait(WAIT)
    assert read_server(project.state_dir) is None
    with served(project) as url:
        assert get(project, url, USERINFO).status_code == 200


def test_connections_do_not_wait_for_acknowledgements() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY only then


def test_a_port_in_use_is_reported_with_advice() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            UsageError, match=f"cannot listen at 127.0.0.1 port {port}: Address already in use$"
        ) as raised:
            listen("127.0.0.1", port)
    assert "--port" in raised.value.actions[0]


def test_an_unknown_host_name_is_reported() -> None:
    with pytest.raises(UsageError, match=r"cannot listen at nosuchhost\.invalid: ") as raised:
        listen("nosuchhost.invalid", 0)
    assert "--host" in raised.value.actions[0]


@pytest.mark.slow
def test_a_run_survives_the_server_and_is_finished(project: Project) -> None:
    run_id = started(project, cases=60)
    process, _ = begin(project)
    wait_for(lambda: len(asked(project)) > 2)
    process.kill()
    process.wait(WAIT)
    wait_for(lambda: status_of(project, run_id) is RunStatus.COMPLETED)
    assert len(asked(project)) == 60


@pytest.mark.slow
def test_a_run_of_a_killed_worker_continues_when_the_server_restarts(project: Project) -> None:
    run_id = started(project, cases=60)
    process, _ = begin(project)
    wait_for(lambda: len(asked(project)) > 2)
    process.kill()
    process.wait(WAIT)
    with opened_of(project) as org:
        os.kill(int(org.runs.lease(run_id).worker.split(":")[1]), signal.SIGKILL)
    with served(project):
        wait_for(lambda: status_of(project, run_id) is RunStatus.COMPLETED)


@pytest.mark.slow
def test_runs_over_the_limit_wait_as_new(tmp_path: Path) -> None:
    project = make_project(tmp_path / "slow", seconds=3600)
    run_ids = [started(project, cases=1) for _ in range(4)]
    with served(project, MAX_RUNS=2):
        wait_for(lambda: at_work(project) == 2)
        assert [status_of(project, identifier).value for identifier in run_ids] == [
            "IN_PROGRESS",
            "IN_PROGRESS",
            "NEW",
            "NEW",
        ]
        with opened_of(project) as org:
            workers = [int(org.runs.lease(identifier).worker.split(":")[1]) for identifier in run_ids[:2]]
            org.database.execute("UPDATE run SET status = 'TERMINATED' WHERE id = ?", (run_ids[0],))
        os.kill(workers[0], signal.SIGKILL)
        wait_for(lambda: status_of(project, run_ids[2]).value == "IN_PROGRESS" and at_work(project) == 2)
    with opened_of(project) as org:
        for _, lease in org.runs.unfinished():
            if lease.worker:
                os.kill(int(lease.worker.split(":")[1]), signal.SIGKILL)


DEADLY = "import os, signal\n\ndef answer(utterance):\n    os.kill(os.getpid(), signal.SIGKILL)\n"


@pytest.mark.slow
def test_a_run_that_kills_its_workers_is_given_up(tmp_path: Path) -> None:
    project = make_project(tmp_path / "deadly", agent=DEADLY)
    run_id = started(project, cases=1)
    with served(project, MAX_WORKER_DEATHS=2):
        wait_for(lambda: status_of(project, run_id) is RunStatus.ERROR)
    with opened_of(project) as org:
        assert "2 workers in a row died during this run" in org.runs.get(run_id).error


@pytest.mark.slow
def test_jobs_and_runs_asked_for_over_http_are_carried_out(project: Project) -> None:
    with served(project) as url:
        token = make_token(project)
        zip_file = package({"Orders": definition("Orders", cases=2)})
        sent = write_call(deploy_call(zip_file, DeployOptions()), session=token, client="c")
        assert send("POST", url + SOAP, sent).status_code == 200
        listing = "<listMetadata><queries><type>AiEvaluationDefinition</type></queries></listMetadata>"
        wait_for(lambda: b"<fullName>Orders<" in call(url, listing, token).content)
        body, bearer = b'{"aiEvaluationDefinitionName": "Orders"}', f"Bearer {token}"
        run_id = send("POST", url + RUNS, body, authorization=bearer).json()["runId"]
        wait_for(lambda: get(project, url, f"{RUNS}/{run_id}").json()["status"] == "COMPLETED")


@pytest.mark.slow
def test_an_agent_that_is_bound_while_the_org_is_served_can_be_asked(project: Project) -> None:
    settings = project.root / "evalmeta.toml"
    lines = settings.read_text()
    settings.write_text("")
    started(project, cases=1)
    with served(project) as url:
        body, bearer = b'{"aiEvaluationDefinitionName": "Orders"}', f"Bearer {make_token(project)}"
        refused = send("POST", url + RUNS, body, authorization=bearer)
        assert "Add these lines to evalmeta.toml of the project that serves the org" in refused.json()[0]["message"]
        settings.write_text(lines)
        assert send("POST", url + RUNS, body, authorization=bearer).status_code == 201


@pytest.mark.slow
def test_a_defect_shows_no_traceback_and_no_path(project: Project) -> None:
    with served(project) as url:
        token = make_token(project)
        with open_database(project.store) as database:
            database.execute("DROP TABLE component")
        listing = "<listMetadata><queries><type>AiEvaluationDefinition</type></queries></listMetadata>"
        answer = call(url, listing, token)
    assert answer.status_code == 500
    assert str(project.root) not in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.slow
def test_no_secret_is_written_anywhere(project: Project, capfd: pytest.CaptureFixture[str]) -> None:
    with served(project) as url:
        tokens = [make_token(project) for _ in range(3)]
        send("GET", f"{url}{USERINFO}?access_token={tokens[0]}", authorization=f"Bearer {tokens[0]}")
        send("GET", f"{url}/{tokens[1]}", authorization=f"Basic {tokens[1]}", cookie=f"sid={tokens[1]}")
        call(url, "<describeMetadata/>", tokens[2])
        arguments = Path(f"/proc/{read_server(project.state_dir).pid}/cmdline").read_bytes()
    files = [path.read_bytes() for path in project.root.rglob("*") if path.is_file()]
    printed = "".join(capfd.readouterr()).encode()
    secrets = [token.partition(".")[2].encode() for token in tokens]
    assert not any(secret in content for secret in secrets for content in [*files, printed, arguments])


@pytest.mark.slow
def test_a_listening_address_of_ipv6_has_brackets(project: Project) -> None:
    try:
        listen("::1", 0).close()
    except UsageError:
        pytest.skip("this machine has no IPv6")
    process, server = begin(project, host="::1")
    assert server.url.startswith("http://[::1]:")
    assert get(project, server.url, USERINFO).status_code == 200
    process.terminate()
    assert process.wait(WAIT) == 0


def test_the_limits_are_no_smaller_than_what_the_sf_cli_needs() -> None:
    assert limits.MAX_REQUESTS >= 680
    assert limits.MAX_SOAP_BYTES > limits.MAX_ZIP_BYTES * 4 / 3
