"""Bundles through all commands that deploy, retrieve, compare, list and convert components."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bundles import BROKEN, METADATA, SCRIPT, bundle_parts, write_bundle
from evalmeta.api.servers import make_token
from evalmeta.errors import EXIT_USAGE
from evalmeta.package.archive import read_zip
from evalmeta.package.project import find_project
from org.servers import served

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome
    from cli.team import Team

    Program = Callable[..., Outcome]

DESK = Path("force-app/main/default/aiAuthoringBundles/Desk")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A DX project with one bundle, which is the current folder."""
    (tmp_path / "sfdx-project.json").write_text('{"packageDirectories": [{"path": "force-app"}]}')
    write_bundle(tmp_path / DESK.parents[1], "Desk")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def states(evalmeta: Program) -> dict[str, str]:
    rows = json.loads(evalmeta("status", "--json").out)["result"]["components"]
    return {row["fullName"]: row["state"] for row in rows}


def manifest(*members: str) -> str:
    listed = "".join(f"<members>{member}</members>" for member in members)
    types = f"<types>{listed}<name>AiAuthoringBundle</name></types>"
    Path("package.xml").write_text(
        f'<Package xmlns="http://soap.sforce.com/2006/04/metadata">{types}<version>66.0</version></Package>'
    )
    return "package.xml"


@pytest.mark.usefixtures("project")
def test_a_bundle_comes_back_from_the_org_byte_by_byte(evalmeta: Program) -> None:
    script = SCRIPT.replace(b"\n", b"\r\n") + b"# \xc3\xa9"
    write_bundle(DESK.parents[1], "Desk", script)
    assert f"Created  Desk  {DESK}" in evalmeta("deploy").out
    for path in DESK.iterdir():
        path.unlink()
    DESK.rmdir()
    assert states(evalmeta) == {"Desk": "deleted locally"}
    assert f"Created  Desk  {DESK}" in evalmeta("retrieve").out
    assert files_in(DESK) == bundle_parts("Desk", script)
    assert f"Unchanged  Desk  {DESK}" in evalmeta("deploy").out
    assert states(evalmeta) == {}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "selection",
    [
        ("--manifest", "package.xml"),
        ("--metadata", "AiAuthoringBundle:De*"),
        ("--metadata", "AiAuthoringBundle"),
        ("--source-dir", str(DESK)),
        ("--source-dir", str(DESK / "Desk.agent")),
        ("--source-dir", "force-app"),
    ],
)
def test_a_bundle_is_selected_like_any_component(evalmeta: Program, selection: tuple[str, str]) -> None:
    manifest("Desk")
    done = evalmeta("deploy", *selection, "--json")
    [row] = json.loads(done.out)["result"]["files"]
    assert (done.code, row["full_name"], row["state"]) == (0, "Desk", "Created")


@pytest.mark.usefixtures("project")
def test_a_manifest_that_names_a_bundle_that_is_not_there_deploys_nothing(evalmeta: Program) -> None:
    done = evalmeta("deploy", "--manifest", manifest("Desk", "Disk"))
    assert (done.code, "the project has no AiAuthoringBundle 'Disk'" in done.err) == (1, True)
    assert states(evalmeta) == {"Desk": "only local"}


@pytest.mark.usefixtures("project")
def test_a_script_with_errors_is_not_sent(evalmeta: Program) -> None:
    write_bundle(DESK.parents[1], "Desk", BROKEN)
    done = evalmeta("deploy")
    assert (done.code, f"{DESK}/Desk.agent\n  6:29 error @variables.plan refers to nothing" in done.err) == (1, True)
    assert states(evalmeta) == {"Desk": "only local"}


@pytest.mark.usefixtures("project")
def test_what_an_org_refuses_is_reported_at_the_users_file(evalmeta: Program) -> None:
    """The project switches the rule off, the org does not."""
    Path("evalmeta.toml").write_text('[validate.rules]\nscript-reference = "off"\n')
    write_bundle(DESK.parents[1], "Desk", BROKEN)
    done = evalmeta("deploy")
    assert (done.code, f"{DESK}/Desk.agent\n  6:29 error @variables.plan refers to nothing" in done.err) == (1, True)
    assert "[refused]" in done.err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", ["Desk.agent", "Desk.bundle-meta.xml"])
def test_half_a_bundle_is_not_sent(evalmeta: Program, name: str) -> None:
    (DESK / name).unlink()
    done = evalmeta("deploy")
    assert (done.code, f"has no file {name}" in done.err) == (1, True)
    assert evalmeta("validate").code == 1


