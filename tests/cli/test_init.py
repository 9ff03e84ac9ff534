from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from bundles import write_bundle
from client.servers import replying_with
from engine.subjects.conversations import says
from evalmeta.api.init.examples import EXAMPLES
from evalmeta.api.init.project import CI_FILES
from evalmeta.cli.commands.init import init
from evalmeta.package.settings import load_settings
from postgres_servers import free_port
from suites import wait_until
from systems.a2a.desk import desk, message, result
from systems.mcp.tool_server import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome
    from evalmeta.api.init.project import CiSystem

    Evalmeta = Callable[..., Outcome]

DX = '{"packageDirectories": [{"path": "force-app", "default": true}]}'
EXAMPLE_FILES = Path(__file__).parents[2] / "src/evalmeta/api/project_files/examples"
DEFINITIONS = "force-app/main/default/aiEvaluationDefinitions"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_next(evalmeta: Evalmeta, begun: Outcome) -> Outcome:
    """Run the commands that init names, and return the outcome of the last one."""
    assert begun.code == 0, begun.err
    commands = [line.strip() for line in begun.out.partition("Next:\n")[2].partition("\n\n")[0].splitlines()]
    ended = [evalmeta(*command.removeprefix("evalmeta ").split()) for command in commands]
    assert all(each.code == 0 for each in ended), ended
    return ended[-1]


def files_in(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and ".evalmeta/" not in f"{path}")
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in found if each.suffix != ".pyc"}


@pytest.mark.parametrize(
    "options",
    [(), ("--agent", "shop:answer"), ("--agent", "desk.shop:reply"), ("--dx",), ("--dx", "--agent", "shop:answer")],
)
def test_an_empty_folder_becomes_a_project_whose_tests_are_valid_and_pass(
    folder: Path, evalmeta: Evalmeta, options: tuple[str, ...]
) -> None:
    begun = evalmeta("init", *options)

    assert "3 passed, 0 failed, 0 errors, 0 undecided" in run_next(evalmeta, begun).out
    assert evalmeta("validate").code == 0
    assert all(len(content.splitlines()) <= 80 for content in files_in(folder).values())


@pytest.mark.usefixtures("folder")
def test_definitions_of_a_new_project_pass_in_an_org_too(evalmeta: Evalmeta) -> None:
    done = evalmeta("init", "--dx")

    assert done.out.endswith("Agent:\n  evalmeta deploy -o ORG\n  evalmeta test run -o ORG --wait\n")
    assert evalmeta("deploy").code == 0
    assert "3 passed" in evalmeta("test", "run", "--wait").out


def test_an_existing_python_agent_is_tested_and_not_changed(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "shop.py").write_text("def answer(question):\n    return f'You said {question}'\n")

    run_next(evalmeta, evalmeta("init", "--agent", "shop:answer"))

    assert (folder / "shop.py").read_text().startswith("def answer(question)")


def test_an_existing_python_agent_of_a_dx_project_is_tested_by_definitions(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "sfdx-project.json").write_text(DX)
    (folder / "shop.py").write_text("def answer(question):\n    return f'You said {question}'\n")

    run_next(evalmeta, evalmeta("init", "--agent", "shop:answer"))

    assert (folder / DEFINITIONS / "Shop_Answers.aiEvaluationDefinition-meta.xml").is_file()
    assert evalmeta("validate").out == "2 files are valid\n"


@pytest.mark.parametrize("options", [(), ("--agent", "shop:answer")])
def test_definitions_fit_an_older_version_of_the_project(
    folder: Path, evalmeta: Evalmeta, options: tuple[str, ...]
) -> None:
    (folder / "sfdx-project.json").write_text(f'{DX[:-1]}, "sourceApiVersion": "63.0"}}')
    (folder / "shop.py").write_text("def answer(question):\n    return f'You said {question}'\n")

    assert run_next(evalmeta, evalmeta("init", *options)).code == 0
    assert evalmeta("validate").out == "2 files are valid\n"


def test_an_agent_gets_the_name_that_definitions_of_the_project_use(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "sfdx-project.json").write_text(DX)
    (folder / DEFINITIONS).mkdir(parents=True)
    file = folder / DEFINITIONS / "Orders.aiEvaluationDefinition-meta.xml"
    file.write_text("<AiEvaluationDefinition>\n<subjectName>Order_Desk</subjectName></AiEvaluationDefinition>")

    evalmeta("init")

    assert "[subjects.Order_Desk]" in (folder / "evalmeta.toml").read_text()


