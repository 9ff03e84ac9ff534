from __future__ import annotations

import base64
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.errors import MessageUnreadable, OrgError, OrgFault
from evalmeta.model.registry import Manifest, ManifestTypes
from evalmeta.protocol import soap
from evalmeta.protocol.metadata_api import (
    AsyncResult,
    DeployDetails,
    DeployMessage,
    DeployOptions,
    DeployResult,
    FileProperties,
    RetrieveResult,
)
from protocol.envelopes import jsforce_call, wsdl_call
from protocol.messages import RESULTS, made, texts

ZIP = b"PK\x05\x06" + b"\x00" * 18
ENCODED = base64.b64encode(ZIP).decode()
MANIFEST = Manifest((ManifestTypes("AiEvaluationDefinition", ("A", "*")),), "64.0")
RECEIPT = AsyncResult(done=False, id="0Af000000000001CAA")


def sent(operation: object) -> soap.Call:
    return soap.read_call(soap.write_call(operation, session="S", client="c"))


@given(st.sampled_from(RESULTS).flatmap(lambda kind: st.lists(made(kind), max_size=3)))
def test_results_survive_the_envelope(results: list[object]) -> None:
    kind = type(results[0]) if results else AsyncResult
    reply = soap.write_results("describe", results[:1] if kind is RetrieveResult else results)
    assert soap.read_results(kind, reply) == (results[:1] if kind is RetrieveResult else results)


def test_a_message_may_hold_a_zip_of_any_size_that_an_org_takes() -> None:
    zip_file = bytes(limits.MAX_ZIP_BYTES)
    assert soap.read_deploy(sent(soap.deploy_call(zip_file, DeployOptions()))) == (zip_file, DeployOptions())


def test_a_reply_may_be_larger_than_a_call() -> None:
    long = RetrieveResult("09S", "Failed", done=True, success=False, error_message="x" * limits.MAX_ENVELOPE_BYTES)
    written = soap.write_results("checkRetrieveStatus", [long])
    assert soap.read_results(RetrieveResult, written) == [long]
    with pytest.raises(MessageUnreadable, match="at most 9,000,000 are allowed"):
        soap.read_call(written)


@pytest.mark.slow
def test_a_reply_about_10000_components_is_read() -> None:
    name = "A" * limits.MAX_API_NAME_CHARS
    message = DeployMessage("AiEvaluationDefinition", name, f"{name}.xml", success=True, id="4KA000000000001GAA")
    result = DeployResult(
        "0Af", "Succeeded", done=True, success=True, details=DeployDetails((), (message,) * limits.MAX_ZIP_ENTRIES)
    )
    assert soap.read_results(DeployResult, soap.write_results("checkDeployStatus", [result])) == [result]


@given(st.binary(min_size=1), made(DeployOptions))
def test_a_deploy_call_survives_the_envelope(zip_file: bytes, options: DeployOptions) -> None:
    assert soap.read_deploy(sent(soap.deploy_call(zip_file, options))) == (zip_file, options)


@pytest.mark.parametrize(
    "operation",
    [
        f"<deploy><ZipFile>{ENCODED}</ZipFile><DeployOptions><checkOnly>true</checkOnly></DeployOptions></deploy>",
        (
            f"<deploy><ZipFile>\n{ENCODED[:20]}\r\n{ENCODED[20:]}\n</ZipFile>"
            "<deployOptions><purgeOnDelete>false</purgeOnDelete><checkOnly> 1 </checkOnly></deployOptions></deploy>"
        ),
        (
            f"<deploy><ZipFile> <![CDATA[{ENCODED}\n]]></ZipFile>"
            "<DeployOptions><checkOnly>true</checkOnly></DeployOptions></deploy>"
        ),
        (
            f"<deploy><ZipFile>{ENCODED[:9]}&#13;\n{ENCODED[9:20]}&#xD;&#xa;&#10;{ENCODED[20:]}&#13;</ZipFile>"
            "<DeployOptions><checkOnly>true</checkOnly></DeployOptions></deploy>"
        ),
        (
            f'<deploy><zipFile type="base64Binary">{ENCODED}</zipFile>'
            "<DeployOptions><other>NoTestRun</other><checkOnly>true</checkOnly></DeployOptions></deploy>"
        ),
    ],
)
def test_a_deploy_call_is_read_in_every_spelling(operation: str) -> None:
    assert soap.read_deploy(soap.read_call(jsforce_call(operation))) == (ZIP, DeployOptions(check_only=True))


def test_a_deploy_call_with_prefixes_is_read() -> None:
    operation = f"<met:deploy><met:ZipFile>{ENCODED}</met:ZipFile><met:DeployOptions/></met:deploy>"
    assert soap.read_deploy(soap.read_call(wsdl_call(operation))) == (ZIP, DeployOptions())


def test_a_retrieve_call_survives_the_envelope() -> None:
    for single_package in (False, True):
        call = soap.retrieve_call(MANIFEST, "66.0", single_package=single_package)
        assert soap.read_retrieve(sent(call)) == (MANIFEST, single_package)


