from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bundles import bundle_package, bundle_parts
from evalmeta.errors import OrgFault
from evalmeta.model.login import ADMIN
from evalmeta.model.registry import AUTHORING_BUNDLE
from evalmeta.org.jobs import quick_deploy
from evalmeta.org_clients.components import delete_components, rename_component
from evalmeta.protocol.metadata_api import AsyncResult, DeleteResult, DeployOptions, SaveResult, UpsertResult
from evalmeta.protocol.soap import read_results
from org.parts import KIND, definition, deploy, package
from org.test_handlers import SOAP, call, fault, send
from protocol.envelopes import jsforce_call

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


def metadata(full_name: str, *, subject: str = "Desk", kind: str = KIND.name) -> str:
    """Return a component as clients send it: its fields in any order."""
    return (
        f'<metadata {XSI} xsi:type="{kind}"><fullName>{full_name}</fullName><subjectType>AGENT</subjectType>'
        f"<testCase><number>1</number><inputs><utterance>Where is it?</utterance></inputs><expectation>"
        f"<name>topic_sequence_match</name><expectedValue>Orders</expectedValue></expectation></testCase>"
        f"<subjectName>{subject}</subjectName><name>{full_name}</name></metadata>"
    )


def save(org: Organization, action: str, *components: str) -> list[SaveResult]:
    return read_results(SaveResult, call(org, f"<{action}>{''.join(components)}</{action}>").content)


def codes(results: list[SaveResult] | list[DeleteResult]) -> list[tuple[str, list[str]]]:
    return [(result.full_name, [error.status_code for error in result.errors]) for result in results]


def names(org: Organization) -> list[str]:
    return [component.full_name for component in org.components.list(KIND.name)]


def test_a_component_is_created_read_changed_and_deleted(org: Organization) -> None:
    assert codes(save(org, "createMetadata", metadata("A"))) == [("A", [])]
    read = f"<readMetadata><type>{KIND.name}</type><fullNames>A</fullNames></readMetadata>"
    assert b"<subjectName>Desk</subjectName>" in call(org, read).content
    assert codes(save(org, "updateMetadata", metadata("A", subject="Shop"))) == [("A", [])]
    assert b"<subjectName>Shop</subjectName>" in call(org, read).content
    delete = f"<deleteMetadata><type>{KIND.name}</type><fullNames>A</fullNames></deleteMetadata>"
    assert codes(read_results(DeleteResult, call(org, delete).content)) == [("A", [])]
    assert names(org) == []


def test_each_component_has_a_result_of_its_own(org: Organization) -> None:
    found = save(org, "createMetadata", metadata("A"), metadata("A"), metadata("../b"), metadata("C", subject=""))
    expected = ["DUPLICATE_DEVELOPER_NAME"], ["FIELD_INTEGRITY_EXCEPTION"], ["FIELD_INTEGRITY_EXCEPTION"]
    assert codes(found) == list(zip(["A", "A", "../b", "C"], [[], *expected], strict=True))
    assert "[required-empty]" in found[3].errors[0].message
    assert names(org) == ["A"]


def test_a_component_that_failed_does_not_exist_for_the_next_ones(org: Organization) -> None:
    found = save(org, "createMetadata", metadata("A", subject=""), metadata("A"))
    assert codes(found) == [("A", ["FIELD_INTEGRITY_EXCEPTION"]), ("A", [])]


def test_a_wrong_name_is_an_error_of_the_full_name(org: Organization) -> None:
    [error] = [error for result in save(org, "createMetadata", metadata("my_tests_")) for error in result.errors]
    assert (error.fields, error.message.partition(" [")[0]) == (
        ("fullName",),
        "the full name 'my_tests_' is not a valid API name",
    )
    assert "file" not in error.message