def test_an_endpoint_is_asked_with_its_model_and_key(
    folder: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_KEY", "a-long-secret-key")
    replies = [says({"choices": [{"message": {"content": "Hello."}}]})] * 4
    with replying_with(*replies) as server:
        begun = evalmeta("init", "--url", server.url, "--model", "desk-1", "--api-key-env", "DESK_KEY")
        run_next(evalmeta, begun)

    assert all(request.startswith(b"POST /v1/chat/completions ") for request in server.requests)
    assert all(b"a-long-secret-key" in request for request in server.requests)
    assert b"a-long-secret-key" not in b"".join(files_in(folder).values())


@pytest.mark.parametrize("option", ["--agent", "--url"])
def test_an_agent_that_speaks_a2a_is_asked_and_found_again(folder: Path, evalmeta: Evalmeta, option: str) -> None:
    with desk(lambda _: result(message("1.0", {"text": "Hello."}))) as server:
        begun = evalmeta("init", option, f"a2a:{server.url}", "--api-key-env", "DESK_KEY")
        evalmeta("init", option, f"a2a:{server.url}", "--api-key-env", "DESK_KEY")
        settings = folder / "evalmeta.toml"
        assert settings.read_text().count("[subjects.") == 1
        settings.write_text(settings.read_text().replace('api_key_env = "DESK_KEY"', ""))
        run_next(evalmeta, begun)
        assert evalmeta("run", "tests", "--agent", f"a2a:{server.url}").code == 0

    assert any(request.startswith(b"POST /rpc ") for request in server.requests)


def test_the_tools_of_a_server_of_mcp_are_listed_and_called(folder: Path, evalmeta: Evalmeta) -> None:
    begun = evalmeta("init", "--agent", f"mcp:{shlex.join(PROGRAM)}")
    assert "3 tools: get_order, refund, count" in begun.err
    assert yaml.safe_load((folder / "tests/calls.yaml").read_text())["testCases"] == [
        {
            "input": {"tool": "get_order", "arguments": {"id": "text"}},
            "actions": [{"name": "get_order", "error": False}],
        }
    ]
    run_next(evalmeta, begun)
    evalmeta("init", "--agent", f"mcp:{shlex.join(PROGRAM)}")
    assert (folder / "evalmeta.toml").read_text().count("[subjects.") == 1


@pytest.mark.usefixtures("folder")
def test_a_server_of_mcp_that_does_not_answer_is_an_error_and_nothing_is_written(
    folder: Path, evalmeta: Evalmeta
) -> None:
    refused = evalmeta("init", "--agent", "mcp:http://127.0.0.1:9/mcp")
    assert "is it running" in refused.err
    assert not [*folder.iterdir()]


@pytest.mark.usefixtures("folder")
def test_another_endpoint_is_asked_with_json(evalmeta: Evalmeta) -> None:
    with replying_with(*[says({"answer": "Hello."})] * 4) as server:
        run_next(evalmeta, evalmeta("init", "--url", f"{server.url}/chat"))

    assert all(request.startswith(b"POST /chat ") for request in server.requests)


def test_a_program_is_started_with_its_arguments(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "bot.py").write_text("import sys\nfor _ in sys.stdin:\n    print('\"Hello.\"', flush=True)\n")

    run_next(evalmeta, evalmeta("init", "--command", "python3 bot.py --quiet"))

    subject = load_settings(folder / "evalmeta.toml").subjects["my_agent"]
    assert subject.model_dump()["command"] == ("python3", "bot.py", "--quiet")


def test_a_second_init_changes_nothing_and_names_what_it_kept(folder: Path, evalmeta: Evalmeta) -> None:
    first = evalmeta("init", "--ci", "github")
    before = files_in(folder)

    second = evalmeta("init", "--ci", "github")

    assert files_in(folder) == before
    assert "Created" not in second.out
    assert second.out.count("Kept ") == len(before) - 1
    assert second.out.partition("Next:")[2] == first.out.partition("Next:")[2]


def test_an_existing_settings_file_is_kept_and_the_lines_that_it_lacks_are_printed(
    folder: Path, evalmeta: Evalmeta
) -> None:
    (folder / "evalmeta.toml").write_text("[run]\nconcurrency = 1\n")

    begun = evalmeta("init", "--url", "http://127.0.0.1:9/v1", "--model", "m")

    assert (folder / "evalmeta.toml").read_text() == "[run]\nconcurrency = 1\n"
    assert "evalmeta.toml exists and was kept. Add these lines to it:\n\n  [subjects.my_agent]\n" in begun.err


def test_an_agent_that_settings_bind_already_gets_tests(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "evalmeta.toml").write_text('[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n')
    (folder / "desk.py").write_text("def answer(question):\n    return 'Hello'\n")

    begun = evalmeta("init")

    run_next(evalmeta, begun)
    assert not (folder / "sample_agent.py").exists()
    assert yaml.safe_load((folder / "tests/answers.yaml").read_text())["subject"] == "Desk"


def test_kept_tests_of_another_agent_than_the_chosen_one_are_named(folder: Path, evalmeta: Evalmeta) -> None:
    evalmeta("init")
    (folder / "desk.py").write_text("def answer(question):\n    return 'Hello'\n")

    begun = evalmeta("init", "--agent", "desk:answer")
    assert "Note: tests/answers.yaml was kept and tests sample_agent; write subject: desk:answer in it" in begun.err
    assert "Note:" not in evalmeta("init", "--agent", "sample_agent:answer").err

    spec = folder / "tests/answers.yaml"
    spec.write_text(spec.read_text().replace("subject: sample_agent", "subject: desk:answer"))
    assert "Note: tests/answers.yaml" not in evalmeta("init", "--agent", "desk:answer").err


def test_a_gitignore_gets_what_it_lacks_once(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / ".gitignore").write_text("*.pyc")

    assert "Added to .gitignore" in evalmeta("init").out
    evalmeta("init")
    assert (folder / ".gitignore").read_text() == "*.pyc\n.evalmeta/\n"

    for _ in range(2):
        evalmeta("init", "--ci", "gitlab")
    assert (folder / ".gitignore").read_text() == "*.pyc\n.evalmeta/\nresults/\n"


def test_the_line_endings_of_a_gitignore_are_kept(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / ".gitignore").write_bytes(b"*.pyc\r\n")
    evalmeta("init")
    assert (folder / ".gitignore").read_bytes() == b"*.pyc\r\n.evalmeta/\r\n"


def test_a_gitignore_that_is_not_a_file_is_left_alone(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / ".gitignore").symlink_to("missing")
    assert "Kept     .gitignore" in evalmeta("init").out
    assert (folder / ".gitignore").is_symlink()


def test_tests_stand_apart_from_those_of_pytest(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["../others", "checks"]\n')
    (folder / "checks").mkdir()
    (folder.parent / "others").mkdir()
    for tests in (folder.parent / "others", folder / "checks"):
        (tests / "test_shop.py").write_text("def test_shop(): ...\n")

    begun = evalmeta("init")

    run_next(evalmeta, begun)
    assert (folder / "checks/agent/answers.yaml").is_file()


def test_a_folder_inside_a_dx_project_stands_for_the_project(
    folder: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sfdx-project.json").write_text(DX)
    bots = folder / "force-app/main/default/bots/Order_Desk"
    bots.mkdir(parents=True)
    (bots / "Order_Desk.bot-meta.xml").touch()
    monkeypatch.chdir(bots)

    begun = evalmeta("init")

    assert begun.code == 0
    assert "[subjects.Order_Desk]" in (folder / "evalmeta.toml").read_text()
    assert sorted(files_in(bots)) == ["Order_Desk.bot-meta.xml"]


def test_an_agent_of_google_adk_is_bound_by_its_package(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "weather").mkdir()
    (folder / "weather/agent.py").write_text("root_agent = object()\n")

    begun = evalmeta("init")

    assert "weather/agent.py has an agent of google-adk" in begun.err
    settings = load_settings(folder / "evalmeta.toml").subjects["weather"]
    assert settings.model_dump() == {"adapter": "adk", "target": "weather", "agent_name": ""}
    assert "Next:\n  evalmeta run tests\n" in begun.out


def test_eval_sets_that_are_there_already_run_too(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "weather").mkdir()
    (folder / "weather/agent.py").write_text("root_agent = object()\n")
    (folder / "weather/a.evalset.json").write_text(
        '{"eval_set_id": "a", "eval_cases": [{"eval_id": "b", "conversation": '
        '[{"user_content": {"parts": [{"text": "Hi"}]}}]}]}'
    )

    assert "Next:\n  evalmeta run\n" in evalmeta("init").out


@pytest.mark.parametrize(
    ("system", "file", "key"),
    [
        ("github", ".github/workflows/agent-tests.yml", "DESK_KEY: ${{ secrets.DESK_KEY }}"),
        ("gitlab", ".gitlab-ci.yml", "CI_DEFAULT_BRANCH"),
        ("azure", "azure-pipelines.yml", "DESK_KEY: $(DESK_KEY)"),
    ],
)
def test_a_workflow_runs_the_tests_with_the_key_of_the_agent(
    folder: Path, evalmeta: Evalmeta, system: str, file: str, key: str
) -> None:
    url = ("--url", "http://127.0.0.1:9/v1", "--model", "m", "--api-key-env", "DESK_KEY")

    begun = evalmeta("init", *url, "--ci", system)

    text = (folder / file).read_text()
    assert yaml.safe_load(text)
    assert key in text
    assert f"{begun.out.partition('Next:')[2].strip()} --report results/junit.xml" in text


JUDGED = """\
[subjects.desk]
adapter = "http"
url = "http://127.0.0.1:9"
headers = {Authorization = "Bearer ${DESK_KEY}"}
[score]
rater = "judge"
[raters.other]
adapter = "llm"
model = "m"
url = "http://127.0.0.1:9/v1"
api_key_env = "OTHER_KEY"
[raters.judge]
adapter = "llm"
"""
JUDGES = [
    ('model = "m"\nurl = "http://127.0.0.1:9/v1"\napi_key_env = "JUDGE_KEY"', "JUDGE_KEY"),
    ('model = "anthropic:claude-sonnet-4-5"', "ANTHROPIC_API_KEY"),
]


@pytest.mark.parametrize(("judge", "variable"), JUDGES)
def test_a_workflow_has_the_keys_of_the_judge_and_of_bound_agents(
    folder: Path, evalmeta: Evalmeta, judge: str, variable: str
) -> None:
    (folder / "evalmeta.toml").write_text(f"{JUDGED}{judge}\n")

    evalmeta("init", "--ci", "github")

    steps = yaml.safe_load((folder / CI_FILES["github"]).read_text())["jobs"]["agent-tests"]["steps"]
    [run] = [step for step in steps if "evalmeta run" in step.get("run", "")]
    assert run["env"] == {name: f"${{{{ secrets.{name} }}}}" for name in ("DESK_KEY", variable)}
    evalmeta("init", "--ci", "azure")
    steps = yaml.safe_load((folder / CI_FILES["azure"]).read_text())["steps"]
    [run] = [step for step in steps if "evalmeta run" in step.get("script", "")]
    assert run["env"] == {name: f"$({name})" for name in ("DESK_KEY", variable)}


@pytest.mark.parametrize("system", ["github", "gitlab", "azure"])
@pytest.mark.parametrize("name", ["evalmeta-baseline.json", "tests/known failures.json"])
def test_a_workflow_compares_with_the_baseline_that_exists(
    folder: Path, evalmeta: Evalmeta, system: CiSystem, name: str
) -> None:
    evalmeta("init")
    evalmeta("run", "tests")
    evalmeta("test", "baseline", "-o", name)
    (folder / "a.json").write_text("{}")

    evalmeta("init", "--ci", system)

    assert f" --baseline {shlex.quote(name)} --report results/junit.xml" in (folder / CI_FILES[system]).read_text()


@pytest.mark.usefixtures("folder")
def test_a_workflow_without_a_baseline_compares_with_none(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "evalmeta-baseline.json").write_text('{"evalmeta": "baseline"}')
    evalmeta("init", "--ci", "github")
    assert "--baseline" not in (folder / CI_FILES["github"]).read_text()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--agent", "agents/shop:answer"), "Write --agent agents.shop:answer"),
        (("--agent", "agents\\shop.py:answer"), "Write --agent agents.shop:answer"),
        (("--agent", "shop"), "Write --agent shop:answer"),
        (("--agent", "a:b", "--url", "http://127.0.0.1"), "--agent and --url name different agents"),
        (("--model", "m"), "--model needs --url"),
        (("--agent", "a2a:http://127.0.0.1", "--model", "m"), "--model is for URLs of endpoints"),
        (("--url", "127.0.0.1:8000"), "is not a valid URL of an agent"),
        (("--url", "http://["), "is not a valid URL of an agent"),
        (("--url", "http://me:pass@127.0.0.1/v1"), "the URL of the agent contains a password or a key"),
        (("--url", "http://127.0.0.1", "--api-key-env", "sk-123"), "not a valid name of an environment variable"),
        (("--command", "bot 'x"), "cannot be read: No closing quotation"),
        (("--command", " "), "--command is empty"),
        (("broken.py",), "broken.py is a file"),
        (("--agent", "broken:answer"), "broken.py"),
    ],
)
def test_a_call_that_is_not_valid_writes_nothing(
    folder: Path, evalmeta: Evalmeta, options: tuple[str, ...], said: str
) -> None:
    (folder / "broken.py").write_text("def answer(:\n")

    refused = evalmeta("init", *options)

    assert refused.code == 2
    assert said in refused.err
    assert list(files_in(folder)) == ["broken.py"]


@pytest.mark.usefixtures("folder")
def test_json_names_the_files_and_the_next_command(evalmeta: Evalmeta) -> None:
    result = json.loads(evalmeta("init", "shop", "--json").out)["result"]

    assert {each["state"] for each in result["files"]} == {"Created"}
    assert result["subject"] == "sample_agent"
    assert result["next"][0] == "cd shop"


def test_a_python_agent_that_existing_settings_do_not_bind_can_be_tested_at_once(
    folder: Path, evalmeta: Evalmeta
) -> None:
    (folder / "evalmeta.toml").write_text("[run]\nconcurrency = 1\n")

    begun = evalmeta("init", "--agent", "shop:answer")

    assert "3 passed" in run_next(evalmeta, begun).out
    assert (folder / "evalmeta.toml").read_text() == "[run]\nconcurrency = 1\n"


SHOP = "def answer(question):\n    return f'You said {question}'\n"


@pytest.mark.parametrize(
    ("agent", "meant"),
    [("shopdsk:answer", "shopdesk:answer"), ("desk.shpo:reply", "desk.shop:reply"), ("other:answer", "")],
)
def test_a_module_that_does_not_exist_is_no_reason_for_a_sample_beside_an_agent(
    folder: Path, evalmeta: Evalmeta, agent: str, meant: str
) -> None:
    (folder / "desk").mkdir()
    for name in ("shopdesk.py", "desk/shop.py"):
        (folder / name).write_text(SHOP)

    refused = evalmeta("init", "--agent", agent)

    assert (refused.code, f"the module of the agent '{agent}' cannot be found" in refused.err) == (2, True)
    assert (f"Did you mean --agent {meant}?" in refused.err) == bool(meant)
    assert sorted(files_in(folder)) == ["desk/shop.py", "shopdesk.py"]
    asked = evalmeta("init", "--agent", agent, "--sample")
    assert "3 passed" in run_next(evalmeta, asked).out


def test_an_agent_in_the_folder_is_tested_and_a_sample_only_if_asked(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "shopdesk.py").write_text(SHOP)
    (folder / "conftest.py").write_text("def answer(): ...\n")

    begun = evalmeta("init")

    assert "The tests ask shopdesk:answer; to test another agent, use --agent." in begun.err
    assert "2 passed" in run_next(evalmeta, begun).out
    assert not (folder / "sample_agent.py").exists()
    (folder / "evalmeta.toml").unlink()
    evalmeta("init", "--sample")
    assert (folder / "sample_agent.py").exists()


def test_code_that_may_be_an_agent_is_named_beside_the_sample(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "bot.py").write_text("def handle(question): ...\n")
    begun = evalmeta("init")
    assert "name it with --agent" in begun.err
    assert "3 passed" in run_next(evalmeta, begun).out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--agent", "shopdesk:answer", "--sample"), "the module shopdesk exists"),
        (("--url", "http://127.0.0.1/v1", "--sample"), "--sample writes a Python agent"),
    ],
)
def test_a_sample_replaces_no_agent(folder: Path, evalmeta: Evalmeta, options: tuple[str, ...], said: str) -> None:
    (folder / "shopdesk.py").write_text(SHOP)
    refused = evalmeta("init", *options)
    assert (refused.code, said in refused.err, [*files_in(folder)]) == (2, True, ["shopdesk.py"])


