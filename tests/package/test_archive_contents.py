from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.model.registry import ApiVersion, Manifest, ManifestTypes
from evalmeta.package.archive import manifest_of, near_limits, package_entries
from evalmeta.package.selection import resolve

if TYPE_CHECKING:
    from evalmeta.package.project import Project

BLOCK = ManifestTypes("AiEvaluationDefinition", ("Billing", "Orders", "Returns"))


def test_a_manifest_names_each_component_sorted(dx_project: Project) -> None:
    found = resolve(dx_project).components
    assert manifest_of(reversed(found), ApiVersion(64)) == Manifest((BLOCK,), "64.0")


def test_a_package_has_manifest_destructive_changes_and_components(dx_project: Project) -> None:
    entries = dict(package_entries(resolve(dx_project), {"destructiveChanges.xml": b"<x/>"}))
    files = [f"aiEvaluationDefinitions/{name}.aiEvaluationDefinition" for name in BLOCK.members]
    assert list(entries) == ["package.xml", "destructiveChanges.xml", *files]
    assert entries["destructiveChanges.xml"] == b"<x/>"


def test_a_warning_comes_at_80_percent_of_a_limit() -> None:
    assert near_limits(zipped=limits.MAX_ZIP_BYTES * 8 // 10 - 1, entries=7_999) == ()
    assert near_limits(zipped=31_200_000, entries=8_000) == (
        "the package has 31,200,000 bytes zipped, 80% of the 39,000,000 that an org accepts",
        "the package has 8,000 files, 80% of the 10,000 that an org accepts",
    )