def test_all_or_none_saves_nothing_if_one_fails(org: Organization) -> None:
    header = "<AllOrNoneHeader><allOrNone>True</allOrNone></AllOrNoneHeader>"
    body = jsforce_call(f"<createMetadata>{metadata('A')}{metadata('../b')}</createMetadata>", session=org.token)
    sent = body.replace(b"</SessionHeader>", b"</SessionHeader>" + header.encode())
    found = read_results(SaveResult, send(org, "POST", SOAP, sent).content)
    assert codes(found) == [("A", ["ALL_OR_NONE_OPERATION_ROLLED_BACK"]), ("../b", ["FIELD_INTEGRITY_EXCEPTION"])]
    assert names(org) == []


def test_an_update_needs_the_component_and_an_upsert_does_not(org: Organization) -> None:
    [missing] = save(org, "updateMetadata", metadata("A"))
    assert [(error.status_code, error.message) for error in missing.errors] == [
        ("INVALID_CROSS_REFERENCE_KEY", f"In field: fullName - no {KIND.name} named A found")
    ]
    assert codes(save(org, "updateMetadata", *[metadata("A")] * 2)) == [("A", ["INVALID_CROSS_REFERENCE_KEY"])] * 2
    upsert = f"<upsertMetadata>{metadata('A')}{metadata('a', subject='Shop')}</upsertMetadata>"
    found = read_results(UpsertResult, call(org, upsert).content)
    assert [(result.created, result.success) for result in found] == [(True, True), (False, True)]
    assert names(org) == ["a"]


def test_a_component_keeps_its_id_when_it_is_renamed(org: Organization) -> None:
    deploy(org, package({"A": definition("A"), "B": definition("B")}))
    [before, _] = org.components.list(KIND.name)
    rename = (
        "<renameMetadata><type>{}</type><oldFullName>{}</oldFullName><newFullName>{}</newFullName></renameMetadata>"
    )

    def answer(old: str, new: str) -> list[tuple[str, list[str]]]:
        return codes(read_results(SaveResult, call(org, rename.format(KIND.name, old, new)).content))

    assert answer("A", "C") == [("C", [])]
    assert answer("A", "D") == [("D", ["INVALID_CROSS_REFERENCE_KEY"])]
    assert answer("C", "B") == [("B", ["DUPLICATE_DEVELOPER_NAME"])]
    assert answer("C", "c") == [("c", [])]
    assert [(component.full_name, component.id == before.id) for component in org.components.list(KIND.name)] == [
        ("B", False),
        ("c", True),
    ]


def test_more_than_ten_components_are_refused(org: Organization) -> None:
    many = "".join(metadata(f"A{number}") for number in range(11))
    assert fault(call(org, f"<createMetadata>{many}</createMetadata>"))[:2] == (500, "EXCEEDED_ID_LIMIT")
    assert names(org) == []


@pytest.mark.parametrize("kind", ["", "AiEvaluationDefinitions", "met:Bot"])
def test_a_component_of_an_unknown_type_is_refused_with_the_known_ones(org: Organization, kind: str) -> None:
    with pytest.raises(OrgFault, match=f"Unknown type:{kind.removeprefix('met:')}") as raised:
        save(org, "createMetadata", metadata("A", kind=kind))
    assert (raised.value.code, KIND.name in raised.value.actions[0]) == ("INVALID_TYPE", True)


def test_a_deleted_component_that_does_not_exist_has_an_error(org: Organization) -> None:
    deploy(org, package({"A": definition("A")}))
    delete = (
        f"<deleteMetadata><type>{KIND.name}</type><fullNames>A</fullNames><fullNames>B</fullNames>"
        f"<fullNames>a</fullNames></deleteMetadata>"
    )
    found = read_results(DeleteResult, call(org, delete).content)
    missing = ["INVALID_CROSS_REFERENCE_KEY"]
    assert codes(found) == [("A", []), ("B", missing), ("a", missing)]


def test_check_status_tells_the_state_of_a_job(org: Organization) -> None:
    deployed = deploy(org, package({"A": definition("A")}))
    job_id = getattr(deployed, "id", deployed)
    check = f"<checkStatus><asyncProcessId>{job_id}</asyncProcessId></checkStatus>"
    [found] = read_results(AsyncResult, call(org, check).content)
    assert (found.done, found.state) == (True, "Completed")
    unknown = "<checkStatus><asyncProcessId>0Af000000000009AAA</asyncProcessId></checkStatus>"
    assert fault(call(org, unknown))[1] == "INVALID_CROSS_REFERENCE_KEY"


