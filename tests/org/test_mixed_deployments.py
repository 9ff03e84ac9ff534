"""Deployments of every kind, one after the other, against a plain dictionary that says what must be there."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta.model.login import ADMIN
from evalmeta.org.jobs import cancel_deployment, check_deployment, run_jobs, submit_deployment
from evalmeta.package.archive import build_zip
from evalmeta.protocol.metadata_api import DeployOptions, DeployResult
from evalmeta.protocol.soap import read_results
from evalmeta.xmlio.definitions import write_manifest
from examples import at_most
from org.parts import KIND, definition, everything, opened, snapshot, xml_of

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization

STEPS = 10
NAMES = ("A", "B", "C", "D")


@dataclass(frozen=True)
class Step:
    """A deployment: what it saves, how many cases each has, what it deletes before and after, how it goes wrong."""

    files: dict[str, int]
    first: tuple[str, ...]
    last: tuple[str, ...]
    options: DeployOptions
    refused: bool
    missing: bool
    damaged: bool
    canceled: bool

    @property
    def fails(self) -> bool:
        return self.damaged or self.refused or (self.missing and not self.options.allow_missing_files)

    @property
    def changes(self) -> bool:
        whole = not self.fails or (not self.options.rollback_on_error and not self.damaged)
        return whole and not self.options.check_only and not self.canceled


rare = st.integers(0, 3).map(lambda number: number == 0)
members = st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple)
options = st.builds(DeployOptions, check_only=rare, rollback_on_error=st.booleans(), allow_missing_files=rare)
steps = st.builds(
    Step,
    files=st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3), max_size=3),
    first=members,
    last=members,
    options=options,
    refused=rare,
    missing=rare,
    damaged=rare,
    canceled=rare,
)


def zip_of(step: Step) -> bytes:
    contents = {name: definition(name, cases=cases) for name, cases in step.files.items()}
    if step.refused:
        contents["Bad"] = definition("Bad", extra="<bogus/>")
    entries = [("package.xml", write_manifest(everything("*", *(["Gone"] if step.missing else []))))]
    for name, deleted in (("Pre", step.first), ("Post", step.last)):
        if deleted:
            entries.append((f"destructiveChanges{name}.xml", write_manifest(everything(*deleted))))
    zip_file = build_zip([*entries, *((xml_of(name), content) for name, content in contents.items())])
    return zip_file[: len(zip_file) // 2] if step.damaged else zip_file


def outcome_of(org: Organization, step: Step) -> DeployResult:
    job_id = submit_deployment(org, ADMIN, zip_of(step), step.options)
    if step.canceled:
        cancel_deployment(org, ADMIN, job_id)
    run_jobs(org)
    [result] = read_results(DeployResult, check_deployment(org, ADMIN, job_id))
    return result


def after(there: dict[str, bytes], step: Step) -> dict[str, bytes]:
    kept = {name: content for name, content in there.items() if name not in step.first}
    saved = kept | {name: definition(name, cases=cases) for name, cases in step.files.items()}
    return {name: content for name, content in saved.items() if name not in step.last}


def contents(org: Organization) -> dict[str, bytes | None]:
    found = org.components.list(KIND.name)
    return {component.full_name: org.components.content(KIND.name, component.full_name) for component in found}


@pytest.mark.slow
@settings(max_examples=at_most(100), deadline=None)
@given(st.lists(steps, min_size=STEPS, max_size=STEPS))
def test_a_thousand_mixed_deployments_change_what_they_say_and_nothing_else(plan: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as opened_org:
        org = replace(opened_org, wake=lambda: None)
        there: dict[str, bytes] = {}
        for step in plan:
            before = snapshot(org)
            result = outcome_of(org, step)
            assert result.done
            if step.changes:
                there = after(there, step)
                assert result.status == (
                    "SucceededPartial"
                    if step.fails and result.number_components_deployed
                    else "Failed"
                    if step.fails
                    else "Succeeded"
                )
            else:
                assert snapshot(org) == before
            assert contents(org) == there