SCRIPT = """\
start_agent router:
    description: "Chooses a subagent"
subagent Order_Status:
    description: "Tells where an order is, & when it arrives"
"""
TEST = """\
<?xml version="1.0" encoding="UTF-8"?>
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <name>Visits</name>
    <subjectName>Front_Desk</subjectName>
    <subjectType>AGENT</subjectType>
    <testCase>
        <expectation><name>topic_sequence_match</name><expectedValue>Visits</expectedValue></expectation>
        <inputs><utterance>May I come?</utterance></inputs>
        <number>1</number>
    </testCase>
</AiEvaluationDefinition>
"""


@pytest.fixture
def dx_folder(folder: Path) -> Path:
    """Give a Salesforce project with an agent in a script, and another in a test."""
    main = folder / "force-app/main/default"
    write_bundle(main, "Order_Desk", SCRIPT.encode())
    (folder / DEFINITIONS).mkdir()
    (folder / "sfdx-project.json").write_text(DX)
    (folder / DEFINITIONS / "Visits.aiEvaluationDefinition-meta.xml").write_text(TEST)
    return folder


def test_agents_of_a_dx_project_are_bound_to_doubles_that_are_errors_until_they_are_edited(
    dx_folder: Path, evalmeta: Evalmeta
) -> None:
    begun = evalmeta("init")

    bound = load_settings(dx_folder / "evalmeta.toml").subjects
    assert {name: settings.adapter for name, settings in bound.items()} == {
        "Front_Desk": "python",
        "Order_Desk": "agent_script",
    }
    assert "agent_doubles.py stands in for Front_Desk: edit it to call them" in begun.err
    assert "Next:\n  evalmeta run\n" in begun.out
    double = dx_folder / "agent_doubles.py"
    assert "Order_Desk" not in double.read_text()
    done = evalmeta("run")
    assert (done.code, "0 passed, 1 failed, 1 error" in done.out) == (1, True)
    assert "NotImplementedError: Front_Desk is not connected" in done.out
    double.write_text(TO_VISITS)
    assert "Front_Desk is not connected" not in evalmeta("run").out


