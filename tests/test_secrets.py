"""Secrets of every kind are planted, commands are run as programs that log all they can, and nothing shows a secret."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from canaries import CANARIES, FAILURES, MARK, Machine, canary, echo
from client.oauth_server import CLIENT, SECRET, USERNAME, OAuthServer, key_pair, running
from client.servers import Loopback, http_reply, listening
from evalmeta import evaluate
from evalmeta.api import files
from evalmeta.api.org_targets import Target
from evalmeta.cli.main import main
from evalmeta.client.connection import Connection
from evalmeta.client.http import Reply
from evalmeta.model.login import ByRefreshToken, Login, Secrets
from evalmeta.model.registry import NEWEST_API_VERSION
from evalmeta.model.settings import Settings
from evalmeta.org.app import add_registered_routes, create_app
from evalmeta.org.organization import Organization
from evalmeta.org.serving.server_file import read_server
from evalmeta.protocol.oauth import TokenReply, read_auth_url
from evalmeta.protocol.soap import read_call, write_call, write_fault
from evalmeta.xmlio.writer import node
from examples import slow_but
from org.parts import definition
from org.servers import send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.routing import Route

VERSIONS = http_reply(200, b'[{"version": "66.0"}]')
TOKEN = CANARIES["access token"]
ENVIRONMENT = CANARIES["environment"]
CARD = "4012-8888-8888-1881"


@pytest.fixture
def machine(tmp_path: Path, program: list[str], copy_samples: Callable[[str], Path]) -> Machine:
    made = Machine(tmp_path / "root", tmp_path / "given", program)
    made.prepare()
    shutil.move(copy_samples("dx-project"), made.project)
    os.chdir(made.project)
    return made


@pytest.fixture
def org() -> Iterator[OAuthServer]:
    with running() as server:
        yield server


def failing(failure: Callable[[str], bytes]) -> Callable[[bytes], bytes]:
    """List API versions to everyone, and answer other requests with an error that repeats the secrets."""
    return lambda request: VERSIONS if request.startswith(b"GET /services/data HTTP") else failure(echo(request))


def key_file(machine: Machine) -> str:
    path = machine.given / "server.key"
    path.write_bytes(key_pair().as_pem(private=True))
    return str(path)


def with_key(machine: Machine, url: str) -> tuple[str, ...]:
    return ("org", "login", "-f", key_file(machine), "-i", CLIENT, "--username", USERNAME, "-r", url)


def log_in_and_work(machine: Machine, url: str) -> None:
    """Run a command for every secret that is sent."""
    machine.keep_login(url)
    machine.run("org", "login", "-r", url, stdin=TOKEN)
    machine.run("org", "login", "--sfdx-url-stdin", stdin=CANARIES["auth URL"] + url.removeprefix("http://"))
    machine.run(*with_key(machine, url))
    machine.run("test", "list", SF_ACCESS_TOKEN=ENVIRONMENT, SF_ORG_INSTANCE_URL=url)
    machine.run("test", "run", "-o", "dev", "--json")


def sent_to(server: Loopback) -> list[str]:
    return " ".join(map(echo, server.requests)).split()


@pytest.mark.slow
@pytest.mark.parametrize("failure", slow_but("401", FAILURES))
def test_an_org_that_repeats_a_secret_is_not_quoted(machine: Machine, failure: str) -> None:
    with listening(failing(FAILURES[failure])) as server:
        log_in_and_work(machine, server.url)
    sent = sent_to(server)
    assert [said.code for said in machine.said if said.code not in {2, 4}] == []
    assert {TOKEN, ENVIRONMENT} < set(sent)
    assert sum(MARK in each for each in sent) >= 5
    assert "DEBUG:httpcore" in machine.said[0].err
    assert machine.leaks(*sent) == []
    assert len(machine.kept()) == 1


@pytest.mark.slow
def test_a_session_that_ended_and_is_not_renewed_shows_no_refresh_token(machine: Machine) -> None:
    def answer(request: bytes) -> bytes:
        told = echo(request)
        if b"refresh_token=" in request:
            return FAILURES["400 for OAuth"](told)
        if b"<sessionId>" in request:
            return http_reply(500, write_fault("INVALID_SESSION_ID", f"no such sessionId: {told}"))
        return failing(FAILURES["401"])(request)

    with listening(answer) as server:
        machine.keep_login(server.url)
        for words in (("test", "list"), ("deploy", "--json"), ("org", "display", "--json")):
            done = machine.run(*words, "-o", "dev")
            assert "not good: [secret] [secret]" in done.out + done.err
    assert machine.leaks(*sent_to(server)) == []


@pytest.mark.slow
def test_an_unreachable_org_is_reported_without_a_secret(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    log_in_and_work(machine, url)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        machine.environment["PATIENCE"] = "0.1"
        log_in_and_work(machine, f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert {said.code for said in machine.said} == {4}
    assert machine.leaks() == []


@pytest.mark.slow
def test_secrets_are_only_in_the_file_of_a_login(machine: Machine, org: OAuthServer) -> None:
    org.rotates = True
    url = f"force://{CLIENT}:{SECRET}:{org.new_refresh_token()}@{org.url.removeprefix('http://')}"
    machine.run("org", "login", "--sfdx-url-stdin", "--alias", "dev", stdin=url)
    org.access_tokens.clear()
    for words in (("test", "list"), ("org", "display"), ("org", "display", "--json"), ("status", "--json")):
        machine.run(*words, "-o", "dev")
    machine.run("org", "list", "--json")
    secrets = [url, SECRET, *org.access_tokens, *org.refresh_tokens]
    assert (machine.leaks(*secrets), len(machine.kept(*secrets))) == ([], 1)
    assert machine.run("org", "logout", "-o", "dev").code == 0
    assert (machine.leaks(*secrets), machine.kept(*secrets)) == ([], [])


@pytest.mark.slow
def test_a_key_and_its_assertion_are_not_stored(machine: Machine, org: OAuthServer) -> None:
    assert machine.run(*with_key(machine, org.url)).code == 0
    sent = [echo(body.encode()) for _, _, body in org.requests if body]
    key = Path(key_file(machine)).read_text().splitlines()[1:-1]
    assert (len(sent), machine.leaks(*sent, *key), machine.kept(*sent, *key)) == (1, [], [])
    assert len(machine.kept(*org.access_tokens)) == 1


@pytest.mark.slow
def test_with_a_keyring_no_file_has_a_secret(machine: Machine, org: OAuthServer) -> None:
    machine.environment["PYTHON_KEYRING_BACKEND"] = "ring.Ring"
    token = org.new_session()
    assert machine.run("org", "login", "-r", org.url, "--alias", "dev", stdin=token).code == 0
    assert machine.run("test", "list", "-o", "dev").code == 0
    assert token in (machine.given / "ring.json").read_text()
    assert (machine.leaks(token), machine.kept(token)) == ([], [])


@pytest.mark.slow
def test_a_browser_is_given_no_secret(machine: Machine, org: OAuthServer) -> None:
    visit = "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1]).read()\n"
    given = {
        "BROWSER": str(machine.install("browser", visit)),
        "EVALMETA_CLIENT_SECRET": canary("webapp"),
        "SF_ACCESS_TOKEN": ENVIRONMENT,
        "SFDX_AUTH_URL": CANARIES["auth URL"] + "desk.example",
    }
    words = ("org", "login", "--web", "-i", CLIENT, "-r", org.url, "--callback-port", "0")
    assert machine.run(*words, **given).code == 0
    sent = echo(org.requests[1][2].encode()).split()
    assert len(sent) == 3
    assert canary("webapp") in sent
    assert "browser" in " ".join(Path(word).name for process in machine.processes() for word in process.words)
    assert machine.leaks(*sent, *org.access_tokens) == []


@pytest.mark.slow
def test_a_browser_that_brings_an_error_has_no_secret_shown(machine: Machine, org: OAuthServer) -> None:
    code = "import re, sys, urllib.parse, urllib.request\nto = urllib.parse.parse_qs(sys.argv[1].partition('?')[2])\n"
    back = {"error": "invalid", "error_description": f"no code for {TOKEN}"}
    code += f"query = {back!r} | {{'state': to['state'][0]}}\n"
    code += "urllib.request.urlopen(to['redirect_uri'][0] + '?' + urllib.parse.urlencode(query)).read()\n"
    words = ("org", "login", "--web", "-i", CLIENT, "-r", org.url, "--callback-port", "0")
    done = machine.run(*words, BROWSER=str(machine.install("browser", code)))
    assert (done.code, "no code for [secret]" in done.err) == (4, True)
    assert machine.leaks() == []


@pytest.mark.slow
@pytest.mark.parametrize("knows", [True, False])
def test_sf_is_given_no_secret_and_what_it_says_is_not_repeated(
    machine: Machine, org: OAuthServer, *, knows: bool
) -> None:
    token = org.new_session()
    reply = {"result": {"accessToken": token, "instanceUrl": org.url}} if knows else {"message": f"{token} has ended"}
    machine.install("sf", f"print({json.dumps(reply)!r})\n")
    done = machine.run("org", "login", "--from-sf", "theirs", SF_ACCESS_TOKEN=ENVIRONMENT, SF_TARGET_ORG=ENVIRONMENT)
    assert done.code == (0 if knows else 4)
    assert [process for process in machine.processes() if Path(process.words[1]).name == "sf"]
    assert (machine.leaks(token), len(machine.kept(token))) == ([], knows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    slow_but(
        "https://ci:{password}@desk.example",
        [
            "https://ci:{password}@desk.example",
            "https://ci:{password}/x@desk.example",
            "https://ci:{password}",
            "http://ci:{password}@desk.example/x?y",
            "ftp://desk.example/?access_token={password}",
            "https://[::1/?access_token={password}",
            "https://desk.example:1x/?access_token={password}",
            "https:///{password}",
            "{access token}",
            "{auth URL}desk.example",
            "{auth URL}",
        ],
    ),
)
def test_an_address_with_a_secret_is_refused_unseen(machine: Machine, address: str) -> None:
    url = re.sub(r"\{(.*?)\}", lambda found: CANARIES[found[1]], address)
    for words in (("org", "login"), ("test", "list", "--json")):
        assert machine.run(*words, SF_ORG_INSTANCE_URL=url, SF_ACCESS_TOKEN=ENVIRONMENT).code == 2
    assert machine.leaks() == []


@pytest.mark.slow
def test_the_query_of_an_address_is_dropped(machine: Machine, org: OAuthServer) -> None:
    org.access_tokens.add(ENVIRONMENT)
    given = {"SF_ACCESS_TOKEN": ENVIRONMENT, "SF_ORG_INSTANCE_URL": f"{org.url}/?sid={CANARIES['query']}"}
    for words in (("org", "login"), ("test", "list", "--json"), ("manifest", "generate", "--from-org")):
        assert machine.run(*words, **given).code == 0
    assert machine.leaks() == []
    assert [path for _, path, _ in org.requests if MARK in path] == []


@pytest.mark.parametrize(
    "words",
    [
        ("org", "display", "-o", TOKEN),
        ("org", "logout", "-o", TOKEN),
        ("org", "default", TOKEN),
        ("org", "login", "--from-sf", TOKEN),
        ("org", "login", "--alias", TOKEN),
        ("org", "login", TOKEN),
        ("org", "login", "--sfdx-url-file", CANARIES["auth URL"]),
        ("org", "token", "--revoke", TOKEN),
        ("test", "list", "-o", TOKEN, "--json"),
        ("deploy", "-o", TOKEN),
        (TOKEN,),
    ],
)
def test_a_secret_among_the_words_of_a_command_is_not_repeated(
    machine: Machine, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    machine.install("sf", "print('{}')\n")
    with pytest.raises(SystemExit) as left:
        main(words)
    assert (left.value.code, MARK in "".join(capfd.readouterr())) == (2, False)
    assert (machine.leaks(), list(machine.processes())) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize("form", slow_but("{0}\n{0}", ["{0} {0}", "{0}\n{0}", "{0}\x7f", "{0}\u00fc", "\x00{0}"]))
def test_a_token_that_no_header_can_carry_is_refused_unseen(machine: Machine, form: str) -> None:
    assert machine.run("org", "login", "-r", "http://127.0.0.1:9", stdin=form.format(TOKEN)).code == 2
    assert "has characters that are not allowed in a token" in machine.said[-1].err
    assert machine.leaks() == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", slow_but("cut", ["cut", "text", "binary", "PEM of nothing"]))
def test_a_file_that_holds_no_secret_of_its_kind_is_not_quoted(machine: Machine, kind: str) -> None:
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{MARK}\n".encode()
    content = {"cut": pem, "text": TOKEN.encode(), "binary": b"\xff" + TOKEN.encode()}.get(kind, pem + pem[:0:-1])
    (machine.given / "broken").write_bytes(content)
    broken = str(machine.given / "broken")
    assert machine.run("org", "login", "-f", broken, "-i", CLIENT, "--username", USERNAME).code == 2
    assert machine.run("org", "login", "--sfdx-url-file", broken).code == 2
    machine.keep_login("https://desk.example")
    login = next(machine.logins.iterdir())
    login.write_bytes(content)
    assert machine.run("org", "list").code == 2
    assert machine.leaks() == []


AGENT = """\
import os
def answer(utterance):
    raise RuntimeError(f"the desk was sent Authorization: Bearer 00D000000000001!{'x' * 20} " + os.environ["DESK_KEY"])
