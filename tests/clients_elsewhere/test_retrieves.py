from __future__ import annotations

from typing import TYPE_CHECKING
from zipfile import ZipFile

from org.parts import KIND, xml_of

if TYPE_CHECKING:
    from clients_elsewhere.workspace import Workspace

RETRIEVE = "project retrieve start"


def test_a_manifest_with_a_wildcard_fetches_everything(workspace: Workspace) -> None:
    name, content = workspace.deployed("Held")

    done = workspace.sf(RETRIEVE, "--json", "--manifest", workspace.manifest("*"))

    assert done.code == 0, done
    assert workspace.path(name).read_bytes() == content
    assert (name, "Created") in [(file.fullName, file.state) for file in done.reply.result.files]


def test_a_component_is_fetched_by_name(workspace: Workspace) -> None:
    name, content = workspace.deployed("Held")

    done = workspace.sf(RETRIEVE, "-m", f"{KIND.name}:{name}")

    assert (done.code, f"Created {name}" in " ".join(done.out.split())) == (0, True), done
    assert workspace.path(name).read_bytes() == content


def test_a_member_that_is_not_in_the_org_is_a_warning(workspace: Workspace) -> None:
    done = workspace.sf(RETRIEVE, "-m", f"{KIND.name}:Never_There")

    assert done.code == 0, done
    assert "Nothing retrieved" in done.err
    assert f"Entity of type '{KIND.name}' named 'Never_There' cannot be found" in " ".join(done.out.split())


def test_a_zip_is_kept_as_it_came(workspace: Workspace) -> None:
    name, content = workspace.deployed("Held")

    done = workspace.sf(RETRIEVE, "--target-metadata-dir", "out", "--zip-file-name", "all", "-m", f"{KIND.name}:{name}")

    assert done.code == 0, done
    with ZipFile(workspace.folder / "out" / "all.zip") as found:
        assert found.read(f"unpackaged/{xml_of(name)}") == content
        assert "unpackaged/package.xml" in found.namelist()


def test_a_zip_is_unpacked(workspace: Workspace) -> None:
    name, content = workspace.deployed("Held")

    done = workspace.sf(RETRIEVE, "--target-metadata-dir", "out", "--unzip", "-m", f"{KIND.name}:{name}")

    assert done.code == 0, done
    assert (workspace.folder / "out" / "unpackaged" / "unpackaged" / xml_of(name)).read_bytes() == content


def test_a_zip_of_a_single_package_has_no_folder(workspace: Workspace) -> None:
    name, content = workspace.deployed("Held")

    done = workspace.sf(
        RETRIEVE, "--target-metadata-dir", "out", "--single-package", "--unzip", "-m", f"{KIND.name}:{name}"
    )

    assert done.code == 0, done
    assert (workspace.folder / "out" / "unpackaged" / xml_of(name)).read_bytes() == content


def test_a_retrieve_cannot_be_previewed_where_changes_are_not_tracked(workspace: Workspace) -> None:
    done = workspace.sf("project retrieve preview --json")

    assert (done.code, done.reply.name) == (1, "NonSourceTrackedOrgError"), done