def test_an_agent_in_agent_script_is_the_one_that_is_tested(dx_folder: Path, evalmeta: Evalmeta) -> None:
    (dx_folder / DEFINITIONS / "Visits.aiEvaluationDefinition-meta.xml").unlink()

    begun = evalmeta("init")

    assert not (dx_folder / "agent_doubles.py").exists()
    assert "rules/Order_Desk.yaml: write rules that choose the agent's steps, or let a model choose" in begun.err
    done = evalmeta("run")
    assert done.code == 100
    assert "answer    No rule says what the agent does." in done.out
    script = next(dx_folder.rglob("*.agent"))
    script.write_text(SCRIPT.replace("subagent Order", f"{TO_ORDERS}subagent Order"))
    rules = dx_folder / "rules/Order_Desk.yaml"
    rules.write_text(rules.read_text().replace("rules:\n", "rules:\n- {subagent: router, call: go}\n"))
    assert evalmeta("run").code == 0
    evalmeta("init")
    assert "call: go" in rules.read_text()


TO_ORDERS = """\
    reasoning:
        actions:
            go: @utils.transition to @subagent.Order_Status
"""
TO_VISITS = "def Front_Desk(utterance):\n    return {'topic': 'Visits', 'outcome': 'Yes.'}\n"


def test_a_dx_project_without_tests_is_told_how_to_write_one(
    tmp_path: Path, evalmeta: Evalmeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = tmp_path / "force-app/main/default/bots/Order_Desk/Order_Desk.bot-meta.xml"
    bot.parent.mkdir(parents=True)
    bot.write_text('<Bot xmlns="http://soap.sforce.com/2006/04/metadata"><label>Order Desk</label></Bot>')
    (tmp_path / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "force-app", "default": true}]}')
    monkeypatch.chdir(tmp_path)
    first, second = evalmeta("init").out.partition("Next:\n")[2].splitlines()[:2]
    assert second == "  evalmeta run"
    assert evalmeta(*shlex.split(first)[1:]).code == 0
    assert "Order_Desk is not connected" in evalmeta("run").out


