from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from evalmeta.errors import NotFound, ProjectError, SettingsError, UsageError
from evalmeta.model.redaction import tokens_hidden
from evalmeta.model.registry import ApiVersion
from evalmeta.model.store import Store
from evalmeta.package.project import find_project


def declare(root: Path, *directories: dict[str, object], **more: object) -> None:
    (root / "sfdx-project.json").write_text(json.dumps({"packageDirectories": directories, **more}))


def test_a_dx_project_is_found_from_any_folder_below(dx: Path) -> None:
    deep = dx / "force-app" / "main" / "default"
    deep.mkdir(parents=True)
    project = find_project(deep)
    assert (project.root, project.is_dx, project.package_directories) == (dx, True, (dx / "force-app",))


def test_a_dx_project_is_found_from_its_own_definitions(dx: Path) -> None:
    folder = dx / "force-app" / "main" / "default" / "aiEvaluationDefinitions"
    folder.mkdir(parents=True)
    assert find_project(folder).root == dx


def test_a_dx_project_is_found_from_its_manifest(dx: Path) -> None:
    (dx / "manifest").mkdir()
    (dx / "manifest" / "package.xml").touch()
    assert find_project(dx / "manifest" / "package.xml").is_dx


def test_settings_make_a_folder_inside_a_dx_project_its_own(dx: Path) -> None:
    (dx / "samples" / "aiEvaluationDefinitions").mkdir(parents=True)
    (dx / "samples" / "evalmeta.toml").touch()
    project = find_project(dx / "samples" / "aiEvaluationDefinitions")
    assert (project.root, project.is_dx) == (dx / "samples", False)


@pytest.mark.parametrize("name", ["evalmeta.toml", "package.xml"])
def test_one_file_makes_a_plain_project(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "below").mkdir()
    project = find_project(tmp_path / "below")
    assert (project.root, project.is_dx, project.package_directories) == (tmp_path, False, (tmp_path,))


def test_the_folder_of_definitions_makes_a_plain_project_also_from_inside(tmp_path: Path) -> None:
    file = tmp_path / "aiEvaluationDefinitions" / "X.aiEvaluationDefinition"
    file.parent.mkdir()
    file.touch()
    assert {find_project(start).root for start in (tmp_path, file.parent, file)} == {tmp_path}


def test_the_nearest_plain_project_wins(tmp_path: Path) -> None:
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "package.xml").touch()
    assert find_project(tmp_path / "inner").root == tmp_path / "inner"


def test_a_missing_project_says_what_was_searched_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        find_project(tmp_path)
    wanted = "sfdx-project.json, evalmeta.toml, package.xml, aiEvaluationDefinitions, aiTestingDefinitions"
    wanted += ", aiAgentScorerDefinitions, aiAuthoringBundles"
    assert str(caught.value) == f"There is no project in {tmp_path} or above it; searched for {wanted}."
    assert "evalmeta init --dx" in caught.value.actions[1]


def test_a_start_that_does_not_exist_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="the file or folder does not exist"):
        find_project(tmp_path / "nowhere")


def test_an_unreadable_start_is_a_project_error(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="cannot be read"):
        find_project(tmp_path / ("x" * 300))


def test_the_default_package_directory_comes_first(dx: Path) -> None:
    declare(dx, {"path": "a"}, {"path": "./b/", "default": True}, {"path": "c"}, {"path": "a/"})
    assert find_project(dx).package_directories == (dx / "b", dx / "a", dx / "c")


@pytest.mark.parametrize("path", ["..", "a/../../b", "..\\b"])
def test_a_package_directory_stays_inside_the_project(dx: Path, path: str) -> None:
    declare(dx, {"path": path})
    with pytest.raises(ProjectError, match="is outside the project"):
        find_project(dx)


def test_a_package_directory_that_links_outside_is_refused(dx: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (dx / "linked").symlink_to(tmp_path_factory.mktemp("outside"))
    declare(dx, {"path": "linked"})
    with pytest.raises(ProjectError, match="is outside the project"):
        find_project(dx)


def test_the_source_api_version_is_the_projects(dx: Path) -> None:
    declare(dx, {"path": "a"}, sourceApiVersion="64.0")
    assert find_project(dx).api_version == ApiVersion(64)


def test_a_project_without_source_api_version_names_none(dx: Path) -> None:
    assert find_project(dx).api_version is None


@pytest.mark.parametrize(("namespace", "known"), [("energy", "energy"), ("", ""), (None, "")])
def test_the_namespace_is_the_projects(dx: Path, namespace: str | None, known: str) -> None:
    declare(dx, {"path": "a"}, namespace=namespace)
    assert find_project(dx).namespace == known


@pytest.mark.parametrize("namespace", ["1st", "a__b", "a_", "a-b", "a" * 16])
def test_a_namespace_is_a_valid_salesforce_namespace(dx: Path, namespace: str) -> None:
    declare(dx, {"path": "a"}, namespace=namespace)
    with pytest.raises(ProjectError, match="namespace: must be a namespace"):
        find_project(dx)


def test_settings_are_read_in_both_shapes(dx: Path) -> None:
    (dx / "evalmeta.toml").write_text("[run]\niterations = 3\n")
    assert find_project(dx).settings.run_options().iterations == 3
    (dx / "sfdx-project.json").unlink()
    assert find_project(dx).settings.run_options().iterations == 3


def test_wrong_settings_stop_the_search(dx: Path) -> None:
    (dx / "evalmeta.toml").write_text("[run\n")
    with pytest.raises(SettingsError):
        find_project(dx)


def test_the_state_folder_is_in_the_project(dx: Path) -> None:
    assert find_project(dx).state_dir == dx / ".evalmeta"


@pytest.mark.parametrize("home", ["/elsewhere", "relative"])
def test_an_environment_variable_sets_the_state_folder(dx: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("EVALMETA_HOME", home)
    assert find_project(dx).state_dir == Path(os.path.realpath(home))


def test_an_empty_environment_variable_is_ignored(dx: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALMETA_HOME", "")
    assert find_project(dx).state_dir == dx / ".evalmeta"


def test_the_settings_name_a_shared_store_and_an_environment_variable_goes_before_them(
    dx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_project(dx).store == Store(dx / ".evalmeta")
    (dx / "evalmeta.toml").write_text("[store]\nurl = 'postgresql://db/team'\n")
    assert str(find_project(dx).store.url) == "postgresql://db/team"
    monkeypatch.setenv("EVALMETA_STORE", "postgresql://me:hunter2@other/team")
    project = find_project(dx)
    assert str(project.store.url) == "postgresql://other/team"
    assert "hunter2" not in repr(project)


def test_agents_that_the_process_imports_do_not_see_the_url_of_the_store(
    dx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALMETA_STORE", "postgresql://me:hunter2@db/team")
    project = find_project(dx)
    with tokens_hidden():
        assert "EVALMETA_STORE" not in os.environ
        assert str(project.store.url) == "postgresql://db/team"


def test_a_variable_that_is_no_url_of_a_store_is_reported_when_the_store_is_used(
    dx: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALMETA_STORE", "hunter2")
    project = find_project(dx)
    with pytest.raises(UsageError, match="EVALMETA_STORE must be the URL of a store") as caught:
        _ = project.store
    assert "hunter2" not in str(caught.value)
