"""An org in any order of calls, with workers that crash, against a plain dictionary of its components."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from evalmeta.errors import OrgFault
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import Manifest, ManifestTypes
from evalmeta.model.settings import Settings
from evalmeta.org.jobs import (
    cancel_deployment,
    check_deployment,
    check_retrieve,
    quick_deploy,
    run_jobs,
    submit_deployment,
    submit_retrieve,
)
from evalmeta.org.organization import Organization
from evalmeta.org.retrievals import iterate_components
from evalmeta.org_clients.components import NewComponent, delete_components, rename_component, save_components
from evalmeta.package.archive import read_zip
from evalmeta.protocol.metadata_api import DeployOptions, DeployResult, RetrieveResult
from evalmeta.protocol.soap import read_results
from evalmeta.store.database import open_database
from examples import at_most
from org.parts import KIND, definition, package, xml_of
from stores import store_in

NAMES = st.sampled_from(["A", "B", "C", "a"])
CASES = st.integers(1, 3)
BAD = definition("Bad", extra="<bogus/>")


class Org(RuleBasedStateMachine):
    """Deployments that wait, are executed, canceled or deployed quickly, and calls that change single components."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.there: dict[str, tuple[str, bytes]] = {}  # by the name in lower case: the name as it was written
        self.waiting: list[tuple[str, dict[str, bytes], DeployOptions]] = []
        self.succeeded: set[str] = set()  # validations, of which only some can still be deployed
        self.validated: dict[str, dict[str, bytes]] = {}
        self.open()

    def open(self) -> None:
        root = Path(self.folder.name)
        self.org = Organization(open_database(store_in(root / "state")), root, Settings, lambda _: None)

    def teardown(self) -> None:
        self.org.database.close()
        self.folder.cleanup()

    def put(self, files: dict[str, bytes]) -> None:
        self.there |= {name.lower(): (name, content) for name, content in files.items()}

    @rule(name=NAMES, cases=CASES, check_only=st.booleans(), is_bad=st.integers(0, 3).map(lambda n: n == 0))
    def submit(self, name: str, cases: int, *, check_only: bool, is_bad: bool) -> None:
        files = {name: definition(name, cases=cases)} | ({"Bad": BAD} if is_bad else {})
        options = DeployOptions(check_only=check_only)
        job_id = submit_deployment(self.org, ADMIN, package(files), options)
        self.waiting.append((job_id, files, options))

    @rule()
    def run(self) -> None:
        """Execute all waiting deployments in their order."""
        run_jobs(self.org)
        for job_id, files, options in self.waiting:
            [result] = read_results(DeployResult, check_deployment(self.org, ADMIN, job_id))
            succeeded = "Bad" not in files
            assert (result.done, result.success) == (True, succeeded)
            if succeeded and options.check_only:
                self.validated[job_id] = files
                self.succeeded.add(job_id)
            elif succeeded:
                self.put(files)
                self.validated.clear()
        self.waiting.clear()

    @rule()
    def cancel(self) -> None:
        if not self.waiting:
            return
        job_id, _, _ = self.waiting.pop()
        cancel_deployment(self.org, ADMIN, job_id)
        run_jobs(self.org)
        [result] = read_results(DeployResult, check_deployment(self.org, ADMIN, job_id))
        assert result.status == "Canceled"
        self.run()

    @rule()
    def deploy_quickly(self) -> None:
        """A validation is deployed once, and only if nothing was deployed, saved or deleted after it."""
        self.run()
        for void in self.succeeded - self.validated.keys():
            assert self.is_refused(void)
        if not self.validated:
            return
        job_id, files = self.validated.popitem()
        quick_deploy(self.org, ADMIN, job_id)
        run_jobs(self.org)
        self.put(files)
        self.validated.clear()
        assert self.is_refused(job_id)

    def is_refused(self, validation: str) -> bool:
        try:
            quick_deploy(self.org, ADMIN, validation)
        except OrgFault:
            return True
        return False

    @rule(name=NAMES, cases=CASES, action=st.sampled_from(["create", "update", "upsert"]))
    def save(self, name: str, cases: int, action: str) -> None:
        content, exists = definition(name, cases=cases), name.lower() in self.there
        [result] = save_components(self.org, ADMIN, [NewComponent(KIND, name, content)], action, all_or_none=False)
        may = action == "upsert" or exists == (action == "update")
        assert result.success is may
        if may:
            if self.there.get(name.lower()) != (name, content):
                self.validated.clear()
            self.put({name: content})

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        may = old.lower() in self.there and (old.lower() == new.lower() or new.lower() not in self.there)
        assert rename_component(self.org, ADMIN, KIND, old, new).success is may
        if may:
            _, content = self.there.pop(old.lower())
            self.put({new: content})
            self.validated.clear()

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        [result] = delete_components(self.org, KIND, [name], all_or_none=False)
        assert result.success is (self.there.pop(name.lower(), None) is not None)
        if result.success:
            self.validated.clear()

    @rule()
    def crash(self) -> None:
        """Another process opens the org; what waits is still there."""
        self.org.database.close()
        self.open()

    @rule()
    def retrieve(self) -> None:
        self.run()
        manifest = Manifest((ManifestTypes(KIND.name, ("*",)),), "66.0")
        job_id = submit_retrieve(self.org, ADMIN, manifest, single_package=True)
        run_jobs(self.org)
        [result] = read_results(RetrieveResult, check_retrieve(self.org, ADMIN, job_id))
        files = read_zip(result.zip_file)
        assert {name: content for name, content in files.items() if name != "package.xml"} == {
            xml_of(name): content for name, content in self.there.values()
        }

    @invariant()
    def components_are_as_expected(self) -> None:
        listed = {
            component.full_name: self.org.components.content(KIND.name, component.full_name)
            for component in self.listed()
        }
        assert listed == dict(self.there.values())
        assert len({component.id for component in self.listed()}) == len(self.there)

    def listed(self) -> list[object]:
        return list(iterate_components(replace(self.org), KIND))


# Each example needs a store of its own.
TestOrg = pytest.mark.sqlite(Org.TestCase)
TestOrg.settings = settings(max_examples=at_most(200), stateful_step_count=25, deadline=None)
