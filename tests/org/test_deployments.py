from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.client.metadata import deploy, retrieve
from evalmeta.model.registry import NEWEST_API_VERSION, ManifestTypes
from evalmeta.package.archive import build_zip, read_zip
from evalmeta.protocol.json_fields import from_timestamp
from evalmeta.protocol.metadata_api import DeployOptions
from evalmeta.store.database import open_database
from evalmeta.xmlio.definitions import write_manifest
from examples import at_most
from org.parts import KIND, ask, definition, everything, opened, package, snapshot, xml_of

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization
    from evalmeta.protocol.metadata_api import DeployMessage, DeployResult

DEPLOYER = Path(__file__).parent / "deployer.py"
DEPLOY = DeployOptions()
CHECK = DeployOptions(check_only=True)
PARTIAL = DeployOptions(rollback_on_error=False)
BAD = definition("Bad", extra="<bogus/>")


def send(org: Organization, zip_file: bytes, options: DeployOptions = DEPLOY) -> DeployResult:
    return ask(org, lambda connection: deploy(connection, zip_file, options=options))


def fetch(org: Organization) -> dict[str, bytes]:
    entries = read_zip(ask(org, lambda connection: retrieve(connection, everything())).zip_file)
    return {Path(name).stem: content for name, content in entries.items() if name.endswith(KIND.suffix)}


def only_failure(result: DeployResult) -> DeployMessage:
    [failure] = result.details.component_failures
    assert (result.status, result.success, failure.success, failure.problem_type) == ("Failed", False, False, "Error")
    return failure


def test_a_deployment_saves_every_component_byte_for_byte(org: Organization) -> None:
    files = {"A": definition("A"), "B": definition("B").replace(b"\n", b"\r\n")}
    result = send(org, package(files))
    assert (result.status, result.done, result.number_components_deployed) == ("Succeeded", True, 2)
    assert fetch(org) == files


def test_a_change_is_dated_after_every_change_before_and_not_after_its_deployment(org: Organization) -> None:
    send(org, package({"A": definition("A")}))
    org.database.execute("UPDATE component SET modified_at = 4000000000.123")
    result = send(org, package({"B": definition("B")}))
    first, second = org.components.list(KIND.name)
    assert first.modified < second.modified == from_timestamp(result.completed_date)
    assert result.completed_date == "2096-10-02T07:06:40.124Z"


def test_a_deployment_is_dated_when_it_has_the_database(org: Organization) -> None:
    held = Event()

    def hold() -> float:
        with open_database(org.database.store) as other, other.transaction():
            held.set()
            time.sleep(0.2)
            return time.time()

    with ThreadPoolExecutor() as pool:
        holding = pool.submit(hold)
        held.wait()
        send(org, package({"A": definition("A")}))
    [component] = org.components.list(KIND.name)
    assert component.modified >= holding.result() - 0.001


@pytest.mark.slow
def test_a_deployment_with_very_many_problems_has_a_reply_that_is_read(org: Organization) -> None:
    bad = definition("Bad", cases=1_000).replace(b"<inputs>", b"<bogus/><inputs>")
    result = send(org, package({f"Bad{number}": bad for number in range(8)}))
    assert result.number_component_errors == 8
    assert len(result.details.component_failures) == limits.MAX_DEPLOY_PROBLEMS


