from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from org.parts import KIND

if TYPE_CHECKING:
    from clients_elsewhere.workspace import Workspace


@pytest.mark.parametrize("when", ["pre", "post"])
def test_components_are_deleted_before_or_after(workspace: Workspace, when: str) -> None:
    name, (gone, _) = workspace.write("Stays"), workspace.deployed("Goes")
    changes = workspace.manifest(gone, file="destructive.xml")

    done = workspace.sf(
        "project deploy start --json --manifest", workspace.manifest(name), f"--{when}-destructive-changes", changes
    )

    assert done.code == 0, done
    messages = done.reply.result.details.componentSuccesses
    told = {message.fullName: message.fileName for message in messages if message.deleted}
    assert told == {gone: f"destructiveChanges{when.title()}.xml"}
    assert is_listed(workspace, gone) is False


def test_deleting_an_unknown_component_is_a_warning(workspace: Workspace) -> None:
    changes = workspace.manifest("Never_There", file="destructive.xml")

    done = workspace.sf(
        "project deploy start --json --manifest", workspace.manifest(), "--post-destructive-changes", changes
    )

    assert done.code == 0, done
    [message] = [success for success in done.reply.result.details.componentSuccesses if hasattr(success, "problem")]
    assert (message.problemType, message.problem) == ("Warning", f"No {KIND.name} named: Never_There found")


def test_a_component_is_deleted_here_and_in_the_org(workspace: Workspace) -> None:
    name, content = workspace.deployed("Deleted")
    workspace.path(name).write_bytes(content)

    done = workspace.sf("project delete source --no-prompt --json", "-m", f"{KIND.name}:{name}")

    assert (done.code, done.reply.result.status) == (0, "Succeeded"), done
    assert not workspace.path(name).exists()
    assert is_listed(workspace, name) is False


def is_listed(workspace: Workspace, name: str) -> bool:
    listed = workspace.sf("org list metadata --json -m", KIND.name).reply.result
    return name in [each.fullName for each in listed]
