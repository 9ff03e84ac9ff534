from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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

    done = evalmeta("retrieve")

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
    copy_samples()

    done = evalmeta("retrieve", "--manifest", "dx-project/manifest/package.xml")

    assert done.code == 0
    assert "Retrieved 0 components." in done.out


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


def test_a_wildcard_that_nothing_in_the_org_matches_is_told(
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
    assert f"Warning: {file.relative_to(project)} was not written: .forceignore names it" in done.err
    assert not file.exists()
