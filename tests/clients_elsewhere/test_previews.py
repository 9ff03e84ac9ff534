"""The sf CLI and @salesforce/agents preview drafts of agents in a served org, reached as api.salesforce.com."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from bundles import METADATA
from clients_elsewhere.node import Sf, run_script
from clients_elsewhere.tunnel import org_behind_tunnel
from systems.agent_script.previews import NAMED, RULES
from systems.agent_script.projects import DOUBLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clients_elsewhere.node import Outcome
    from clients_elsewhere.tunnel import Tunnelled

BROKEN = NAMED + "            | The plan is {!@variables.plan}.\n"
LINE = len(BROKEN.splitlines())


@dataclass(frozen=True, slots=True)
class Previews:
    """The commands of sf for previews, in a project with the drafts Bike_Shop, Broken and Unbound."""

    sf: Sf
    folder: Path
    tunnelled: Tunnelled

    def __call__(self, command: str, bundle: str, *words: str) -> Outcome:
        named = ("--api-name" if command.startswith("validate") else "--authoring-bundle", bundle)
        target = ("--target-org", self.sf.org.token, "--json")
        return self.sf("agent", *command.split(), *named, *target, *words, cwd=self.folder, env=self.tunnelled.env)


@pytest.fixture(scope="module")
def previews(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Previews]:
    folder = tmp_path_factory.mktemp("previews")
    with org_behind_tunnel(folder) as tunnelled:
        # The org has the rules and the doubles of the agent, and the client its draft.
        _write(tunnelled.org.folder, {"rules/Bike_Shop.yaml": RULES})
        _write(tunnelled.org.folder, {f"actions/{name}.yaml": rows for name, rows in DOUBLES.items()})
        client = folder / "client"
        scripts = {
            "Bike_Shop": NAMED,
            "Broken": BROKEN,
            "Unbound": NAMED.replace('developer_name: "Bike_Shop"', 'developer_name: "Unbound"'),
        }
        for name, script in scripts.items():
            bundle = f"force-app/main/default/aiAuthoringBundles/{name}/{name}"
            _write(client, {f"{bundle}.agent": script, f"{bundle}.bundle-meta.xml": METADATA.decode()})
        packages = {"packageDirectories": [{"path": "force-app", "default": True}], "sourceApiVersion": "66.0"}
        login = {"sfdcLoginUrl": "https://login.salesforce.com"}
        _write(client, {"sfdx-project.json": json.dumps(packages | login)})
        yield Previews(Sf(folder, tunnelled.org), client, tunnelled)


def _write(folder: Path, files: dict[str, str]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)


def test_a_draft_is_previewed_from_start_to_end(previews: Previews) -> None:
    context = ("--context-variables", "$Context.CustomerId=C1")
    started = previews("preview start", "Bike_Shop", "--simulate-actions", *context)
    assert started.code == 0, started
    session = started.reply.result.sessionId
    sent = previews("preview send", "Bike_Shop", "--utterance", "Repair 7?", "--session-id", session)
    assert sent.code == 0, sent
    assert [message.message for message in sent.reply.result.messages] == ["It costs 120."]
    read = previews.sf(
        *("agent", "trace", "read", "--session-id", session, "--format", "detail", "--dimension", "actions", "--json"),
        cwd=previews.folder,
    )
    assert [row.action for row in read.reply.result.detail] == ["check_customer", "find_ticket", "notify"], read
    ended = previews("preview end", "Bike_Shop", "--session-id", session)
    assert ended.code == 0, ended


def test_a_draft_with_errors_is_not_valid_and_has_no_preview(previews: Previews) -> None:
    good, broken = previews("validate authoring-bundle", "Bike_Shop"), previews("validate authoring-bundle", "Broken")
    assert (good.code, good.reply.result.success, broken.code) == (0, True, 1)
    assert "there is no variable 'plan'" in broken.out
    assert f"[Ln {LINE}, Col 29]" in broken.out
    started = previews("preview start", "Broken", "--simulate-actions")
    assert (started.code, started.reply.name) == (4, "PreviewStartFailed"), started


def test_sf_shows_the_lines_that_the_org_needs(previews: Previews) -> None:
    started = previews("preview start", "Unbound", "--simulate-actions")
    assert (started.code, started.reply.name) == (4, "PreviewStartFailed"), started
    assert '[subjects.Unbound]\nadapter = "agent_script"' in started.reply.message


def test_live_actions_are_refused(previews: Previews) -> None:
    started = previews("preview start", "Bike_Shop", "--use-live-actions")
    assert (started.code, "actions cannot be live" in started.reply.message) == (4, True), started


def test_a_turn_without_a_double_fails(previews: Previews) -> None:
    context = ("--context-variables", "$Context.CustomerId=C1")
    session = previews("preview start", "Bike_Shop", "--simulate-actions", *context).reply.result.sessionId
    sent = previews("preview send", "Bike_Shop", "--utterance", "I lost the number", "--session-id", session)
    assert (sent.code, sent.reply.name) == (4, "PreviewSendFailed"), sent
    assert "Add this row to actions/find_ticket.yaml" in sent.reply.message, sent


def test_the_library_previews_a_draft(previews: Previews) -> None:
    names = {"NAME": "Bike_Shop", "BROKEN": "Broken", **previews.tunnelled.env}
    found = run_script("preview.cjs", previews.sf.org, previews.folder, **names)
    assert (found.status, found.name) == ("success", "Bikes")
    assert [message.message for message in found.started.messages] == ["Hello C1!"]
    assert [message.message for message in found.sent.messages] == ["It costs 120."]
    [trace] = found.traces
    assert (trace.topic, trace.planId) == ("repairs", found.sent.messages[0].planId)
    updates = [
        update for step in trace.plan if step.type == "VariableUpdateStep" for update in step.data.variable_updates
    ]
    assert {update.variable_name: update.variable_new_value for update in updates}["visits"] == 5
    [error] = found.failed.errors
    assert (found.failed.status, error.lineStart, error.colStart) == ("failure", LINE, 29)