def test_cases_of_a_dx_project_come_from_its_topics_and_only_for_agents_without_tests(
    dx_folder: Path, evalmeta: Evalmeta
) -> None:
    evalmeta("init")

    names = [path.name.partition(".")[0] for path in sorted((dx_folder / DEFINITIONS).iterdir())]
    assert names == ["Order_Desk_Topics", "Visits"]
    proposed = (dx_folder / DEFINITIONS / "Order_Desk_Topics.aiEvaluationDefinition-meta.xml").read_text()
    assert "<utterance>Tells where an order is, &amp; when it arrives</utterance>" in proposed
    assert proposed.count("<expectedValue>Order_Status</expectedValue>") == proposed.count("<testCase>") == 1
    assert evalmeta("validate").code == 0
    before = files_in(dx_folder)
    assert evalmeta("init").code == 0
    assert files_in(dx_folder) == before


def test_an_agent_with_a_test_spec_alone_gets_a_definition_that_an_org_can_run(
    dx_folder: Path, evalmeta: Evalmeta
) -> None:
    (dx_folder / "orders.yaml").write_text(
        "subjectName: Order_Desk\ntestCases:\n- input: Where is it?\n  contains: it\n"
    )
    evalmeta("init")
    assert (dx_folder / DEFINITIONS / "Order_Desk_Topics.aiEvaluationDefinition-meta.xml").exists()