"""


NONSENSE = (
    ("GET", "/services/oauth2/userinfo?access_token={token}", b""),
    ("GET", "/{token}", b""),
    ("POST", "/services/Soap/m/66.0", write_call(node("nonsense"), session="TOKEN", client="c")),
    ("POST", "/services/Soap/m/66.0", b"<a>TOKEN"),
    ("POST", "/services/data/v66.0/einstein/ai-evaluations/runs", b"TOKEN"),
)


@pytest.fixture
def served(machine: Machine) -> Iterator[str]:
    (machine.project / "agent/energy.py").write_text(AGENT)
    given = {"SF_ACCESS_TOKEN": ENVIRONMENT, "EVALMETA_CLIENT_SECRET": canary("webapp"), "DESK_KEY": "known"}
    assert machine.run("org", "start", "--detach", "--port", "0", **given).code == 0
    server = read_server(machine.root / "state")
    assert server
    yield server.url
    os.kill(server.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_served_org_shows_its_tokens_once(machine: Machine, served: str) -> None:
    token = machine.run("org", "token").out.splitlines()[-1]
    machine.said.pop()
    assert machine.run("org", "login", "-r", served, "--alias", "desk", stdin=token).code == 0
    for words in (("deploy", "-o", "desk"), ("retrieve", "-o", "desk", "--json"), ("org", "token", "--list")):
        assert machine.run(*words).code == 0
    for form in ("json", "junit", "tap"):
        options = ("--result-format", form, "--output-dir", "results", "--wait", "2", "-o", "desk")
        assert machine.run("test", "run", *options).code == 1
    assert "the desk was sent Authorization: [secret] known" in machine.said[-1].out
    for method, path, body in NONSENSE:
        for sent in (token, token + "x", f"{token} {token}"):
            asked = served + path.format(token=token)
            reply = send(method, asked, body.replace(b"TOKEN", token.encode()), authorization=f"Bearer {sent}")
            assert token not in reply.text + str(reply.headers)
    assert "GET" in (machine.root / "state/logs/server.log").read_text()
    assert len([process for process in machine.processes() if "evalmeta.org.run_worker" in process.words]) == 9
    assert (machine.leaks(token, "x" * 20), len(machine.kept(token))) == ([], 1)


def held() -> list[object]:
    """Return the objects that contain secrets."""
    login = Login("ci", "https://desk.example", renewal=ByRefreshToken("id", "https://desk.example"))
    secrets = Secrets(TOKEN, CANARIES["refresh token"], CANARIES["client secret"])
    call = write_call(node("describeMetadata"), session=TOKEN, client="c")
    address = f"https://desk.example/?sid={CANARIES['query']}"
    connection = Connection(url=address, token=TOKEN, api_version=NEWEST_API_VERSION)
    held = [login, secrets, Target(login, secrets), connection, vars(connection)["_http"]]
    held += [TokenReply(TOKEN, "https://desk.example", TOKEN), Reply(200, TOKEN.encode()), read_call(call)]
    auth_url = read_auth_url(CANARIES["auth URL"] + "desk.example")
    return [
        *held,
        auth_url,
        Organization(None, Path(), Settings, print, token=TOKEN),
        httpx.Headers({"Authorization": TOKEN}),
    ]


def test_no_repr_and_no_traceback_with_locals_shows_a_secret() -> None:
    objects = held()
    try:
        _ = len(objects) / 0
    except ZeroDivisionError as error:
        lines = list(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "objects = [Login(" in "".join(lines)
    assert MARK not in "".join([*lines, *map(repr, objects), *map(str, objects)])


def test_an_unexpected_error_is_reported_and_logged_without_secrets(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError(f"Authorization: Bearer {TOKEN}")

    monkeypatch.setattr(files, "validate", broken)
    monkeypatch.setattr("tempfile.tempdir", str(machine.root / "tmp"))
    for words in (("validate",), ("validate", "--json")):
        with pytest.raises(SystemExit):
            main(words)
    out, err = capfd.readouterr()
    assert ("ValueError: Authorization: [secret]" in err, MARK in out + err) == (True, False)
    assert (len(list((machine.root / "tmp").iterdir())), machine.leaks()) == (2, [])


APP = create_app(None)
add_registered_routes(APP)
# The list of versions and the description of the routes are the same for every org.
ROUTES = [route for route in APP.routes if route.path not in {"/services/data", "/services/data/openapi.json"}]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.name} {route.path}")
def test_an_exception_inside_a_handler_shows_a_fault_and_nothing_else(route: Route) -> None:
    path = re.sub(
        r"\{(\w+)\}", lambda found: {"version": "66.0", "run_path": "ai-evaluations"}.get(found[1], "x"), route.path
    )
    words = "An unexpected error occurred"
    fault = write_fault("UNKNOWN_EXCEPTION", words)
    error = b'[{"message":"%s","errorCode":"UNKNOWN_EXCEPTION"}]' % words.encode()

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(None), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://org.invalid") as http:
            method = next(iter(route.methods - {"HEAD"}))
            return await http.request(method, path, content=write_call(node("x"), session=TOKEN, client="c"))

    reply = asyncio.run(ask())
    if path.startswith("/einstein/ai-agent/"):
        # The preview API has errors of its own form.
        told = reply.json()
        assert (reply.status_code, told.pop("status"), told.pop("message")) == (500, 500, words)
        assert told.keys() <= {"path", "requestId", "error", "timestamp", "expected"}
        return
    assert (reply.status_code, reply.content) == (500, fault if "Soap" in path else error)


@pytest.mark.slow
@pytest.mark.parametrize("door", ["a run of a file", "a deployed test", "evaluate", "doctor"])
def test_what_the_patterns_of_a_project_match_is_not_stored_or_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], door: str
) -> None:
    files = {
        "evalmeta.toml": f"[redact]\npatterns = ['{CARD[:4]}[-0-9]+']\n"
        '[subjects.Desk]\nadapter = "python"\ntarget = "redacted_desk:answer"\n',
        "redacted_desk.py": f"def answer(text):\n    if text == 'Fail':\n"
        f"        raise ValueError('not paid with {CARD}')\n    return 'paid with {CARD}'\n",
        "a.yaml": "subject: Desk\ntestCases:\n- input: Hi\n  contains: 'paid with [secret]'\n",
        "fails.yaml": "subject: Desk\ntestCases:\n- input: Fail\n  contains: x\n",
        "aiEvaluationDefinitions/A.aiEvaluationDefinition": definition("A").decode(),
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    calls = {
        "a run of a file": ["run a.yaml --report r.json -v", "run fails.yaml --report fails.json -v"],
        "a deployed test": ["deploy", "test run --wait --report r.json -v"],
        "doctor": ["doctor"],
    }
    if door == "evaluate":
        assert evaluate("a.yaml", journal=tmp_path / "journal").succeeded
        assert "not paid with [secret]" in str(evaluate("fails.yaml", journal=tmp_path / "journal"))
    for words in calls.get(door, []):
        with pytest.raises(SystemExit):
            main(words.split())
    out, err = capfd.readouterr()
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "redacted_desk.py"]
    assert CARD not in out + err
    assert [path for path in written if CARD.encode() in path.read_bytes() and "__pycache__" not in str(path)] == []
    assert door in {"evaluate", "doctor"} or "[secret]" in (tmp_path / "r.json").read_text()