def test_jsforces_retrieve_call_is_read() -> None:
    types = "<types><members>A</members><members>*</members><name>AiEvaluationDefinition</name></types>"
    call = (
        "<retrieve><request><apiVersion>66.0</apiVersion><singlePackage>true</singlePackage>"
        f"<unpackaged>{types}<version>64.0</version></unpackaged></request></retrieve>"
    )
    assert soap.read_retrieve(soap.read_call(jsforce_call(call))) == (MANIFEST, True)


def test_a_retrieve_call_without_a_version_takes_the_calls_own() -> None:
    request = "<met:apiVersion>65.0</met:apiVersion>\n<met:unpackaged> <met:types/> </met:unpackaged>"
    call = f"<met:retrieve><met:retrieveRequest>{request}</met:retrieveRequest></met:retrieve>"
    manifest, _ = soap.read_retrieve(soap.read_call(wsdl_call(call)))
    assert manifest == Manifest((ManifestTypes("", ()),), "65.0")


@pytest.mark.parametrize("content", ["", "<request/>", "<unpackaged/>"])
def test_a_retrieve_call_that_names_nothing_is_unreadable(content: str) -> None:
    with pytest.raises(MessageUnreadable, match="retrieve has no manifest"):
        soap.read_retrieve(soap.read_call(jsforce_call(f"<retrieve>{content}</retrieve>")))


@pytest.mark.parametrize("call_of", [jsforce_call, wsdl_call])
def test_the_session_is_read_from_the_header(call_of: object) -> None:
    assert soap.read_call(call_of("<x/>", session="00D!a.b_c")).session == "00D!a.b_c"


@pytest.mark.parametrize(
    ("operation", "name", "field", "text"),
    [
        (soap.call_of("describeMetadata", asOfVersion="66.0"), "describeMetadata", ("asOfVersion",), "66.0"),
        (soap.list_call("T", "66.0"), "listMetadata", ("queries", "type"), "T"),
        (soap.call_of("checkDeployStatus", includeDetails="true"), "checkDeployStatus", ("includeDetails",), "true"),
        (soap.call_of("checkRetrieveStatus", asyncProcessId="09S"), "checkRetrieveStatus", ("asyncProcessId",), "09S"),
    ],
)
def test_every_call_says_what_it_wants(operation: object, name: str, field: tuple[str, ...], text: str) -> None:
    call = sent(operation)
    assert (call.name, call.text(*field), call.text("nothing")) == (name, text, "")


def test_a_reply_has_the_prefix_on_envelope_and_body_only() -> None:
    reply = soap.write_results("deploy", [RECEIPT]).decode()
    tags = re.findall(r"<([\w:]+)", reply)
    assert tags == ["soapenv:Envelope", "soapenv:Body", "deployResponse", "result", "done", "id", "state"]
    assert "<soapenv:Body>" in reply


def test_a_reply_without_results_is_a_response_all_the_same() -> None:
    reply = soap.write_results("listMetadata", [])
    assert b"<soapenv:Body><listMetadataResponse/></soapenv:Body>" in reply
    assert soap.read_results(FileProperties, reply) == []


def test_a_reply_with_prefixes_everywhere_is_read() -> None:
    result = "<m:result><m:done>false</m:done><m:id>0Af</m:id></m:result>"
    reply = wsdl_call(f"<m:deployResponse xmlns:m='urn:m'>{result}</m:deployResponse>")
    assert soap.read_results(AsyncResult, reply) == [AsyncResult(done=False, id="0Af")]


def test_nil_elements_are_as_good_as_missing() -> None:
    nil = '<errorMessage xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>'
    result = f"<result>{nil}<id>1</id><status>Failed</status><done>true</done><success>false</success></result>"
    [found] = soap.read_results(DeployResult, jsforce_call(f"<r>{result}</r>"))
    assert found.error_message is None


@given(texts.filter(lambda text: "\n" not in text and "\r" not in text))
def test_a_fault_keeps_code_and_message(message: str) -> None:
    with pytest.raises(OrgFault) as raised:
        soap.read_results(AsyncResult, soap.write_fault("INVALID_TYPE", message))
    assert (raised.value.code, str(raised.value)) == ("INVALID_TYPE", f"INVALID_TYPE: {message}")


def test_a_fault_has_the_shape_that_clients_compare() -> None:
    fault = soap.write_fault("INVALID_TYPE", "Unknown type:X")
    assert b"<soapenv:Body><soapenv:Fault><faultcode>sf:INVALID_TYPE</faultcode>" in fault
    assert b"<faultstring>INVALID_TYPE: Unknown type:X</faultstring>" in fault


def test_what_follows_a_faults_first_line_is_advice() -> None:
    with pytest.raises(OrgFault) as raised:
        soap.read_results(AsyncResult, soap.write_fault("SERVER_UNAVAILABLE", "held\nWait."))
    assert (str(raised.value), raised.value.actions) == ("SERVER_UNAVAILABLE: held", ("Wait.",))