@pytest.mark.parametrize("options", [("--sample",), ("--agent", "shop:answer")])
def test_a_sample_never_stands_for_a_real_agent(dx_folder: Path, evalmeta: Evalmeta, options: tuple[str, ...]) -> None:
    evalmeta("init", *options)
    [bound] = load_settings(dx_folder / "evalmeta.toml").subjects
    assert bound in {"Sample_Agent", "Shop"}


def test_a_python_agent_gets_the_name_of_the_agent_in_the_project(dx_folder: Path, evalmeta: Evalmeta) -> None:
    (dx_folder / "shop.py").write_text(SHOP)
    evalmeta("init", "--agent", "shop:answer")
    assert [*load_settings(dx_folder / "evalmeta.toml").subjects] == ["Order_Desk"]


FAST_EXAMPLES = ("python-tools", "pytest")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FAST_EXAMPLES else pytest.mark.slow) for name in EXAMPLES]
)
def test_the_commands_of_an_example_pass_as_they_are(folder: Path, evalmeta: Evalmeta, name: str) -> None:
    begun = evalmeta("init", "--example", name)

    assert begun.code == 0, begun.err
    commands = begun.out.partition("Next:\n")[2].splitlines()
    assert [line.strip() for line in commands] == list(EXAMPLES[name].commands)
    with ExitStack() as servers:
        for command in EXAMPLES[name].commands:
            run_command(command, folder, servers)
    assert (folder / ".evalmeta").is_dir() == (name != "pytest")


