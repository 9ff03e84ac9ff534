from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.remote import GOING_ON, RETRIEVING, remote
from evalmeta.package.archive import read_zip

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]


def _definitions(project: Path) -> dict[Path, bytes]:
    return {path.relative_to(project): path.read_bytes() for path in project.rglob("*.aiEvaluationDefinition*")}


@pytest.mark.parametrize("inner", ["", "dx-project"])
def test_what_was_deployed_comes_back_byte_for_byte(
    evalmeta: Program, copy_samples: Callable[[str], Path], inner: str
) -> None:
    project = copy_samples(inner)
    before = _definitions(project)
    evalmeta("deploy")
    for path in before:
        if inner or (path.parent.name == "aiEvaluationDefinitions" and len(path.parts) == 2):
            (project / path).unlink()

    done = evalmeta("retrieve", "start")

    assert done.code == 0
    assert _definitions(project) == before


def test_a_file_with_the_same_bytes_is_not_touched(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples()
    evalmeta("deploy")
    path = project / "aiEvaluationDefinitions/my_test_n1.aiEvaluationDefinition"
    before = path.stat().st_mtime_ns

    done = evalmeta("retrieve")

    assert "Unchanged  my_test_n1" in done.out
    assert path.stat().st_mtime_ns == before


def test_a_member_that_the_org_lacks_is_a_warning(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    copy_samples("dx-project")
    evalmeta("deploy", "-m", "AiEvaluationDefinition:Outage_Desk")

    done = evalmeta("retrieve", "--manifest", "manifest/package.xml")

    assert (done.code, "Retrieved 1 component." in done.out) == (0, True)
    assert "'Tariff_Criteria' cannot be found" in done.err


@pytest.mark.parametrize(
    "words", [("--manifest", "manifest/package.xml"), ("-m", "AiEvaluationDefinition:Tariff_Criteria", "-t", "backup")]
)
def test_a_retrieve_fails_if_the_org_lacks_everything_that_was_named(
    evalmeta: Program, copy_samples: Callable[..., Path], words: tuple[str, ...]
) -> None:
    project = copy_samples("dx-project")

    done = evalmeta("retrieve", *words)

    assert (done.code, (project / "backup").exists()) == (2, False)
    assert "AiEvaluationDefinition:Tariff_Criteria" in done.err.partition("the org has no ")[2]
    assert "See what it has: evalmeta test list" in done.err


def test_a_moved_definition_keeps_its_place(evalmeta: Program, copy_samples: Callable[..., Path]) -> None:
    project = copy_samples("dx-project")
    evalmeta("deploy")
    [path] = project.rglob("Tariff_Criteria*")
    moved = project / "force-app/tariffs" / path.name
    moved.parent.mkdir()
    path.replace(moved)
    moved.write_bytes(moved.read_bytes().replace(b"</AiEvaluationDefinition>", b"\n</AiEvaluationDefinition>"))

    done = evalmeta("retrieve", "--ignore-conflicts")

    assert "Changed    Tariff_Criteria" in done.out
    assert moved.is_file()
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["-m", "AiEvaluationDefinition:Outage_Desk"], 1),
        (["-m", "AiEvaluationDefinition:*_Desk", "-m", "AiEvaluationDefinition:Tariff_Criteria"], 2),
        (["-m", "AiEvaluationDefinition"], 3),
        (["-d", "force-app"], 3),
        (["-x", "manifest/package.xml"], 3),
    ],
)
def test_only_what_is_selected_is_retrieved(
    evalmeta: Program, copy_samples: Callable[[str], Path], words: list[str], count: int
) -> None:
    copy_samples("dx-project")
    evalmeta("deploy")

    assert f"Retrieved {count} component" in evalmeta("retrieve", *words).out


def test_a_wildcard_without_a_match_in_the_org_is_reported(
    evalmeta: Program, copy_samples: Callable[[str], Path]
) -> None:
    copy_samples("dx-project")

    done = evalmeta("retrieve", "-m", "AiEvaluationDefinition:Outage_*")

    assert done.code == 2
    assert "the org has no AiEvaluationDefinition:Outage_*" in done.err


def test_what_forceignore_names_is_not_written(evalmeta: Program, copy_samples: Callable[[str], Path]) -> None:
    project = copy_samples("dx-project")
    evalmeta("deploy")
    [file] = project.rglob("Outage_Desk*")
    file.unlink()
    (project / ".forceignore").write_text("**/Outage_*\n")

    done = evalmeta("retrieve")

    assert "Retrieved 2 components." in done.out
    assert f"Warning: {file.relative_to(project)} was not written: .forceignore matches it" in done.err
    assert not file.exists()


