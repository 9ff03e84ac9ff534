from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

DESTRUCTIVE = (
    '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><types><members>{}</members>'
    "<name>AiEvaluationDefinition</name></types></Package>"
)


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Path:
    return copy_samples("dx-project")


def test_a_package_is_printed_with_path_components_bytes_and_digest(evalmeta: Program, project: Path) -> None:
    done = evalmeta("package", "build", "-r", "dist", "-z", "tests")

    data = (project / "dist/tests.zip").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert done.out == f"Created dist/tests.zip: 3 components, {len(data):,} bytes.\nsha256 {digest}\n"


def test_a_package_as_json_has_the_same(evalmeta: Program, project: Path) -> None:
    result = json.loads(evalmeta("package", "build", "-m", "AiEvaluationDefinition:Outage_Desk", "--json").out)[
        "result"
    ]

    size = (project / "package.zip").stat().st_size
    assert (result["path"], result["components"], result["bytes"]) == ("package.zip", 1, size)


def test_destructive_changes_are_named(evalmeta: Program, project: Path) -> None:
    (project / "old.xml").write_text(DESTRUCTIVE.format("Old"))

    done = evalmeta("package", "build", "-x", "manifest/package.xml", "--post-destructive-changes", "old.xml")

    assert "3 components, destructiveChangesPost.xml, " in done.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--pre-destructive-changes", "old.xml"], 2, "need --manifest"),
        (["-x", "manifest/package.xml", "--pre-destructive-changes", "old.xml"], 1, "destructive-wildcard"),
        (["-z", "a/b.zip"], 2, "--output-dir"),
        (["-x", "manifest/package.xml", "-d", "force-app"], 2, "cannot be combined"),
        (["-d", "manifest"], 2, "outside the project's package directories (force-app)"),
    ],
)
def test_a_usage_error_writes_nothing(evalmeta: Program, project: Path, words: list[str], code: int, said: str) -> None:
    (project / "old.xml").write_text(DESTRUCTIVE.format("*"))

    done = evalmeta("package", "build", *words)

    assert done.code == code
    assert said in done.err
    assert not list(project.rglob("*.zip"))


def test_remarks_on_files_and_limits_come_on_stderr(
    evalmeta: Program, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_ZIP_ENTRIES", 5)
    (project / ".forceignore").write_text("**\\drafts\n")

    done = evalmeta("package", "build")

    assert "1 finding of forceignore-backslash in .forceignore. Show: evalmeta validate\n" in done.err
    assert "Warning: the package has 4 files, 80% of the 5 that an org accepts" in done.err
    assert len(json.loads(evalmeta("package", "build", "--json").out)["warnings"]) == 2
    assert "Warning: the package has 4 files" in evalmeta("deploy").err
