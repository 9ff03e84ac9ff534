from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from client.salesforce import Scene, case, done, salesforce
from client.servers import TOKEN, replying_with
from engine.raters.llm.model_server import judging, model_serving
from engine.subjects.conversations import says
from evalmeta.api.doctor.checks import Task, check
from evalmeta.api.doctor.examination import EXTRAS
from evalmeta.api.servers import make_token
from evalmeta.client.logins import user_logins
from evalmeta.model.login import Login, Secrets
from evalmeta.model.store import STORE_VARIABLE
from evalmeta.org.serving.sockets import listen
from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE
from evalmeta.package.project import find_project
from formats.discovery_corpus import NEAR
from org.parts import definition
from org.servers import served
from postgres_servers import free_port
from systems.mcp.tool_server import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome
    from postgres_servers import PostgresServers, PostgresStore

    Evalmeta = Callable[..., Outcome]

SECRET = "canary-0123456789-key"  # noqa: S105 - a secret that must not be shown


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bind(folder: Path, **agents: str) -> None:
    tables = (f'[subjects.{name}]\nadapter = "python"\ntarget = "{name}:answer"\n' for name in agents)
    (folder / "evalmeta.toml").write_text("".join(tables))
    for name, source in agents.items():
        (folder / f"{name}.py").write_text(source)


def findings(done: Outcome) -> dict[str, tuple[str, str, str]]:
    checks = json.loads(done.out)["result"]["checks"]
    return {check["name"]: (check["status"], check["message"], check["action"]) for check in checks}


@pytest.mark.slow
def test_what_is_imported_started_and_called_is_said_before(folder: Path, evalmeta: Evalmeta) -> None:
    bind(folder, shop="print('imported')\nraise SystemExit")
    with (folder / "evalmeta.toml").open("a") as settings:
        settings.write('[subjects.Node]\nadapter = "command"\ncommand = ["node", "my agent.js"]\n')
        url = f"http://ada:{SECRET}@127.0.0.1:9/v1?key={SECRET}"
        settings.write(f'[subjects.Chat]\nadapter = "openai"\nmodel = "m"\nurl = "{url}"\n')

    lines = evalmeta("doctor").out.splitlines()

    said = "imports shop:answer, starts node 'my agent.js', calls http://127.0.0.1:9/v1; each is asked a question"
    assert f"ok       next: {said}" in lines
    assert lines.index(f"ok       next: {said}") < next(n for n, line in enumerate(lines) if "agent shop" in line)
    assert "nothing is asked" in evalmeta("doctor", "--no-questions").out


@pytest.mark.slow
def test_a_new_project_is_healthy(folder: Path, evalmeta: Evalmeta) -> None:
    evalmeta("init")

    done = evalmeta("doctor")

    assert (done.code, done.out.splitlines()[-1]) == (0, "Everything works.")
    assert 'agent sample_agent: python: answered "Hello!" with "We are open' in done.out
    assert f"store: the first run creates {folder}" in done.out
    assert not (folder / ".evalmeta").exists()


@pytest.mark.usefixtures("folder")
def test_a_folder_without_a_project_is_told_how_to_start_one(evalmeta: Evalmeta) -> None:
    done = evalmeta("doctor")

    assert (done.code, "→ Start a project: evalmeta init" in done.out) == (0, True)


