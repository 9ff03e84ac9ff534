"""`evalmeta coverage`: which parts of an agent no test covers."""

from __future__ import annotations

import json
import shlex
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import evalmeta.plugins
from evalmeta import limits
from installed import install
from systems.mcp.tool_server import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]

SOON = datetime.now(UTC).date() + timedelta(days=30)
SCRIPT = """\
config:
    developer_name: "Desk"
start_agent router:
    reasoning:
        actions:
            go_to_loans: @utils.transition to @subagent.Loans
subagent Loans:
    actions:
        Find_Loans:
            target: "flow://Find_Loans"
        Renew:
            target: "flow://Renew"
    reasoning:
        actions:
            find: @actions.Find_Loans
            renew: @actions.Renew
"""
SPEC = """\
subject: Desk
testCases:
- {name: finds, input: Which books do I have?, topic: Loans, actions: [Find_Loans]}
- {name: keeps, input: Keep it, not_actions: [Renew]}
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives a project with an agent and a test."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "sfdx-project.json": '{"packageDirectories": [{"path": "app"}]}',
        "app/aiAuthoringBundles/Desk/Desk.agent": SCRIPT,
        "specs/desk.yaml": SPEC,
        "rules/Desk.yaml": "rules:\n- {call: go_to_loans}\n- {call: renew}\n- {answer: Done}\n",
        "actions/Renew.yaml": "- outputs: {}\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def parts(outcome: Outcome) -> dict[str, bool]:
    [agent] = json.loads(outcome.out)["agents"]
    return {f"{part['topic'] or ''}.{part['name']}": part["covered"] for part in agent["parts"]}


@pytest.mark.usefixtures("desk")
def test_a_part_without_a_case_is_open(evalmeta: Evalmeta) -> None:
    shown = evalmeta("coverage")
    assert shown.code == 0
    assert shown.out.startswith("Desk: 75 % of 4 parts are covered (1 test, 2 cases)\n")
    assert "  covered  Loans.Find_Loans  1 case     Desk.agent:9\n" in shown.out
    assert "  open     Loans.Renew       no case    Desk.agent:11\n" in shown.out
    assert "No run of its tests is known here" in shown.out


@pytest.mark.usefixtures("desk")
def test_less_than_the_minimum_exits_with_100(evalmeta: Evalmeta) -> None:
    assert evalmeta("coverage", "Desk", "--min-coverage", "75").code == 0
    below = evalmeta("coverage", "Desk", "--min-coverage", "75.1")
    assert below.code == 100
    assert below.err == "The coverage of Desk is 75 %, below 75.1 %.\n"
    assert json.loads(evalmeta("coverage", "--json", "--min-coverage", "99").out)["status"] == 100


@pytest.mark.usefixtures("desk")
def test_what_runs_have_shown_is_marked_and_does_not_count(evalmeta: Evalmeta) -> None:
    evalmeta("run", "specs")
    shown = evalmeta("coverage")
    assert "open     Loans.Renew       no case  seen 2 times  Desk.agent:11\n" in shown.out
    assert "Seen in runs, without a test: Loans.Renew\n" in shown.out
    assert shown.out.startswith("Desk: 75 %")


def test_cases_that_cannot_fail_a_run_do_not_count(desk: Path, evalmeta: Evalmeta) -> None:
    quarantine = f"quarantine: {{reason: slow, until: {SOON}}}"
    (desk / "specs/desk.yaml").write_text(
        "subject: Desk\ntestCases:\n"
        "- {input: a, topic: Loans, review: true}\n"
        f"- {{input: b, actions: [Renew], {quarantine}}}\n"
        "- {input: c, actions: [Find_Loans], quarantine: {reason: slow, until: 2020-01-01}}\n"
    )
    shown = evalmeta("coverage")
    assert "25 % of 4 parts are covered (1 test, 1 case)" in shown.out
    assert "1 case does not count: to be reviewed\n" in shown.out
    assert "1 case does not count: in quarantine\n" in shown.out
    assert "no case that counts, 1 that does not" in shown.out


def test_quarantines_of_the_settings_count_too(desk: Path, evalmeta: Evalmeta) -> None:
    lines = '[[quarantine]]\ntest = "desk.yaml"\ncase = "finds"\nreason = "slow"\nuntil = '
    lines += f"{SOON}\n"
    (desk / "evalmeta.toml").write_text(lines)
    assert evalmeta("coverage").out.startswith("Desk: 0 % of 4 parts are covered (1 test, 1 case)")


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("specs/desk.yaml", "subject: Desk\ntestCases:\n- {input: a, topik: b}\n", "has no key 'topik'"),
        ("specs/desk.yaml", "subject: Desk\ntestCases: [", "desk.yaml"),
        ("app/aiAuthoringBundles/Desk/Desk.agent", SCRIPT + "subagent\n", "Desk.agent"),
        ("app/genAiPlannerBundles/Desk/Desk.genAiPlannerBundle", "<GenAi", "Desk.genAiPlannerBundle"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(
    desk: Path, evalmeta: Evalmeta, file: str, text: str, says: str
) -> None:
    (desk / file).parent.mkdir(parents=True, exist_ok=True)
    (desk / file).write_text(text)
    refused = evalmeta("coverage")
    assert refused.code in {1, 2}
    assert says in refused.err
    assert refused.out == ""


def test_files_that_are_not_tests_are_named(desk: Path, evalmeta: Evalmeta) -> None:
    (desk / "specs/empty.yaml").touch()
    (desk / "specs/picture.yaml").write_bytes(b"\x80\x81")
    assert "2 files were not tests: " in evalmeta("coverage").err
    why = evalmeta("coverage", "-v").err
    assert "specs/empty.yaml: " in why
    assert "specs/picture.yaml: " in why


@pytest.mark.parametrize(("settings", "key"), [("", ", action_match: subset"), ('[score]\nactions = "subset"\n', "")])
def test_actions_that_are_only_allowed_cover_nothing(desk: Path, evalmeta: Evalmeta, settings: str, key: str) -> None:
    (desk / "evalmeta.toml").write_text(settings)
    (desk / "specs/desk.yaml").write_text(f"subject: Desk\ntestCases:\n- {{input: a, actions: [Renew]{key}}}\n")
    assert "open  Loans.Renew       no case" in evalmeta("coverage").out
    (desk / "evalmeta.toml").write_text("")
    (desk / "specs/desk.yaml").write_text("subject: Desk\ntestCases:\n- {input: a, actions: [Renew]}\n")
    assert "covered  Loans.Renew       1 case" in evalmeta("coverage").out


def test_an_agent_without_tests_has_no_coverage(desk: Path, evalmeta: Evalmeta) -> None:
    (desk / "specs/desk.yaml").unlink()
    shown = evalmeta("coverage")
    assert shown.out.startswith("Desk: 0 % of 4 parts are covered (0 tests, 0 cases)")


def test_tests_of_other_agents_cover_nothing(desk: Path, evalmeta: Evalmeta) -> None:
    (desk / "specs/desk.yaml").write_text(SPEC.replace("subject: Desk", "subject: Other"))
    assert evalmeta("coverage").out.startswith("Desk: 0 %")


@pytest.mark.usefixtures("desk")
def test_an_agent_that_is_not_there_is_an_error_that_names_the_nearest(evalmeta: Evalmeta) -> None:
    refused = evalmeta("coverage", "Dsk")
    assert refused.code == 2
    assert "there is no agent 'Dsk' in the project or in evalmeta.toml" in refused.err
    assert "Did you mean Desk?" in refused.err
    assert "Name one of these agents: Desk." in evalmeta("coverage", "Xyz").err


def test_an_agent_without_parts_is_an_error(desk: Path, evalmeta: Evalmeta) -> None:
    (desk / "app/aiAuthoringBundles/Desk/Desk.agent").write_text('config:\n    developer_name: "Desk"\n')
    refused = evalmeta("coverage", "--min-coverage", "0")
    assert refused.code == 2
    assert "has no topics, actions or tools" in refused.err


def test_a_project_without_agents_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Evalmeta
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = evalmeta("coverage")
    assert refused.code == 2
    assert "the project has no agent in Agent Script or classic metadata" in refused.err


def test_the_tools_of_a_server_of_mcp_are_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Evalmeta
) -> None:
    monkeypatch.chdir(tmp_path)
    evalmeta("init", "--agent", f"mcp:{shlex.join(PROGRAM)}")
    shown = evalmeta("coverage", "my_agent", "--json")
    [agent] = json.loads(shown.out)["result"]["agents"]
    assert {part["name"]: part["covered"] for part in agent["parts"]} == {
        "get_order": True,
        "refund": False,
        "count": False,
    }
    (tmp_path / "tests/calls.yaml").write_text(
        "subject: my_agent\ntestCases:\n- {input: {tool: refund, arguments: {id: '7'}}, contains: a}\n"
    )
    assert parts(evalmeta("coverage", "my_agent", "--result-format", "json")) == {
        ".get_order": False,
        ".refund": True,
        ".count": False,
    }


def test_an_agent_that_cannot_list_its_tools_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Evalmeta
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").write_text('[subjects.desk]\nadapter = "http"\nurl = "http://127.0.0.1:9/"\n')
    refused = evalmeta("coverage", "desk")
    assert refused.code == 2
    assert "desk are not known (adapter http): its adapter cannot list them" in refused.err


def test_calls_of_eval_sets_cover_actions(desk: Path, evalmeta: Evalmeta) -> None:
    call = {"name": "Renew", "args": {}}
    turn = {"user_content": {"parts": [{"text": "Hi"}]}, "intermediate_data": {"tool_uses": [call]}}
    turn["final_response"] = {"parts": [{"text": "Done"}]}
    case = {"eval_id": "a", "conversation": [turn]}
    (desk / "evalmeta.toml").write_text('[subjects.Desk]\nadapter = "agent_script"\nbundle = "Desk"\n')
    (desk / "specs/desk.yaml").unlink()
    (desk / "specs/renew.evalset.json").write_text(json.dumps({"eval_set_id": "r", "eval_cases": [case]}))
    assert parts(evalmeta("coverage", "--result-format", "json"))["Loans.Renew"] is True


@pytest.mark.usefixtures("desk")
def test_other_formats_have_the_same_table(evalmeta: Evalmeta) -> None:
    assert (
        "| covered | Loans.Find&#95;Loans | 1 case |  | Desk.agent&#58;9 |"
        in evalmeta("coverage", "--result-format", "markdown").out
    )
    page = evalmeta("coverage", "--result-format", "html").out
    assert "<td>Loans.Find_Loans</td><td>1 case</td>" in page
    assert "http" not in page.replace("http-equiv", "")
    assert evalmeta("coverage", "--result-format", "human").out.count("\n") > 5


KIND = """\
import threading
from evalmeta.engine.subjects.inventories import Member, Tool, inventory_of
from evalmeta.engine.subjects.kinds import AgentKind

