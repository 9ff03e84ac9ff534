from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalmeta.errors import ProjectError
from evalmeta.package.project import ProjectFile, read_project_file

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sfdx-project.json"


def refusal(file: Path, text: str) -> str:
    file.write_text(text)
    with pytest.raises(ProjectError) as caught:
        read_project_file(file)
    return str(caught.value).replace(f"{file.parent}/", "")


def with_path(path: str) -> str:
    return json.dumps({"packageDirectories": [{"path": path}]})


def test_other_keys_of_salesforce_are_ignored(file: Path) -> None:
    file.write_text('{"packageDirectories": [{"path": "a", "package": "P"}], "namespace": "", "plugins": {}}')
    assert read_project_file(file).package_directories == ("a",)


def test_invalid_json_is_reported_with_line_and_column(file: Path) -> None:
    assert refusal(file, '{\n  "packageDirectories": ]\n}').startswith("sfdx-project.json:2:25: is not valid JSON: ")


def test_json_that_is_not_an_object_is_an_error(file: Path) -> None:
    assert refusal(file, "[]").startswith("sfdx-project.json: must be a JSON object")


def test_a_project_needs_a_package_directory(file: Path) -> None:
    assert "packageDirectories: is empty" in refusal(file, '{"packageDirectories": []}')
    assert "packageDirectories: is missing" in refusal(file, "{}")
    assert "packageDirectories: must be a list" in refusal(file, '{"packageDirectories": {"path": "a"}}')


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('"a"', "packageDirectories[0]: must be an object"),
        ("{}", "packageDirectories[0].path: is missing"),
        ('{"path": "a", "default": "yes"}', "packageDirectories[0].default: must be true or false"),
    ],
)
def test_a_package_directory_has_a_path_and_may_be_the_default(file: Path, row: str, reason: str) -> None:
    assert reason in refusal(file, f'{{"packageDirectories": [{row}]}}')


def test_only_one_package_directory_can_be_the_default(file: Path) -> None:
    directories = [{"path": "a", "default": True}, {"path": "b", "default": True}]
    assert "only one package directory can be the default" in refusal(
        file, json.dumps({"packageDirectories": directories})
    )


@pytest.mark.parametrize("path", ["/etc", "C:\\x", "c:x", "\\\\host\\share", "\\x"])
def test_a_package_directory_is_relative(file: Path, path: str) -> None:
    (finding,) = refusal(file, with_path(path)).splitlines()
    assert "packageDirectories[0].path: must be relative" in finding


@pytest.mark.parametrize("path", ["", "a\0b", "a\nb"])
def test_a_package_directory_is_a_path(file: Path, path: str) -> None:
    assert "packageDirectories[0].path: must be the path of a folder" in refusal(file, with_path(path))


def test_backslashes_in_a_path_separate_folders(file: Path) -> None:
    file.write_text(with_path("force-app\\main"))
    assert read_project_file(file).package_directories[0] == "force-app/main"


@pytest.mark.parametrize("version", ['"new"', "64.0", '"64.5"', '""'])
def test_the_api_version_is_checked(file: Path, version: str) -> None:
    text = f'{{"packageDirectories": [{{"path": "a"}}], "sourceApiVersion": {version}}}'
    assert "sfdx-project.json: sourceApiVersion: " in refusal(file, text)


@pytest.mark.parametrize("namespace", ['"a__b"', '"1a"', "1", "0"])
def test_the_namespace_is_checked(file: Path, namespace: str) -> None:
    text = f'{{"packageDirectories": [{{"path": "a"}}], "namespace": {namespace}}}'
    assert "sfdx-project.json: namespace: must be a namespace" in refusal(file, text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary() | st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode()))
def test_any_bytes_give_a_project_file_or_a_project_error(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    try:
        assert isinstance(read_project_file(file), ProjectFile)
    except ProjectError as error:
        assert str(error).startswith(str(file))  # noqa: PT017 - either outcome is right