def test_the_orgs_zip_can_be_kept_and_unpacked(evalmeta: Program, copy_samples: Callable[[str], Path]) -> None:
    project = copy_samples("dx-project")
    evalmeta("deploy")
    before = _definitions(project)

    done = evalmeta("retrieve", "--target-metadata-dir", "backup", "--unzip")

    assert (done.code, "Created backup/unpackaged.zip: 4 files, unpacked to backup/unpackaged." in done.out) == (
        0,
        True,
    )
    entries = read_zip((project / "backup/unpackaged.zip").read_bytes())
    unpacked = project / "backup/unpackaged"
    assert {name: (unpacked / name).read_bytes() for name in entries} == entries
    assert {Path(name).parts[0] for name in entries} == {"unpackaged"}
    assert before.items() <= _definitions(project).items()


def test_a_single_package_has_no_folder(evalmeta: Program, copy_samples: Callable[[str], Path]) -> None:
    project = copy_samples("dx-project")
    evalmeta("deploy")

    evalmeta("retrieve", "-t", "backup", "--zip-file-name", "mine", "--single-package", "-x", "manifest/package.xml")

    assert "package.xml" in read_zip((project / "backup/mine.zip").read_bytes())
    assert "Deployed 3 components" in evalmeta("deploy", "--metadata-dir", "backup/mine.zip", "--single-package").out


def test_the_saved_zip_is_printed_as_json(evalmeta: Program, copy_samples: Callable[[str], Path]) -> None:
    copy_samples("dx-project")

    said = json.loads(evalmeta("retrieve", "-t", "backup", "--unzip", "--json").out)["result"]

    assert (said["zipFilePath"], said["folder"]) == ("backup/unpackaged.zip", "backup/unpackaged")
    assert said["files"] == ["unpackaged/package.xml"]


def test_an_unpacked_zip_is_not_written_through_a_link(
    evalmeta: Program, copy_samples: Callable[[str], Path], tmp_path: Path
) -> None:
    project = copy_samples("dx-project")
    evalmeta("deploy")
    (project / "backup/unpackaged").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (project / "backup/unpackaged/unpackaged").symlink_to(tmp_path / "elsewhere")

    done = evalmeta("retrieve", "-t", "backup", "--unzip")

    assert (done.code, list((tmp_path / "elsewhere").iterdir())) == (2, [])


@pytest.mark.parametrize("words", [[], ["-x", "manifest/package.xml"], ["-d", "."]])
def test_the_api_version_goes_into_the_manifest(
    evalmeta: Program, copy_samples: Callable[[str], Path], words: list[str]
) -> None:
    project = copy_samples("dx-project")
    evalmeta("deploy")

    evalmeta("retrieve", "-t", "backup", "--single-package", "--api-version", "65.0", *words)

    assert b"<version>65.0</version>" in read_zip((project / "backup/unpackaged.zip").read_bytes())["package.xml"]


@pytest.mark.parametrize(
    "words", [["--unzip"], ["--single-package"], ["--zip-file-name", "x"], ["-t", "a", "--zip-file-name", "b/c"]]
)
def test_options_about_a_zip_need_a_folder_for_it(
    evalmeta: Program, copy_samples: Callable[[str], Path], words: list[str]
) -> None:
    copy_samples("dx-project")

    assert evalmeta("retrieve", *words).code == 2


@pytest.mark.parametrize("words", [[], ["-t", "backup"]])
def test_a_timed_out_retrieve_exits_69_and_writes_nothing(
    evalmeta: Program, copy_samples: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    project = copy_samples("dx-project")
    with remote(monkeypatch, GOING_ON):
        done = evalmeta("retrieve", "--wait", "0.0001", *words)

    assert (done.code, "evalmeta retrieve --wait" in done.err) == (69, True)
    assert not (project / "backup").exists()


def test_a_retrieve_that_failed_is_a_fault(
    evalmeta: Program, copy_samples: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_samples("dx-project")
    failed = replace(RETRIEVING, done=True, status="Failed", error_message="out of order")
    monkeypatch.setattr("cli.remote.RETRIEVING", failed)
    with remote(monkeypatch, GOING_ON):
        done = evalmeta("retrieve")

    assert (done.code, "failed: out of order" in done.err) == (4, True)


@pytest.mark.parametrize("options", [[], ["-t", "backup"]])
def test_a_manifest_of_what_to_delete_is_not_retrieved(
    evalmeta: Program, copy_samples: Callable[[str], Path], options: list[str]
) -> None:
    path = copy_samples("dx-project") / "destructiveChanges.xml"
    path.write_text(
        '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><types><members>A</members>'
        "<name>AiEvaluationDefinition</name></types></Package>"
    )

    done = evalmeta("retrieve", "-x", str(path), *options)

    assert done.code == 2
    assert "lists what to delete, so it cannot select" in done.err


@pytest.mark.parametrize("command", ["deploy", "retrieve", "validate"])
def test_a_missing_manifest_is_reported_with_those_of_the_project(
    evalmeta: Program, copy_samples: Callable[[str], Path], command: str
) -> None:
    copy_samples("dx-project")

    done = evalmeta(command, "--manifest", "package.xml")

    assert (done.code, "the manifest 'package.xml' cannot be found" in done.err) == (2, True)
    assert "Did you mean manifest/package.xml?" in done.err
