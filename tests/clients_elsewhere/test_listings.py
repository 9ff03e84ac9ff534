from __future__ import annotations

from typing import TYPE_CHECKING

from org.parts import KIND

if TYPE_CHECKING:
    from clients_elsewhere.orgs import Org
    from clients_elsewhere.workspace import Workspace


def test_the_components_of_a_type_are_listed(workspace: Workspace) -> None:
    name, _ = workspace.deployed("Listed")

    done = workspace.sf("org list metadata --json -m", KIND.name)

    [row] = [each for each in done.reply.result if each.fullName == name]
    assert (row.type, row.fileName, row.createdByName) == (
        KIND.name,
        f"{KIND.directory}/{name}.{KIND.suffix}",
        "Local Admin",
    )


def test_a_type_without_components_has_none(workspace: Workspace, idle: Org) -> None:
    done = workspace.sf("org list metadata -m", KIND.name, org=idle)

    assert (done.code, "No metadata found" in done.err) == (0, True), done


def test_an_unknown_type_is_reported(workspace: Workspace) -> None:
    done = workspace.sf("org list metadata --json -m NopeType")

    assert (done.code, done.reply.message.splitlines()[0]) == (1, "INVALID_TYPE: Unknown type:NopeType"), done


def test_a_manifest_is_made_of_what_the_org_has(workspace: Workspace) -> None:
    name, _ = workspace.deployed("Named")

    done = workspace.sf("project generate manifest --from-org desk -m", KIND.name)

    assert done.code == 0, done
    assert f"<members>{name}</members>" in (workspace.folder / "package.xml").read_text()


def test_a_manifest_is_made_of_all_types(workspace: Workspace) -> None:
    name, _ = workspace.deployed("Any_Type")

    done = workspace.sf("project generate manifest --from-org desk")

    assert done.code == 0, done
    assert f"<members>{name}</members>" in (workspace.folder / "package.xml").read_text()
