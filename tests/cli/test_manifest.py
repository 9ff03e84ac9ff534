from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]

TYPE = "AiEvaluationDefinition"


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Path:
    return copy_samples("dx-project")


def test_a_manifest_is_written_and_reported(evalmeta: Program, project: Path) -> None:
    done = evalmeta("manifest", "generate", "-d", "force-app", "-r", "new/folder")

    assert (done.code, done.out) == (0, "Created new/folder/package.xml (3 members, API version 64.0).\n")
    assert (project / "new/folder/package.xml").read_text().count("<members>") == 3


def test_an_existing_manifest_is_replaced_and_reported(evalmeta: Program, project: Path) -> None:
    first, *then = (evalmeta("manifest", "generate", "-a", version).out for version in ("64.0", "65.0", "65.0"))

    assert first.startswith("Created package.xml")
    assert [out.split()[0] for out in then] == ["Changed", "Unchanged"]
    assert "<version>65.0</version>" in (project / "package.xml").read_text()


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("package", "package.xml"),
        ("pre", "destructiveChangesPre.xml"),
        ("post", "destructiveChangesPost.xml"),
        ("destroy", "destructiveChanges.xml"),
    ],
)
def test_a_kind_has_its_own_name_and_only_a_package_has_wildcards(
    evalmeta: Program, project: Path, kind: str, file: str
) -> None:
    done = evalmeta("manifest", "generate", "--type", kind, "-m", TYPE, "--json")

    result = json.loads(done.out)["result"]
    assert (result["name"], result["state"]) == (file, "Created")
    assert ("<members>*</members>" in (project / file).read_text()) == (kind == "package")
    assert evalmeta("validate", file).code == 0


def test_a_manifest_can_name_what_the_org_has(evalmeta: Program, project: Path) -> None:
    evalmeta("deploy", "-m", f"{TYPE}:Outage_Desk")

    done = evalmeta("manifest", "generate", "--from-org", "--name", "all")

    assert done.out == "Created all.xml (1 member, API version 64.0).\n"
    assert "<members>Outage_Desk</members>" in (project / "all.xml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--name", "x", "--type", "pre"], "cannot be combined"),
        (["--name", "a/x.xml"], "--output-dir"),
        (["-d", "force-app", "-m", TYPE], "cannot be combined"),
        (["-a", "62.0"], "is not a valid API version from 63.0 on"),
        (["-a", "new"], "is not a valid API version"),
        (["--from-org", "-d", "force-app"], "--from-org takes --metadata"),
        (["-m", f"{TYPE}:Outage_Dsk"], f"Did you mean {TYPE}:Outage_Desk?"),
    ],
)
def test_a_usage_error_writes_nothing(evalmeta: Program, project: Path, words: list[str], said: str) -> None:
    done = evalmeta("manifest", "generate", *words)

    assert done.code == 2
    assert said in done.err
    assert not list(Path().glob("*.xml"))
    assert project == Path.cwd()


def test_what_is_to_be_deleted_need_not_be_in_the_project_any_more(evalmeta: Program, project: Path) -> None:
    done = evalmeta("manifest", "generate", "--type", "post", "--metadata", f"{TYPE}:Old_Tests")

    assert done.code == 0
    assert "<members>Old_Tests</members>" in (project / "destructiveChangesPost.xml").read_text()