def test_a_deployment_with_many_warnings_counts_the_omitted_ones(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_DEPLOY_PROBLEMS", 4)
    doubtful = definition("A", cases=5).replace(b"<expectedValue>Orders</expectedValue>", b"")
    result = send(org, package({"A": doubtful, "B": doubtful}))
    told = [success.problem.split("; ") for success in result.details.component_successes if success.problem]
    assert [(len(lines), lines[-1]) for lines in told] == [(3, "... and 3 more")] * 2


def test_a_deployment_reports_the_result_of_each_component(org: Organization) -> None:
    send(org, package({"A": definition("A"), "B": definition("B")}))
    result = send(org, package({"A": definition("A"), "B": definition("B", cases=2), "C": definition("C")}))
    outcomes = {success.full_name: (success.created, success.changed) for success in result.details.component_successes}
    assert outcomes == {"package.xml": (False, True), "A": (False, False), "B": (False, True), "C": (True, True)}


def test_a_refused_component_is_reported_with_line_and_column(org: Organization) -> None:
    failure = only_failure(send(org, package({"Bad": BAD})))
    assert (failure.file_name, failure.line_number, failure.column_number) == (xml_of("Bad"), 7, 3)
    assert "bogus" in failure.problem
    assert (failure.component_type, failure.full_name) == (KIND.name, "Bad")


def test_the_org_takes_what_real_orgs_take_and_warns(org: Organization) -> None:
    labelled = definition("A").replace(b"<name>A</name>", b"<name>My tests</name>")
    result = send(org, package({"A": labelled}))
    _, success = result.details.component_successes
    assert (result.status, success.problem_type) == ("Succeeded", "Warning")


def test_one_refused_component_keeps_all_the_others_out(org: Organization) -> None:
    send(org, package({"A": definition("A")}))
    before = snapshot(org)
    result = send(org, package({"A": definition("A", cases=3), "B": definition("B"), "Bad": BAD}))
    assert (result.status, result.number_component_errors, result.number_components_total) == ("Failed", 1, 3)
    assert snapshot(org) == before


def test_without_rollback_the_good_components_are_saved(org: Organization) -> None:
    result = send(org, package({"A": definition("A"), "Bad": BAD}), PARTIAL)
    assert result.status == "SucceededPartial"
    assert list(fetch(org)) == ["A"]


def test_without_rollback_a_deployment_of_nothing_good_fails(org: Organization) -> None:
    assert only_failure(send(org, package({"Bad": BAD}), PARTIAL)).full_name == "Bad"


def test_a_check_reports_changes_without_making_them(org: Organization) -> None:
    send(org, package({"A": definition("A")}))
    before = snapshot(org)
    result = send(org, package({"A": definition("A", cases=2), "B": definition("B")}), CHECK)
    states = [
        (success.full_name, success.created, success.id is None) for success in result.details.component_successes[1:]
    ]
    assert (result.status, result.check_only, states) == ("Succeeded", True, [("A", False, False), ("B", True, True)])
    assert snapshot(org) == before


names = st.sampled_from(["A", "B", "C", "a", "Bad_1", "Bad_2"])
contents = st.tuples(names, st.integers(1, 3)).map(
    lambda pair: (pair[0], definition(pair[0], cases=pair[1], extra="<bogus/>" if "Bad" in pair[0] else ""))
)
packages = st.lists(contents, min_size=1, max_size=4, unique_by=lambda pair: pair[0].lower()).map(dict)


@pytest.mark.slow
@settings(max_examples=at_most(120), deadline=None)
@given(st.lists(st.tuples(packages, st.booleans()), min_size=1, max_size=4))
def test_a_deployment_that_fails_or_only_checks_changes_nothing(steps: list[tuple[dict[str, bytes], bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as org:
        for files, check_only in steps:
            before, was = snapshot(org), fetch(org)
            result = send(org, package(files), DeployOptions(check_only=check_only))
            assert result.success == (not any("Bad" in name for name in files))
            if check_only or not result.success:
                assert snapshot(org) == before
            else:
                kept = {name: content for name, content in was.items() if name.lower() not in map(str.lower, files)}
                assert fetch(org) == kept | files


def test_a_zip_without_a_manifest_is_refused(org: Organization) -> None:
    result = send(org, build_zip([(xml_of("A"), definition("A"))]))
    assert only_failure(result).problem == "No package.xml found"
    assert result.details.component_successes == ()


def test_a_package_of_a_newer_version_than_the_orgs_is_refused(org: Organization) -> None:
    newest, newer = (
        package({"A": definition("A")}, manifest=write_manifest(replace(everything(), version=version)))
        for version in (str(NEWEST_API_VERSION), "99.0")
    )

    failure = only_failure(send(org, newer))

    assert (failure.full_name, failure.problem) == ("package.xml", "Invalid version specified:99.0")
    assert fetch(org) == {}
    assert send(org, newest).success


def test_a_manifest_that_is_not_xml_is_refused_with_its_location(org: Organization) -> None:
    failure = only_failure(send(org, package({}, manifest=b"<Package>\n<types>")))
    assert (failure.full_name, failure.line_number) == ("package.xml", 2)
    assert "[xml-malformed]" in failure.problem


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (KIND.name, "AiEvaluationDefinitio", "manifest-type-unknown"),
        (KIND.name, "AiEvaluationDefinitions", "manifest-type-unknown"),
        ("    <version>64.0</version>\n", "", "manifest-version-missing"),
        ("64.0", "62.0", "manifest-version-old"),
        ("64.0", "new", "manifest-version-invalid"),
        ("<members>*</members>", "<members/>", "manifest-member-empty"),
        ("<types>", "<kinds/><types>", "element-unknown"),
        ("<?xml", "<!DOCTYPE Package><?xml", "xml-"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_with_its_place(org: Organization, old: str, new: str, code: str) -> None:
    manifest = write_manifest(everything()).decode().replace(old, new, 1).encode()
    failure = only_failure(send(org, package({"A": definition("A")}, manifest=manifest)))
    assert (failure.file_name, failure.line_number is not None) == ("package.xml", True)
    assert f"[{code}" in failure.problem


def mixed(*others: ManifestTypes, files: tuple[str, ...] = ()) -> bytes:
    manifest = write_manifest(replace(everything("A"), types=(*everything("A").types, *others)))
    return build_zip(
        [("package.xml", manifest), (xml_of("A"), definition("A")), *((name, b"<ApexClass/>") for name in files)]
    )


@pytest.mark.parametrize("member", ["Orders", "*"])
def test_components_of_other_types_are_refused_one_by_one(org: Organization, member: str) -> None:
    files = ("classes/Orders.cls", "classes/Orders.cls-meta.xml")
    result = send(org, mixed(ManifestTypes("ApexClass", (member,)), files=files), PARTIAL)
    [failure] = result.details.component_failures
    assert (failure.component_type, failure.full_name) == ("ApexClass", "Orders")
    assert failure.problem.startswith("This org does not support the type ApexClass; it has AiEvaluationDefinition, ")
    assert result.status == "SucceededPartial"


def test_wildcards_of_other_types_name_the_files_that_are_there(org: Organization) -> None:
    others = ManifestTypes("ApexClass", ("*",)), ManifestTypes("Bot", ("*",))
    assert send(org, mixed(*others)).status == "Succeeded"
    wrong = f"{KIND.directory}/B.{KIND.suffix}-meta.xml"
    result = send(org, mixed(*others, files=("classes/A.cls", "bots/B/B.bot", wrong)))
    assert sorted(failure.problem.partition(";")[0] for failure in result.details.component_failures) == [
        f"The file {wrong} is in the package but not named in package.xml",
        "This org does not support the type of bots/B/B.bot",
        "This org does not support the type of classes/A.cls",
    ]


def test_a_member_that_is_not_in_the_zip_is_refused(org: Organization) -> None:
    manifest = write_manifest(everything("A", "Gone"))
    failure = only_failure(send(org, package({"A": definition("A")}, manifest=manifest)))
    assert failure.full_name == "Gone"
    assert "was named in package.xml, but was not found in zipped directory" in failure.problem


def test_a_file_that_the_manifest_does_not_name_is_refused(org: Organization) -> None:
    manifest = write_manifest(everything("A"))
    failure = only_failure(send(org, package({"A": definition("A"), "B": definition("B")}, manifest=manifest)))
    assert (failure.full_name, failure.file_name) == ("B", xml_of("B"))
    assert "not named in package.xml" in failure.problem


@pytest.mark.parametrize(
    "name",
    [
        "notes.txt",
        f"other/A.{KIND.suffix}",
        f"{KIND.directory}/deep/A.{KIND.suffix}",
        f"{KIND.directory}/A.{KIND.suffix}-meta.xml",
    ],
)
def test_a_file_that_is_not_a_component_is_refused(org: Organization, name: str) -> None:
    zip_file = build_zip([("package.xml", write_manifest(everything())), (name, definition("A"))])
    assert only_failure(send(org, zip_file)).full_name == name


def test_a_package_may_be_in_one_folder(org: Organization) -> None:
    manifest = write_manifest(everything())
    zip_file = build_zip([("app/package.xml", manifest), (f"app/{xml_of('A')}", definition("A"))])
    assert send(org, zip_file).success
    assert list(fetch(org)) == ["A"]


@pytest.mark.parametrize(
    "zip_file",
    [b"", b"not a zip", package({"A": definition("A")})[:-5], package({}).replace(b"package.xml", b"../pack.xml")],
)
def test_a_zip_that_is_damaged_or_hostile_fails_the_deployment(org: Organization, zip_file: bytes) -> None:
    before = snapshot(org)
    result = send(org, zip_file or b" ")
    assert (result.status, result.error_status_code, result.done) == ("Failed", "INVALID_ZIP_FILE", True)
    assert result.error_message
    assert snapshot(org) == before


def test_a_name_in_another_case_is_the_same_component(org: Organization) -> None:
    send(org, package({"Orders": definition("Orders")}))
    send(org, package({"orders": definition("orders")}))
    assert list(fetch(org)) == ["orders"]


@pytest.mark.parametrize("kills", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_a_deployment_that_is_killed_is_done_or_not_begun(tmp_path: Path, kills: int) -> None:
    command = [sys.executable, str(DEPLOYER), str(tmp_path), str(kills)]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    states = told.stdout.split()
    assert len(states) == kills
    assert set(states) <= {"old", "new"}


def test_every_job_has_an_id_of_its_own_that_says_its_kind(org: Organization) -> None:
    ids = [send(org, package({})).id for _ in range(2)]
    assert ids == ["0Af000000000001CAA", "0Af000000000002CAA"]


@pytest.mark.parametrize("options", [DEPLOY, PARTIAL])
@pytest.mark.parametrize("name", ["A", "a"])
def test_a_component_that_is_in_two_packages_of_a_zip_fails(
    org: Organization, name: str, options: DeployOptions
) -> None:
    manifests = [(f"{folder}/package.xml", write_manifest(everything())) for folder in ("one", "two")]
    files = [(f"one/{xml_of('A')}", definition("A")), (f"two/{xml_of(name)}", definition(name, cases=2))]
    [failure] = send(org, build_zip([*manifests, *files]), options).details.component_failures
    assert failure.problem == f"The {KIND.name} '{name}' is in the zip more than once"
    assert fetch(org) == ({} if options == DEPLOY else {"A": definition("A")})