def test_a_fault_without_a_code_is_a_fault() -> None:
    with pytest.raises(OrgFault, match="UNKNOWN_EXCEPTION: "):
        soap.read_results(AsyncResult, jsforce_call("<Fault/>"))


def test_the_zip_never_reaches_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SOAP_BYTES", 2_000)
    zip_file = bytes(100_000)
    assert sent(soap.deploy_call(zip_file, DeployOptions())).zip_file == zip_file


@pytest.mark.parametrize("operation", ["<deploy/>", "<deploy><ZipFile>not base64!</ZipFile></deploy>"])
def test_a_deploy_call_without_a_zip_is_unreadable(operation: str) -> None:
    with pytest.raises(MessageUnreadable, match="deploy has no ZipFile"):
        soap.read_deploy(soap.read_call(jsforce_call(operation)))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "well-formed"),
        (b"<a/>", "not a SOAP envelope"),
        (b"<Envelope/>", "not a SOAP envelope"),
        (b"<Envelope><Body/></Envelope>", "the SOAP body is empty"),
        (b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>' + jsforce_call("<x>&b;</x>")[38:], "DOCTYPE"),
        (jsforce_call("<x>&b;</x>"), "well-formed"),
        (jsforce_call("<x/>")[:-5], "well-formed"),
        (jsforce_call("<deploy><ZipFile>AAA</ZipFile></deploy>"), "not valid base64"),
        (jsforce_call("<x>" * 70 + "</x>" * 70), "levels deep"),
        (b"\xff\xfe<\x00a\x00/\x00>\x00", "UTF-16"),
    ],
)
def test_a_message_that_is_not_a_call_is_unreadable(data: bytes, reason: str) -> None:
    with pytest.raises(MessageUnreadable, match=reason):
        soap.read_call(data)


def test_an_empty_reply_is_unreadable() -> None:
    with pytest.raises(MessageUnreadable, match="the SOAP reply is empty"):
        soap.read_results(AsyncResult, jsforce_call(""))


damaged = st.builds(
    lambda data, start, length, put: data[:start] + put + data[start + length :],
    st.sampled_from(
        [
            soap.write_results("checkDeployStatus", [DeployResult("0Af", "Failed", done=True, success=False)]),
            soap.write_results("r", [RetrieveResult("09S", "Succeeded", done=True, success=True, zip_file=ZIP)]),
            soap.write_call(soap.deploy_call(ZIP, DeployOptions()), session="S", client="c"),
            soap.write_call(soap.retrieve_call(MANIFEST, "66.0"), session="S", client="c"),
        ]
    ),
    st.integers(0, 900),
    st.integers(0, 40),
    st.binary(max_size=8),
)


@given(st.binary() | damaged)
def test_any_bytes_lead_to_results_or_to_an_error_of_the_org(data: bytes) -> None:
    for kind in (DeployResult, RetrieveResult):
        with suppress(OrgError):
            soap.read_results(kind, data)


@given(st.binary() | damaged)
def test_any_bytes_lead_to_a_call_or_are_unreadable(data: bytes) -> None:
    with suppress(MessageUnreadable, OrgFault):
        call = soap.read_call(data)
        soap.read_deploy(call) if call.name == "deploy" else soap.read_retrieve(call)


@pytest.mark.parametrize(("text", "only"), [("True", True), ("1", True), ("FALSE", False)])
def test_options_are_read_in_any_case(text: str, *, only: bool) -> None:
    sent = f"<deploy><ZipFile>AAAA</ZipFile><DeployOptions><checkOnly>{text}</checkOnly></DeployOptions></deploy>"
    assert soap.read_deploy(soap.read_call(jsforce_call(sent)))[1].check_only is only


@pytest.mark.parametrize(("text", "single"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_a_single_package_is_asked_for_in_either_spelling(text: str, *, single: bool) -> None:
    request = f"<request><singlePackage>{text}</singlePackage><unpackaged/></request>"
    assert soap.read_retrieve(soap.read_call(jsforce_call(f"<retrieve>{request}</retrieve>")))[1] is single


@pytest.mark.parametrize("number", [1, 2_000])
def test_a_streamed_reply_is_the_same_as_one_that_is_written_at_once(number: int) -> None:
    listed = [FileProperties("T", f"A{index}", f"t/A{index}.t <&>") for index in range(number)]
    pieces = list(soap.stream_results("listMetadata", iter(listed)))
    assert b"".join(pieces) == soap.write_results("listMetadata", listed)
    assert max(map(len, pieces)) < 2 * limits.PIECE_BYTES
    assert len(pieces) > number // 1_000


def test_a_streamed_reply_without_results_is_read() -> None:
    assert soap.read_results(FileProperties, b"".join(soap.stream_results("listMetadata", ()))) == []
