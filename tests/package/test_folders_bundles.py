"""Which folders of a project are bundles, and which files belong to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bundles import write_bundle
from evalmeta.errors import InvalidMetadata, NotFound
from evalmeta.model.registry import AUTHORING_BUNDLE, PACKAGE_FILE, Manifest, ManifestTypes
from evalmeta.package.folders import find_bundle, find_components, open_bundle
from evalmeta.package.project import find_project
from evalmeta.package.selection import components_named, components_under, parse_members, resolve

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.registry import Component

KIND = AUTHORING_BUNDLE.name
DIRECTORY = AUTHORING_BUNDLE.directory


def bundles(root: Path) -> list[Component]:
    return [component for component in find_components(find_project(root)) if component.type is AUTHORING_BUNDLE]


def names(component: Component) -> list[str]:
    return [file.relative_to(component.path).as_posix() for file in component.files]


def test_a_bundle_is_found_in_any_folder_of_a_package_directory(dx: Path) -> None:
    folder = write_bundle(dx / "force-app/any/where", "Desk")
    [bundle] = bundles(dx)
    assert (bundle.key, bundle.path) == (f"{KIND}:Desk", folder)
    assert names(bundle) == ["Desk.agent", "Desk.bundle-meta.xml"]


def test_the_folder_of_the_type_may_itself_be_a_package_directory(dx: Path) -> None:
    (dx / "sfdx-project.json").write_text(json.dumps({"packageDirectories": [{"path": DIRECTORY}]}))
    write_bundle(dx, "Desk")
    assert [bundle.full_name for bundle in bundles(dx)] == ["Desk"]


def test_a_plain_folder_has_bundles_only_in_the_folder_of_their_type(tmp_path: Path) -> None:
    (tmp_path / PACKAGE_FILE).touch()
    write_bundle(tmp_path, "Desk")
    write_bundle(tmp_path / "elsewhere", "Other")
    assert [bundle.full_name for bundle in bundles(tmp_path)] == ["Desk"]


def test_a_script_beside_the_folders_and_an_empty_folder_are_no_bundles(dx: Path) -> None:
    folder = write_bundle(dx / "force-app", "Desk")
    (folder.parent / "Empty").mkdir()
    (folder.parent / "Loose.agent").touch()
    assert [bundle.full_name for bundle in bundles(dx)] == ["Desk"]


def test_a_bundle_without_script_or_without_metadata_is_one_all_the_same(dx: Path) -> None:
    """Otherwise a deployment would leave it out without a word."""
    (write_bundle(dx / "force-app", "No_Script") / "No_Script.agent").unlink()
    (write_bundle(dx / "force-app", "No_Meta") / "No_Meta.bundle-meta.xml").unlink()
    assert [bundle.full_name for bundle in bundles(dx)] == ["No_Meta", "No_Script"]


def test_all_files_in_its_folder_belong_to_a_bundle_except_hidden_ones_and_definitions(dx: Path) -> None:
    folder = write_bundle(dx / "force-app", "Desk")
    for name in ("notes/a.txt", ".hidden/b.txt", "node_modules/c.js", ".DS_Store", "T.aiEvaluationDefinition-meta.xml"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    definition, bundle = sorted(find_components(find_project(dx)), key=lambda component: component.full_name == "Desk")
    assert names(bundle) == ["Desk.agent", "Desk.bundle-meta.xml", "notes/a.txt"]
    assert definition.full_name == "T"


@pytest.mark.parametrize("line", ["**/aiAuthoringBundles/Desk", "Desk", "aiAuthoringBundles/", "**/Desk.*"])
def test_an_ignored_bundle_is_not_found(dx: Path, line: str) -> None:
    write_bundle(dx / "force-app", "Desk")
    (dx / ".forceignore").write_text(line)
    assert bundles(dx) == []


def test_an_ignored_file_is_left_out_of_its_bundle(dx: Path) -> None:
    folder = write_bundle(dx / "force-app", "Desk")
    (folder / "notes").mkdir()
    for name in ("README.md", "notes/a.txt"):
        (folder / name).touch()
    (dx / ".forceignore").write_text("**/*.md\n**/notes/\n")
    [bundle] = bundles(dx)
    assert names(bundle) == ["Desk.agent", "Desk.bundle-meta.xml"]


def test_two_bundles_of_one_name_in_two_package_directories_are_refused(dx: Path) -> None:
    (dx / "sfdx-project.json").write_text(
        json.dumps({"packageDirectories": [{"path": "force-app", "default": True}, {"path": "more"}]})
    )
    write_bundle(dx / "force-app", "Desk")
    write_bundle(dx / "more", "desk")
    with pytest.raises(InvalidMetadata, match="have the same full name") as caught:
        bundles(dx)
    assert [problem.code for problem in caught.value.problems] == ["full-name-duplicate"]


@pytest.mark.parametrize("link", ["aiAuthoringBundles/Alias", "aiAuthoringBundles/Desk"])
def test_a_link_to_a_bundle_in_the_project_is_followed_once(dx: Path, link: str) -> None:
    """Its name is that of the folder, which its files have too."""
    folder = write_bundle(dx / "shared", "Desk")
    (dx / "force-app/aiAuthoringBundles").mkdir()
    (dx / "force-app" / link).symlink_to(folder)
    (dx / "force-app/again").symlink_to(dx / "shared")
    [bundle] = bundles(dx)
    assert (bundle.full_name, bundle.path) == ("Desk", folder)


def test_a_link_to_the_folder_of_the_type_is_followed(dx: Path) -> None:
    folder = write_bundle(dx / "shared", "Desk").parent.rename(dx / "shared/agents")
    (dx / "force-app" / DIRECTORY).symlink_to(folder)
    assert [bundle.path for bundle in bundles(dx)] == [folder / "Desk"]


def test_a_script_behind_a_link_out_of_the_project_is_not_a_file_of_its_bundle(
    dx: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "Desk.agent"
    outside.touch()
    folder = write_bundle(dx / "force-app", "Desk")
    (folder / "Desk.agent").unlink()
    (folder / "Desk.agent").symlink_to(outside)
    [bundle] = bundles(dx)
    assert names(bundle) == ["Desk.bundle-meta.xml"]


def test_a_manifest_selects_bundles_by_name_and_by_wildcard(dx: Path) -> None:
    for name in ("Desk", "Gym"):
        write_bundle(dx / "force-app", name)
    project = find_project(dx)

    def selected(*members: str) -> list[str]:
        manifest = Manifest((ManifestTypes(KIND, members),), "66.0")
        return [component.full_name for component in resolve(project, manifest=manifest).components]

    assert (selected("*"), selected("Gym")) == (["Desk", "Gym"], ["Gym"])
    with pytest.raises(InvalidMetadata, match="the project has no AiAuthoringBundle 'Gim'") as caught:
        selected("Gim")
    assert caught.value.actions == ("Did you mean Gym?",)


def test_folders_files_and_names_select_a_bundle(dx: Path) -> None:
    folder, other = write_bundle(dx / "force-app", "Desk"), write_bundle(dx / "force-app", "Gym")
    project = find_project(dx)
    components = find_components(project)
    for path in (folder, folder / "Desk.agent", folder / "Desk.bundle-meta.xml"):
        assert [chosen.full_name for chosen in components_under(project, components, [path])] == ["Desk"]
    assert len(components_under(project, components, [other.parent])) == 2
    assert [chosen.path for chosen in components_named(components, parse_members([f"{KIND}:G*"]))] == [other]
    with pytest.raises(NotFound):
        components_under(project, components, [dx / "force-app/aiAuthoringBundles/Desk/Desk.txt"])


def test_the_bundle_of_a_file_is_found_by_its_folders(dx: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_bundle(dx / "force-app", "Desk")
    assert find_bundle(folder / "Desk.agent") == folder
    assert find_bundle(folder / "tests.yaml") is None
    assert find_bundle(dx / "samples/Desk.agent") is None
    monkeypatch.chdir(folder)
    assert find_bundle((folder / "Desk.agent").relative_to(folder)) == folder
    opened = open_bundle(folder)
    assert opened is not None
    assert names(opened) == ["Desk.agent", "Desk.bundle-meta.xml"]


def test_a_bundle_outside_any_project_can_be_opened(tmp_path: Path) -> None:
    opened = open_bundle(write_bundle(tmp_path / "force-app", "Desk"))
    assert opened is not None
    assert opened.full_name == "Desk"