class Bot:
    hangs = False

def parts(bot):
    if bot.hangs:
        threading.Event().wait()
    return inventory_of([Member("desk", (Tool("refund"),), is_reached=False), Member("Loans", (Tool("Renew"),))])

BOT = AgentKind(classes=frozenset({"Bot"}), open=print, parts=parts)
"""
BOT = """\
from pathlib import Path
import acme
print("imported")
Path("imported.txt").touch()
bot = acme.Bot()
def answer(utterance): return utterance
"""


@pytest.fixture
def bots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Gives a project with an agent of an installed framework, which notes that it is imported, and a test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    install(tmp_path, "agents", "acme = acme:BOT", KIND)
    evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - what is installed does not change otherwise
    (tmp_path / "my_bots.py").write_text(BOT)
    (tmp_path / "evalmeta.toml").write_text('[subjects.Bot]\nadapter = "python"\ntarget = "my_bots:bot"\n')
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/bot.yaml").write_text("subject: Bot\ntestCases:\n- {input: a, topic: Loans, actions: [Renew]}\n")
    yield tmp_path
    monkeypatch.undo()
    evalmeta.plugins._found.cache_clear()  # noqa: SLF001 - likewise


@pytest.mark.usefixtures("bots")
def test_the_agents_and_tools_of_an_object_of_a_framework_are_parts(evalmeta: Evalmeta) -> None:
    shown = evalmeta("coverage", "Bot", "--result-format", "json", "--min-coverage", "67")
    assert shown.code == 100
    assert "imported" not in shown.out
    assert parts(shown) == {".Loans": True, "desk.refund": False, "Loans.Renew": True}
    page = evalmeta("coverage", "Bot", "--result-format", "html").out
    assert "<td>desk.refund</td><td>no case</td>" in page
    assert "topic: Loans" in evalmeta("generate", "spec", "--from-agent", "Bot").out


def test_only_an_agent_that_is_named_is_imported(bots: Path, evalmeta: Evalmeta) -> None:
    refused = evalmeta("coverage")
    assert refused.code == 2
    assert "evalmeta coverage Bot" in refused.err
    script = bots / "aiAuthoringBundles/Desk/Desk.agent"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT)
    shown = evalmeta("coverage")
    assert shown.out.startswith("Desk: 0 %")
    assert "must be named to be asked for its tools: Bot" in shown.err
    assert not (bots / "imported.txt").exists()
    assert evalmeta("coverage", "Desk").err.count("Bot") == 0


def test_a_target_that_the_settings_do_not_name_is_not_imported(bots: Path, evalmeta: Evalmeta) -> None:
    (bots / "evalmeta.toml").write_text("")
    assert evalmeta("coverage", "my_bots:bot").code == 2
    assert not (bots / "imported.txt").exists()


def test_an_agent_that_cannot_be_imported_is_the_error_of_a_run(bots: Path, evalmeta: Evalmeta) -> None:
    (bots / "my_bots.py").write_text("import no_such_module\n")
    refused = evalmeta("coverage", "Bot")
    assert refused.code == evalmeta("run", "specs").code == 2
    assert "my_bots.py:1: ModuleNotFoundError" in refused.err
    assert refused.out == ""


def test_an_agent_that_never_lists_its_tools_is_an_error(
    bots: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Evalmeta
) -> None:
    monkeypatch.setattr(limits, "DOCTOR_SECONDS", 0.05)
    (bots / "my_bots.py").write_text(f"{BOT}bot.hangs = True\n")
    refused = evalmeta("coverage", "Bot")
    assert refused.code == 2
    assert "the agent Bot did not list its tools within 0.05 s" in refused.err


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ('adapter = "python"\ntarget = "my_bots:answer"', "a function or an object with open, does not list its tools"),
        ('adapter = "a2a"\nurl = "http://127.0.0.1:9"', "the skills in its agent card name no tools or topics"),
    ],
)
def test_an_agent_that_does_not_list_tools_is_an_error_that_says_why(
    bots: Path, evalmeta: Evalmeta, settings: str, why: str
) -> None:
    (bots / "evalmeta.toml").write_text(f"[subjects.Bot]\n{settings}\n")
    refused = evalmeta("coverage", "Bot", "--min-coverage", "0")
    assert refused.code == 2
    assert why in refused.err