def run_command(command: str, folder: Path, servers: ExitStack) -> None:
    """Run a command as a user does; one that ends with & serves on another port until the end of the test."""
    program, *words = shlex.split(command.removesuffix(" &"))
    line = [str(Path(sys.executable).parent / program), *words]
    if not command.endswith("&"):
        done = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    port = str(free_port())
    for file in (folder / words[0], folder / "evalmeta.toml"):
        file.write_text(file.read_text().replace("8000", port))
    server = subprocess.Popen(line, cwd=folder)
    servers.callback(lambda: (server.kill(), server.wait()))
    wait_until(lambda: is_listening(int(port)))


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_the_option_offers_every_example() -> None:
    option = next(param for param in init.params if param.name == "example")

    assert list(option.type.choices) == list(EXAMPLES)  # type: ignore[attr-defined]
    assert sorted(EXAMPLES) == sorted(path.name for path in EXAMPLE_FILES.iterdir())


def test_an_example_overwrites_no_file_and_writes_nothing_beside_one(folder: Path, evalmeta: Evalmeta) -> None:
    (folder / "agent.py").write_text("def answer(): ...\n")

    ended = evalmeta("init", "--example", "python-tools")

    assert ended.code == 2
    assert "has other files with the names of the example's: agent.py" in ended.err
    assert "evalmeta init --example python-tools python-tools-example" in ended.err
    assert files_in(folder) == {"agent.py": b"def answer(): ...\n"}


def test_a_second_init_of_an_example_keeps_its_files(folder: Path, evalmeta: Evalmeta) -> None:
    evalmeta("init", "--example", "adk")
    before = files_in(folder)

    ended = evalmeta("init", "--example", "adk")

    assert (ended.code, files_in(folder)) == (0, before)
    assert "Created" not in ended.out


def test_an_example_is_not_combined_with_an_agent(folder: Path, evalmeta: Evalmeta) -> None:
    ended = evalmeta("init", "--example", "adk", "--agent", "shop:answer")

    assert ended.code == 2
    assert "no other option goes with --example" in ended.err
    assert files_in(folder) == {}