@pytest.mark.usefixtures("project")
def test_a_change_in_either_file_is_a_change_of_the_bundle(evalmeta: Program) -> None:
    evalmeta("deploy")
    for script, metadata in ((SCRIPT + b"\n", METADATA), (SCRIPT, METADATA + b"\n")):
        write_bundle(DESK.parents[1], "Desk", script, metadata)
        assert states(evalmeta) == {"Desk": "changed locally"}


@pytest.mark.usefixtures("project")
def test_a_difference_names_the_lines_that_changed(evalmeta: Program) -> None:
    evalmeta("deploy")
    script = SCRIPT.replace(b"visitors", b"guests") + b"# the end\n"
    write_bundle(DESK.parents[1], "Desk", script, METADATA.replace(b"    <bundleType>AGENT</bundleType>\n", b""))
    (DESK / "notes.txt").touch()
    done = evalmeta("diff")
    assert done.out.splitlines()[:11] == [
        f"Desk (- the org, + {DESK})",
        "  Desk.agent, line 2",
        r'''    - "    description: \"Answers visitors\""''',
        r'''    + "    description: \"Answers guests\""''',
        "  Desk.agent, line 6: added",
        "    + # the end",
        "  Desk.bundle-meta.xml, line 3: removed",
        '    - "    <bundleType>AGENT</bundleType>"',
        "  notes.txt: added",
    ]
    write_bundle(DESK.parents[1], "Desk", SCRIPT.replace(b"\n", b"\r\n"))
    (DESK / "notes.txt").unlink()
    assert "same content" in evalmeta("diff").out


def test_the_project_does_not_overwrite_a_bundle_that_changed_in_the_org(team: Team, evalmeta: Program) -> None:
    write_bundle(Path(), "Desk")
    evalmeta("deploy")
    team.go("theirs")
    evalmeta("retrieve")
    write_bundle(Path(), "Desk", SCRIPT + b"# theirs\n")
    assert evalmeta("deploy").code == 0
    team.go("mine")
    write_bundle(Path(), "Desk", SCRIPT + b"# mine\n")
    assert states(evalmeta) == {"Desk": "conflict"}
    for command in ("deploy", "retrieve"):
        done = evalmeta(command)
        assert (done.code, "error Desk was changed" in done.err) == (1, True)
    assert evalmeta("retrieve", "--ignore-conflicts").code == 0
    assert files_in(Path("aiAuthoringBundles/Desk")) == bundle_parts("Desk", SCRIPT + b"# theirs\n")
    assert states(evalmeta) == {}


@pytest.mark.usefixtures("project")
def test_destructive_changes_delete_a_bundle(evalmeta: Program) -> None:
    evalmeta("deploy")
    deleted = evalmeta("manifest", "generate", "--metadata", "AiAuthoringBundle:Desk", "--type", "post")
    assert deleted.code == 0, deleted
    Path("package.xml").write_text(
        '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><version>66.0</version></Package>'
    )
    changes = "destructiveChangesPost.xml"
    done = evalmeta("deploy", "--manifest", "package.xml", "--post-destructive-changes", changes)
    assert (done.code, f"Deleted  Desk  {changes}" in done.out) == (0, True)
    assert states(evalmeta) == {"Desk": "only local"}


@pytest.mark.usefixtures("project")
def test_an_ignored_file_is_neither_deployed_nor_written(evalmeta: Program) -> None:
    (DESK / "notes.txt").touch()
    Path(".forceignore").write_text("**/notes.txt\n")
    assert evalmeta("deploy").code == 0
    write_bundle(DESK.parents[1], "Desk", SCRIPT + b"# mine\n")
    Path(".forceignore").write_text("**/notes.txt\n**/*.agent\n")
    done = evalmeta("retrieve", "--ignore-conflicts")
    assert f"{DESK}/Desk.agent was not written: .forceignore matches it" in done.err + done.out
    assert (DESK / "Desk.agent").read_bytes().endswith(b"# mine\n")


@pytest.mark.usefixtures("project")
def test_a_package_and_both_formats_have_both_files(evalmeta: Program) -> None:
    assert evalmeta("package", "build", "--zip-file-name", "out.zip").code == 0
    packed = read_zip(Path("out.zip").read_bytes())
    assert {name.removeprefix("aiAuthoringBundles/Desk/"): data for name, data in packed.items() if "Desk" in name} == (
        bundle_parts("Desk")
    )
    assert evalmeta("convert", "source", "--output-dir", "mdapi").code == 0
    assert files_in(Path("mdapi/aiAuthoringBundles/Desk")) == bundle_parts("Desk")
    assert evalmeta("deploy", "--metadata-dir", "mdapi").code == 0
    assert evalmeta("convert", "metadata", "--root-dir", "mdapi", "--output-dir", "src").code == 0
    assert files_in(Path("src/main/default/aiAuthoringBundles/Desk")) == bundle_parts("Desk")