@pytest.mark.parametrize("rest", ["/00D000000000001AAA", "/deployRequest", "/deployRequest/0Af000000000001AAA", "/"])
def test_calls_below_the_soap_path_are_answered(org: Organization, rest: str) -> None:
    assert call(org, "<describeMetadata/>", path=SOAP + rest).content == call(org, "<describeMetadata/>").content


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_other_methods_at_the_soap_path_are_faults(org: Organization, method: str) -> None:
    assert fault(send(org, method, SOAP + "/00D"))[:2] == (405, "METHOD_NOT_ALLOWED")
    assert fault(send(org, "POST", "/services/Soap/c/66.0"))[:2] == (404, "NOT_FOUND")


def test_an_unknown_call_is_told_the_answered_ones(org: Organization) -> None:
    with pytest.raises(OrgFault) as raised:
        read_results(SaveResult, call(org, "<describeValueType/>").content)
    assert "createMetadata" in raised.value.actions[0]


@pytest.mark.parametrize("method", ["createMetadata", "updateMetadata", "upsertMetadata", "delete", "rename"])
def test_a_quick_deploy_is_refused_after_a_call_changed_a_component(org: Organization, method: str) -> None:
    assert codes(save(org, "upsertMetadata", metadata("Old"))) == [("Old", [])]
    job_id = deploy(org, package({"A": definition("A")}), DeployOptions(check_only=True))
    if method == "delete":
        assert delete_components(org, KIND, ["Old"], all_or_none=False)[0].success
    elif method == "rename":
        assert rename_component(org, ADMIN, KIND, "Old", "New").success
    else:
        name = "B" if method == "createMetadata" else "Old"
        assert codes(save(org, method, metadata(name, subject="Other"))) == [(name, [])]
    with pytest.raises(OrgFault, match="The org has changed since this validation"):
        quick_deploy(org, ADMIN, job_id)


def test_the_fields_of_a_bundle_are_read_in_any_case_of_its_name_and_it_can_be_deleted(org: Organization) -> None:
    deploy(org, bundle_package({f"Desk/{name}": content for name, content in bundle_parts("Desk").items()}))
    read = f"<readMetadata><type>{AUTHORING_BUNDLE.name}</type><fullNames>desk</fullNames></readMetadata>"
    assert b"<bundleType>AGENT</bundleType>" in call(org, read).content
    delete = f"<deleteMetadata><type>{AUTHORING_BUNDLE.name}</type><fullNames>Desk</fullNames></deleteMetadata>"
    assert codes(read_results(DeleteResult, call(org, delete).content)) == [("Desk", [])]
    assert b"AGENT" not in call(org, read).content


@pytest.mark.parametrize("action", ["createMetadata", "updateMetadata"])
def test_a_call_that_carries_no_script_saves_no_bundle(org: Organization, action: str) -> None:
    if action == "updateMetadata":
        deploy(org, bundle_package({f"Desk/{name}": content for name, content in bundle_parts("Desk").items()}))
    before = org.components.content(AUTHORING_BUNDLE.name, "Desk")
    [result] = save(org, action, metadata("Desk", kind=AUTHORING_BUNDLE.name))
    assert "which this call cannot save: deploy it" in result.errors[0].message
    assert org.components.content(AUTHORING_BUNDLE.name, "Desk") == before


def test_a_bundle_is_not_renamed_because_its_files_have_its_name(org: Organization) -> None:
    deploy(org, bundle_package({f"Desk/{name}": content for name, content in bundle_parts("Desk").items()}))
    assert not rename_component(org, ADMIN, AUTHORING_BUNDLE, "Desk", "Shop").success
    assert [component.full_name for component in org.components.list(AUTHORING_BUNDLE.name)] == ["Desk"]