def test_the_shells_current_folder_is_not_a_secret(
    folder: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PWD", str(folder))

    assert f"There is no project in {folder} or above it" in evalmeta("doctor").out


@pytest.mark.slow
def test_tests_that_cannot_run_are_reported(folder: Path, evalmeta: Evalmeta) -> None:
    evalmeta("init")
    (folder / "desk.yaml").write_text("subjectName: Desk\ntestCases:\n- utterance: Hello!\n  contains: Hello\n")
    status, message, action = findings(evalmeta("doctor", "--json"))["tests"]
    assert (status, "does not bind: Desk" in message, "[subjects.Desk]" in action) == ("warning", True, True)
    assert findings(evalmeta("doctor", "--target-org", "staging", "--json"))["tests"][0] == "ok"

    (folder / "desk.yaml").write_text("subjectName: Desk\ntestCases:\n- utterance: Hello!\n  contans: Hello\n")
    found = evalmeta("doctor", "--json")
    assert (found.code, findings(found)["tests"][:2]) == (1, ("error", "3 files, 1 not valid"))


@pytest.mark.slow
def test_tests_without_an_agent_are_told_how_to_name_one(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "evalmeta.toml").write_text("")
    (folder / "cases.jsonl").write_text('{"input": "Where?", "contains": "Paris"}\n')
    done = evalmeta("doctor")
    assert "warning  tests: 1 file, which name no agent" in done.out
    assert "→ Name it when they run: evalmeta run FILE --agent MODULE:FUNCTION" in done.out
    (folder / "desk_agent").mkdir()
    (folder / "desk_agent/__init__.py").touch()
    (folder / "desk_agent/agent.py").write_text("root_agent = None\n")
    assert "evalmeta run FILE --agent desk_agent" in evalmeta("doctor").out


@pytest.mark.slow
def test_a_test_with_a_mistake_is_an_error_and_other_files_are_counted(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "package.json").write_text('{"name": "desk", "scripts": {}}')
    (folder / "tests").mkdir()
    (folder / "tests/ok.yaml").write_text("subject: desk:answer\ntestCases:\n- input: Hi\n  contains: Hello\n")
    bind(folder)
    assert findings(evalmeta("doctor", "--json"))["tests"][:2] == ("ok", "1 file, all valid; 1 file was not a test")
    for name, content in NEAR.items():
        (folder / "tests" / name).write_bytes(content.encode())
    checked = findings(evalmeta("doctor", "--json"))["tests"]
    assert checked[:2] == ("error", f"{len(NEAR) + 1} files, {len(NEAR)} not valid")


@pytest.mark.slow
def test_each_broken_agent_is_an_error_with_a_way_out(folder: Path, evalmeta: Evalmeta) -> None:
    raising = "def answer(question):\n    raise KeyError('id')\n"
    quitting = "import os\nprint('{}', flush=True)\nos.kill(os.getpid(), 9)\n"
    bind(folder, good="print('hello')\ndef answer(question):\n    return 'Hi'\n", raising=raising, quitting=quitting)
    with (folder / "evalmeta.toml").open("a") as file:
        file.write('[subjects.gone]\nadapter = "python"\ntarget = "gone:answer"\n')

    done = evalmeta("doctor", "--json")

    assert done.code == 1
    found = findings(done)
    assert found["agent good"] == ("ok", 'python: answered "Hello!" with "Hi"', "")
    assert found["agent raising"][:2] == ("error", "raising.py:2: KeyError: 'id'")
    assert found["agent raising"][2] == "Correct the agent, or [subjects.raising] in evalmeta.toml."
    assert found["agent quitting"][:2] == ("error", "the process ended with exit code -9: {}")
    assert "gone.py" in found["agent gone"][2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", ["import time\ntime.sleep(60)\n", "import time\ndef answer(q):\n    time.sleep(60)\n"]
)
def test_an_agent_that_hangs_ends_at_the_time_limit(folder: Path, evalmeta: Evalmeta, source: str) -> None:
    bind(folder, slow=source)

    found = findings(evalmeta("doctor", "--timeout", "3", "--json"))

    assert found["agent slow"][:2] == ("error", "did not end within 3 s")


@pytest.mark.slow
def test_agents_are_asked_a_question_or_only_loaded(folder: Path, evalmeta: Evalmeta) -> None:
    bind(folder, echo="def answer(question):\n    return question.upper()\n")

    asked = findings(evalmeta("doctor", "--question", "where?", "--json"))
    loaded = findings(evalmeta("doctor", "--no-questions", "--json"))

    assert asked["agent echo"][1] == 'python: answered "where?" with "WHERE?"'
    assert loaded["agent echo"][1] == "python: can be loaded; it was not asked"
    assert evalmeta("doctor", "--question", "a", "--no-questions").code == 2


@pytest.mark.slow
def test_the_tools_of_a_server_of_mcp_are_listed_instead_of_a_question(folder: Path, evalmeta: Evalmeta) -> None:
    command = json.dumps(PROGRAM)
    (folder / "evalmeta.toml").write_text(f'[subjects.Tools]\nadapter = "mcp"\ncommand = {command}\n')
    assert findings(evalmeta("doctor", "--json"))["agent Tools"][:2] == (
        "ok",
        "mcp: has 3 tools: get_order, refund, count",
    )
    called = evalmeta("doctor", "--question", '{"tool": "count"}', "--json")
    assert 'with "call 1"' in findings(called)["agent Tools"][1]


@pytest.mark.slow
def test_secrets_and_control_characters_of_answers_are_not_shown(folder: Path, evalmeta: Evalmeta) -> None:
    token = f"00D000000000001!{'A' * 40}"
    bind(folder, leaky=f"def answer(question):\n    return '\\x1b[31mtoken {token}'\n")

    done = evalmeta("doctor")

    assert '" [31mtoken [secret]"' in done.out


@pytest.mark.slow
def test_an_endpoint_and_a_rater_answer_with_their_keys_which_are_not_shown(
    folder: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_KEY", SECRET)
    with replying_with(says({"error": {"message": f"wrong key {SECRET}"}}, 401)) as server:
        keys = f'model = "m"\nurl = "{server.url}/v1"\napi_key_env = "DESK_KEY"\n'
        lines = f'[subjects.desk]\nadapter = "openai"\n{keys}[raters.judge]\nadapter = "llm"\n{keys}'
        (folder / "evalmeta.toml").write_text(lines)
        done = evalmeta("doctor", "--json")

    found = findings(done)
    assert (found["agent desk"][0], found["rater judge"][0]) == ("error", "error")
    assert SECRET not in done.out + done.err


def rated_by(folder: Path, evalmeta: Evalmeta, *ratings: bytes) -> tuple[str, str, str]:
    with model_serving(*ratings) as server:
        (folder / "evalmeta.toml").write_text(f'[raters.judge]\nadapter = "llm"\nmodel = "m"\nurl = "{server.url}"\n')
        return findings(evalmeta("doctor", "--json"))["rater judge"]


@pytest.mark.slow
def test_a_judge_is_ok_if_it_judges_a_right_and_a_wrong_answer_correctly(folder: Path, evalmeta: Evalmeta) -> None:
    status, message, _ = rated_by(folder, evalmeta, judging(5), judging(0))
    assert (status, message) == ("ok", "llm: rated a correct answer with 5 of 5, and a wrong one with 0")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratings", "rated"), [((1, 0), '"Paris." to {} with 1 of 5'), ((5, 5), '"Rome." to {} with 5 of 5')]
)
def test_a_judge_that_misjudges_a_right_or_a_wrong_answer_is_not_ok(
    folder: Path, evalmeta: Evalmeta, ratings: tuple[int, int], rated: str
) -> None:
    status, message, action = rated_by(folder, evalmeta, *(judging(rating, reason="So.") for rating in ratings))
    shown = rated.format('"What is the capital of France?"')
    assert (status, message) == ("warning", f'llm: misjudges answers: it rated {shown}, and "Paris." was expected: So.')
    assert "evalmeta rater check FILE --rater judge" in action


def test_settings_that_are_not_valid_are_reported_with_their_line(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "evalmeta.toml").write_text('[subjects.desk]\nadapter = "python"\ntarget = "agents/desk:answer"\n')

    done = evalmeta("doctor")

    assert done.code == 1
    assert "error    settings: evalmeta.toml:3:1: subjects.desk.target" in done.out
    assert "Write agents.desk:answer." in done.out


@pytest.mark.slow
def test_a_damaged_store_and_an_unknown_org_are_errors(folder: Path, evalmeta: Evalmeta) -> None:
    bind(folder, echo="def answer(question):\n    return question\n")
    (folder / ".evalmeta").mkdir()
    (folder / ".evalmeta/org.sqlite3").write_bytes(b"not a database" * 100)

    found = findings(evalmeta("doctor", "--target-org", "nowhere", "--json"))

    assert (found["store"][0], found["org"][0]) == ("error", "error")
    assert "nowhere" in found["org"][1]


@pytest.mark.slow
def test_another_org_is_checked_and_its_commands_name_it(
    folder: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    for name in ("Orders", "Returns"):
        path = folder / f"aiEvaluationDefinitions/{name}.aiEvaluationDefinition"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(definition(name, subject="Agent"))
    active = {"DeveloperName": "v1", "VersionNumber": 1, "Status": "Active"}
    with salesforce(content=definition("Orders", subject="Agent"), versions=[active]) as org:
        user_logins().save(Login("me@dev.example", org.url, alias="dev"), Secrets(TOKEN))
        done = evalmeta("doctor", "-o", "dev", "--json")

    found = findings(done)
    assert done.code == 0
    assert list(found)[2:] == [
        *("project", "settings", "tests", "store", "org", "API version", "Testing Center", "agent Agent", "definitions")
    ]
    assert {name for name, (status, _, _) in found.items() if status != "ok"} == {"definitions"}
    assert found["definitions"][2] == "Deploy it: evalmeta deploy --target-org dev"
    assert org.starts == []


@pytest.mark.slow
def test_a_served_org_of_evalmeta_is_checked(
    tmp_path: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind(tmp_path, Desk="def answer(question):\n    return 'Hi'\n")
    project = find_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    with served(project) as url:
        monkeypatch.setenv("SF_ORG_INSTANCE_URL", url)
        monkeypatch.setenv("SF_ACCESS_TOKEN", make_token(project))
        for name, subject in (("Orders", "Desk"), ("Returns", "Clerk")):
            path = tmp_path / f"aiEvaluationDefinitions/{name}.aiEvaluationDefinition"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(definition(name, subject=subject))
        assert evalmeta("deploy").code == 0
        found = findings(evalmeta("doctor", "--smoke", "--json"))

    assert found["definitions"][:2] == ("ok", "2 definitions, deployed and the same as in the project")
    assert found["runs"][:2] == ("error", "no adapter is bound to the agent 'Clerk' (Returns)")
    assert found["smoke"][:2] == ("ok", 'Orders, case 1: answered "Orders 1" with "Hi"')


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_a_smoke_case_is_asked_in_the_embedded_org_too(evalmeta: Evalmeta) -> None:
    evalmeta("init", "--dx")
    missing = findings(evalmeta("doctor", "--smoke", "--json"))["smoke"]
    evalmeta("deploy")
    asked = findings(evalmeta("doctor", "--smoke", "--json"))
    Path("sample_agent.py").write_text("raise OSError('closed')\n")

    assert missing[1:] == ("no test of the project is deployed", "Deploy them: evalmeta deploy")
    assert asked["smoke"][0] == "ok"
    assert "Sample_Agent_Conversation, case 1: answered" in asked["smoke"][1]
    assert findings(evalmeta("doctor", "--smoke", "--json"))["smoke"][1] == "not asked, because an agent cannot be used"


@pytest.mark.slow
def test_a_question_is_asked_in_another_org_whose_runs_are_counted(
    folder: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    content = definition("Orders", subject="Agent")
    (folder / "aiEvaluationDefinitions").mkdir()
    (folder / "aiEvaluationDefinitions/Orders.aiEvaluationDefinition").write_bytes(content)
    with salesforce([Scene("COMPLETED", done(case(1)))], content=content, definition="Orders") as org:
        user_logins().save(Login("me@dev.example", org.url, alias="dev"), Secrets(TOKEN))
        evalmeta("test", "run", "-n", "Orders", "-o", "dev", "--wait")
        found = findings(evalmeta("doctor", "-o", "dev", "--question", "Where?", "--json"))
        unknown = findings(evalmeta("doctor", "-o", "nope", "--json"))

    assert (found["smoke"][0], ", 1 run since " in found["store"][1]) == ("ok", True)
    assert unknown["org"][1:] == ("the login 'nope' cannot be found", "Name one of your logins: dev")


def test_every_extra_of_the_package_is_listed() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert set(EXTRAS) == set(project["optional-dependencies"]) - {"all"}


@pytest.mark.slow
def test_quarantines_that_have_ended_are_a_warning(folder: Path, evalmeta: Evalmeta) -> None:
    bind(folder, desk="def answer(utterance):\n    return utterance\n")
    quarantine = "quarantine: {reason: flaky, until: 2026-01-31}"
    (folder / "desk.yaml").write_text(f"subject: desk\ntestCases:\n- input: Hi\n  contains: Hi\n  {quarantine}\n")
    assert findings(evalmeta("doctor", "--json"))["tests"] == (
        "warning",
        "1 file; the quarantine of case 1 ended on 2026-01-31, so its result counts again",
        "Show what to do: evalmeta validate",
    )


@pytest.mark.slow
def test_the_size_of_the_store_and_its_growth_are_shown(folder: Path, evalmeta: Evalmeta) -> None:
    bind(folder, desk="def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'Soon.'}\n")
    (folder / "orders.yaml").write_text("subject: desk\ncases:\n- input: When?\n  topic: Orders\n")
    assert evalmeta("run", "orders.yaml").code == 0
    shown = findings(evalmeta("doctor", "--json"))["store"][1]
    assert re.search(r"org\.sqlite3, \d+\.\d kB, 1 run since \d{4}-\d\d-\d\d, about \d+\.\d kB in a week$", shown)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_a_shared_store_that_cannot_be_reached_is_an_error_before_the_first_run(
    evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("evalmeta.toml").touch()
    monkeypatch.setenv(STORE_VARIABLE, f"postgresql://ada:{SECRET}@127.0.0.1:{free_port()}/team")

    done = evalmeta("doctor")

    assert done.code == 1
    assert re.search(r"error    store: postgresql://127\.0\.0\.1:\d+/team cannot be reached", done.out)
    assert "Everything works" not in done.out
    assert SECRET not in done.out + done.err


@pytest.mark.slow
@pytest.mark.postgres
def test_what_is_wrong_with_a_shared_store_is_shown_at_once(
    folder: Path,
    evalmeta: Evalmeta,
    monkeypatch: pytest.MonkeyPatch,
    store_url: str,
    postgres_servers: PostgresServers,
    postgres_store: PostgresStore,
) -> None:
    monkeypatch.setenv(STORE_VARIABLE, store_url)
    (folder / "evalmeta.toml").touch()
    status, message, action = findings(evalmeta("doctor", "--json"))["store"]
    # The server of the tests writes nothing to the disk before it answers.
    assert status == "warning"
    assert re.fullmatch(r"postgresql://127\.0\.0\.1:\d+/evalmeta: fsync or full_page_writes is off: .*", message)
    assert "postgresql.conf" in action

    with postgres_servers.postgres.connect() as admin:
        admin.execute(f"REVOKE DELETE ON {postgres_store.name}.rating FROM {postgres_store.name}")
    done = evalmeta("doctor", "--json")
    status, message, action = findings(done)["store"]
    assert (done.code, status, action) == (1, "error", "Grant them to the role.")
    assert "fsync" in message
    assert "the role lacks SELECT, INSERT, UPDATE and DELETE on rating" in message


@pytest.mark.slow
@pytest.mark.parametrize("place", ["/proc/evalmeta", "/proc"])
def test_a_state_folder_that_cannot_be_written_is_an_error_for_root_too(
    folder: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    bind(folder)
    monkeypatch.setenv("EVALMETA_HOME", place)

    done = evalmeta("doctor")

    assert done.code == 1
    assert "error    store: /proc cannot be written: " in done.out
    assert "set EVALMETA_HOME to another folder" in done.out


@pytest.mark.slow
def test_a_disk_without_room_is_not_everything_works(folder: Path, evalmeta: Evalmeta, program: list[str]) -> None:
    evalmeta("init")
    evalmeta("run", ".")
    full = ["/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *program, "doctor", "--no-questions"]

    done = subprocess.run(full, check=False, capture_output=True, text=True, timeout=60)

    assert (done.returncode, "Everything works" in done.stdout) == (1, False)
    assert f"error    store: {folder}/.evalmeta cannot be written: File too large" in done.stdout


def bind_traced(folder: Path, port: int) -> None:
    agent = f'adapter = "http"\nurl = "http://127.0.0.1:9/"\ntraces = true\ntrace_port = {port}\n'
    (folder / "evalmeta.toml").write_text(f"[subjects.Desk]\n{agent}")


@pytest.mark.slow
def test_the_variables_of_an_agent_whose_traces_are_received_are_shown_without_the_token(
    folder: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, SECRET)
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    bind_traced(folder, port)
    done = evalmeta("doctor", "--no-questions")
    assert f"traces Desk: port {port} is free; the agent needs these variables:" in done.out
    assert f"export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{port}" in done.out
    assert "Bearer%20$EVALMETA_TRACES_TOKEN" in done.out
    assert SECRET not in done.out + done.err


def test_a_trace_port_without_a_token_or_in_use_is_an_error_of_doctor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        bind_traced(folder, port)
        task = Task("traces", str(folder), "Desk")
        without_token = check(task)
        monkeypatch.setenv(TOKEN_VARIABLE, SECRET)
        in_use = check(task)
    assert [without_token.status, in_use.status, check(task).status] == ["error", "error", "ok"]
    assert TOKEN_VARIABLE in without_token.action
    assert f"trace_port {port}" in in_use.message
    assert check(Task("agent", str(folder), "Desk")).status == "ok"