@pytest.mark.usefixtures("project")
def test_a_manifest_lists_the_bundles_of_the_project_and_of_the_org(evalmeta: Program) -> None:
    assert evalmeta("manifest", "generate").code == 0
    generated = Path("package.xml").read_text()
    evalmeta("deploy")
    assert evalmeta("manifest", "generate", "--from-org").code == 0
    assert "<members>Desk</members>\n        <name>AiAuthoringBundle</name>" in generated
    assert Path("package.xml").read_text() == generated


@pytest.mark.usefixtures("project")
def test_formatting_leaves_bundles_alone(evalmeta: Program) -> None:
    write_bundle(DESK.parents[1], "Desk", metadata=METADATA.replace(b"    ", b""))
    assert evalmeta("format").code == 0
    assert b"    " not in (DESK / "Desk.bundle-meta.xml").read_bytes()


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("glob", ["**/*.agent", "force-app/**", "**"])
def test_the_org_receives_replacements_in_a_script_and_the_file_keeps_its_placeholder(
    evalmeta: Program, monkeypatch: pytest.MonkeyPatch, glob: str
) -> None:
    replacement = {"glob": glob, "stringToReplace": "visitors", "replaceWithEnv": "WHO"}
    Path("sfdx-project.json").write_text(
        json.dumps({"packageDirectories": [{"path": "force-app"}], "replacements": [replacement]})
    )
    refused = evalmeta("deploy").err
    assert "Desk.agent\n  2:27 error the variable WHO" in refused
    assert "[replacement-missing]" in refused
    monkeypatch.setenv("WHO", "guests")
    assert evalmeta("deploy").code == 0
    assert states(evalmeta) == {}
    assert "Unchanged  Desk" in evalmeta("retrieve").out
    assert files_in(DESK) == bundle_parts("Desk")
    monkeypatch.setenv("WHO", "members")
    assert states(evalmeta) == {"Desk": "changed locally"}


def test_files_of_the_project_keep_the_case_of_their_names(team: Team, evalmeta: Program) -> None:
    write_bundle(Path(), "Desk")
    evalmeta("deploy")
    team.go("theirs")
    folder = write_bundle(Path(), "desk", SCRIPT + b"# theirs\n")
    assert evalmeta("retrieve", "--ignore-conflicts").code == 0
    assert files_in(folder) == bundle_parts("desk")


@pytest.mark.usefixtures("project")
def test_a_folder_renamed_in_case_only_is_not_the_bundle_that_the_org_has(evalmeta: Program) -> None:
    evalmeta("deploy")
    DESK.rename(DESK.with_name("desk"))
    refused = evalmeta("deploy")
    assert refused.code == 1
    assert "the bundle 'desk' has no file desk.agent" in refused.err


def test_doctor_compares_bundles_with_those_of_an_org(
    project: Path, evalmeta: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    dx_project = find_project(project)
    with served(dx_project) as url:
        monkeypatch.setenv("SF_ORG_INSTANCE_URL", url)
        monkeypatch.setenv("SF_ACCESS_TOKEN", make_token(dx_project))
        evalmeta("deploy")
        same = evalmeta("doctor").out
        write_bundle(DESK.parents[1], "Desk", SCRIPT + b"# more\n")
        different = evalmeta("doctor").out
    assert "1 definition, deployed and the same as in the project" in same
    assert "of 1 definition, the org has another version of Desk" in different


@pytest.mark.usefixtures("project")
def test_a_folder_in_which_nothing_is_checked_says_what_forceignore_hides(evalmeta: Program) -> None:
    Path(".forceignore").write_text("# Later\n**/Desk/**\n")
    hidden = evalmeta("validate", str(DESK.parent))
    assert f"{DESK}/Desk.agent is ignored by '**/Desk/**' (.forceignore:2)." in hidden.err, hidden
    Path("empty").mkdir()
    assert "forceignore" not in evalmeta("validate", "empty").err


@pytest.mark.usefixtures("project")
def test_a_named_file_of_a_hidden_bundle_says_which_line_hides_it(evalmeta: Program) -> None:
    Path(".forceignore").write_text("# Later\n**/Desk/**\n")
    hidden = evalmeta("validate", str(DESK / "Desk.agent"))
    assert hidden.code == EXIT_USAGE
    assert f"{DESK}/Desk.agent is ignored by '**/Desk/**' (.forceignore:2)." in hidden.err, hidden
    assert "cannot be read" not in hidden.err
