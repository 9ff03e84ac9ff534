"""Every reader of what strangers send, with samples of what it reads and the words that these are made of."""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from agent_script.scripts import EVERYTHING
from evalmeta.engine.references import TooManyMatches, resolve
from evalmeta.errors import EvalmetaError
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.testing_center_csv import read_testing_center_csv, write_testing_center_csv
from evalmeta.formats.testspec import read_testspec
from evalmeta.formats.testspec_writer import write_testspec
from evalmeta.model.generated_data import Action, GeneratedData, invoked_actions, reference_root
from evalmeta.model.jsonpath import ReferenceSyntax
from evalmeta.model.jsonpath_parser import parse_reference
from evalmeta.model.registry import EVALUATION_DEFINITION, Manifest, ManifestTypes
from evalmeta.model.run import CaseResult, Run, RunStatus, TestResult, Verdict
from evalmeta.model.tally import summarise
from evalmeta.package.archive import build_zip, read_zip
from evalmeta.protocol import soap
from evalmeta.protocol.connect import read_run, write_run
from evalmeta.protocol.json_fields import object_at, read_object
from evalmeta.protocol.metadata_api import (
    AsyncResult,
    DeployDetails,
    DeployMessage,
    DeployOptions,
    DeployResult,
    DescribeResult,
    FileProperties,
    MetadataObject,
    RetrieveResult,
)
from evalmeta.protocol.runs import read_options
from evalmeta.report import FORMATS, render
from evalmeta.report.report import Report
from evalmeta.systems.run_eval.payloads import read_payload, write_run_eval
from evalmeta.validation.script_rules import check_script
from evalmeta.validation.validator import validate_component, validate_manifest
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.formatter import format_definition, format_manifest
from evalmeta.xmlio.reader import read_xml
from formats.specs import OWN_SPEC, SPEC, STUDIO_SPEC
from fuzz.mutations import mutated
from package.handmade import Entry, zip_of
from protocol.envelopes import jsforce_call, wsdl_call
from systems.run_eval.payloads import SESSION, STATE, evaluator, message, payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["TARGETS", "Target"]

SAMPLES = Path(__file__).parent.parent.parent / "metadata-samples"


@dataclass(frozen=True, slots=True)
class Target:
    """A reader: `feed` gives it bytes and lets pass nothing but errors that it does not promise."""

    feed: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]
    token: re.Pattern[bytes]

    def input(self, number: int) -> bytes:
        """Gives the input of that number, always the same bytes."""
        return mutated(self.seeds, self.words, self.token, number)


def _read_definition(data: bytes) -> None:
    validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D")
    with suppress(EvalmetaError):
        read_definition(read_xml(data, label="d"))
        format_definition(data, label="d")


def _read_manifest(data: bytes) -> None:
    validate_manifest(data, label="m", destructive=True)
    manifest, _ = validate_manifest(data, label="m")
    if manifest is not None:
        format_manifest(data, label="m")


def _read_call(data: bytes) -> None:
    with suppress(EvalmetaError):
        call = soap.read_call(data)
        soap.read_deploy(call) if call.name == "deploy" else soap.read_retrieve(call)


def _read_reply(data: bytes) -> None:
    for kind in (AsyncResult, DeployResult, DescribeResult, FileProperties, RetrieveResult):
        with suppress(EvalmetaError):
            soap.read_results(kind, data)


def _read_zip(data: bytes) -> None:
    with suppress(EvalmetaError):
        read_zip(data)


def _follow_reference(data: bytes) -> None:
    with suppress(ReferenceSyntax, TooManyMatches):
        for value in resolve(parse_reference(data.decode("utf-8", "replace")), _ROOT):
            orjson.dumps(value)


def _read_results(data: bytes) -> None:
    with suppress(EvalmetaError):
        run = read_run(read_object(data))
        write_run(run, escape=True)
        for name in FORMATS:
            render(name, [Report(run, summarise(run.cases, run.options))])


def _read_request(data: bytes) -> None:
    with suppress(EvalmetaError):
        read_options(object_at(read_object(data), "runOptions"))


def _read_spec(data: bytes) -> None:
    with suppress(EvalmetaError):
        definition = read_testspec(data, label="s")
        read_testspec(write_testspec(definition).content, label="s")


def _read_script(data: bytes) -> None:
    check_script(data, label="s", severity_of=lambda found: found.orgs)


def _read_payload(data: bytes) -> None:
    for is_raw in (False, True):
        with suppress(EvalmetaError):
            document = read_payload(data, label="p", name="P", is_raw=is_raw).document
            definition, _ = definition_of(document, subject_name="S", is_metadata=True)
            read_payload(write_run_eval(definition).content, label="p", name="P")


def _read_table(data: bytes) -> None:
    with suppress(EvalmetaError):
        definition = read_testing_center_csv(data, label="t", name="T", subject_name="S")
        read_testing_center_csv(write_testing_center_csv(definition).content, label="t", name="T", subject_name="S")


_LONGEST_WORD = 60
_XML_WORDS = (
    *(b"<!DOCTYPE a>", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?x ", b"?>", b"&#0;", b"&#x41;", b"&amp;", b"&e;"),
    *(
        b'<?xml version="1.0" encoding="utf-16"?>',
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\x00",
        b"\xed\xa0\x80",
        b"<a>",
        b"</",
    ),
    *(b' xmlns="urn:x"', b' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="a"', b' a="b"', b"/>"),
)
_CALL = (
    Action("Find", {"id": 7, "days": ["Mo", "Tu"]}, {"result": "ok", "more": [{"value": 1.5}]}, 120.0),
    Action("Send"),
)
_ANSWER = GeneratedData("It is sunny.", "Weather", _CALL, 250.0, "S-1")
_ROOT = reference_root(replace(_ANSWER, outcome="[" * 500 + "]" * 500, topic='[{"a": "[1, 2]"}]'))
_RESULT = TestResult(
    "bot_response_rating", Verdict.FAILURE, "rain", "sun", 1.5, "numbers differ", label="L", detail=0.5, rater="rules"
)
_CASE = CaseResult(1, 1, "What's up?", Verdict.FAILURE, 1e9, 1e9 + 1, (_RESULT,), _ANSWER)
_RUN = Run("4KB1", "Desk", "Desk", RunStatus.COMPLETED, 1e9, 2, "v1", 1e9 + 2, None, cases=(_CASE, _CASE))
_MANIFEST = Manifest((ManifestTypes("AiEvaluationDefinition", ("A", "*")),), "64.0")
_ZIP = build_zip([("package.xml", b"<Package/>"), ("a/b.xml", b"text " * 20)])
_MESSAGE = DeployMessage("T", "A", "A.xml", success=False, line_number=3, column_number=1, problem="no")
_DEPLOYED = DeployResult("0Af", "Failed", done=True, success=False, details=DeployDetails((_MESSAGE,), (_MESSAGE,)))
_FILE = FileProperties("T", "A", "ts/A.t", created_date="2026-11-20T15:08:45.000Z")

_DEFINITIONS = tuple(
    path.read_bytes()
    for pattern in ("aiEvaluationDefinitions/*", "invalid/*.aiEvaluationDefinition")
    for path in sorted(SAMPLES.glob(pattern))
)
_MANIFESTS = tuple(path.read_bytes() for path in sorted(SAMPLES.rglob("*.xml")) if path.name.startswith(("p", "d")))
_ENCODED = base64.b64encode(_ZIP).decode()
_CALLS = (
    soap.write_call(soap.deploy_call(_ZIP, DeployOptions()), session="S", client="c"),
    soap.write_call(soap.retrieve_call(_MANIFEST, "66.0"), session="S", client="c"),
    jsforce_call(
        f"<deploy><ZipFile>{_ENCODED}</ZipFile><deployOptions><checkOnly>1</checkOnly></deployOptions></deploy>"
    ),
    wsdl_call("<met:retrieve><met:request><met:unpackaged><met:types/></met:unpackaged></met:request></met:retrieve>"),
)
_REPLIES = (
    soap.write_results("deploy", [AsyncResult(done=False, id="0Af")]),
    soap.write_results("checkDeployStatus", [_DEPLOYED]),
    soap.write_results("listMetadata", [_FILE, _FILE]),
    soap.write_results("describeMetadata", [DescribeResult((MetadataObject("ts", "T", "t"),))]),
    soap.write_results(
        "checkRetrieveStatus",
        [RetrieveResult("09S", "Succeeded", done=True, success=True, file_properties=(_FILE,), zip_file=_ZIP)],
    ),
    soap.write_fault("INVALID_TYPE", "Unknown type:X\nDo this."),
)
_ZIPS = (
    _ZIP,
    zip_of(Entry(b"a/", b"", mode=0o40755), Entry(b"a/b", b"text " * 30, method=8), comment=b"hello"),
    zip_of(Entry(b"\x81", flags=0x0008, local_sums=(0, 0, 0)), Entry(b"b", b"", method=8)),
    build_zip([]),
)
_REFERENCES = (
    b"$.generatedData.invokedActions[*][?(@.function.name == 'Find')].function.input.days[0]",
    b"$.generatedData['outcome','topic']",
    b"$.generatedData.outcome[0]",
    b"$.generatedData.topic[0].a[-1]",
    b"$.generatedData.invokedActions[0][-1].executionLatency",
    b"$.generatedData.invokedActions[0][?(@.function.output.more[0].value >= 1.5 && !@.x || @.y == null)]",
    b"$.generatedData.actionsSequence[1:2:1]",
)
_RESULTS = (
    *(orjson.dumps(write_run(_RUN, escape=escape)) for escape in (True, False)),
    orjson.dumps({"status": 0, "result": {"status": "COMPLETED", "testCases": [{"generatedData": {"outcome": "x"}}]}}),
    orjson.dumps({"testCases": [{"generatedData": {"invokedActions": invoked_actions(_ANSWER.actions or ())}}]}),
)
_REQUESTS = (
    b'{"aiEvaluationDefinitionName": "D", "runOptions": {"iterations": 2, "minPassRate": 0.5, "undecided": "fail"}}',
)
_JSON_WORDS = (
    *(b"null", b"true", b"-0.0", b"1e400", b"1e-400", b"18446744073709551616", b'""', b"[]", b"{}", b'[["a"], 1]'),
    *(b"[" * 300 + b"]" * 300, b"[" * 1_000 + b"]" * 1_000, b'{"a":' * 300 + b"1" + b"}" * 300, b"[", b"}", b'"', b","),
    *(
        b'"9999-12-31T23:59:59.9999999Z"',
        b'"0001-01-01T00:00:00+23:59"',
        b'"\\ud800"',
        b'"\\u0000"',
        b'"&quot;&#x110000;"',
    ),
)
_ZIP_WORDS = (
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"PK\x05\x06",
    b"PK\x07\x08",
    b"\xff\xff\xff\xff",
    b"\x00\x00",
    b"../",
    b"\x08\x00",
)
_PATH_WORDS = (
    *(b"$", b".", b"..", b"[", b"]", b"(", b")", b"?(", b"@", b"*", b"'", b'"', b"\\", b",", b":", b"-", b"=~", b"=="),
    *(
        b"!=",
        b"<",
        b">=",
        b"&&",
        b"||",
        b"!",
        b"|",
        b"`len`",
        b"`sub(/a/, b)`",
        b" where ",
        b"null",
        b"true",
        b"/",
        b"+",
        b"1e9",
    ),
)


_SPECS = (
    *(path.read_bytes() for path in sorted(SAMPLES.rglob("specs/*.yaml"))),
    *(text.encode() for text in (SPEC, STUDIO_SPEC, OWN_SPEC)),
)
_TABLES = (
    *(path.read_bytes() for path in sorted(SAMPLES.rglob("specs/*.csv"))),
    b'Conversation History;Utterance\n"[{""role"": ""user"", ""message"": ""Hi"", ""index"": 0}]";And?\n',
)
_YAML_WORDS = (
    *(
        b"- ",
        b": ",
        b"? ",
        b"&a ",
        b"*a",
        b"!!str ",
        b"!!python/name:os ",
        b"|-\n",
        b">\n",
        b"---\n",
        b"...\n",
        b"<<: ",
    ),
    *(b"[", b"]", b"{", b"}", b"'", b'"', b"\t", b"# ", b"%YAML 1.1\n", b"~", b"007", b"1e9", b'"\\ud800"', b'"\\0"'),
    *(b"[" * 100, b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"\x00", b"\n  "),
)
_TABLE_WORDS = (
    *(b",", b";", b"\t", b'"', b'""', b"\r", b"\n", b"\x00", b"[[", b"NaN", b"\\ud800", b"1" * 5_000),
    b"[" * 2_000,
)

_SCRIPT_WORDS = (
    *(b"{!", b"}", b"(", b")", b"[", b"{", b'"', b"'", b"|", b"->", b"...", b"@", b".", b",", b"=", b"==", b":", b"- "),
    *(
        b"#",
        b"\\",
        b"if ",
        b"else ",
        b"else:",
        b"elif ",
        b"not ",
        b"is ",
        b"run ",
        b"set ",
        b"with ",
        b"to ",
        b"collect ",
    ),
    *(b"transition to ", b"available when ", b"\n", b"\n  ", b"\n" + b" " * 40, b"\t", b"\r", b"\x00", b"\xff"),
    *(b"1" * 5_000, b"(" * 5_000, b"a." * 5_000, b"{!" * 2_000, b"not " * 2_000, b"\n(" * 500),
    *(b"if a:\n" * 500, b"else if a:\n" * 500),
)
_XML = re.compile(rb"<[^<>]*>|[^<>]+")
_JSON_VALUES = re.compile(rb'(?<=[:,\[])(?:"(?:[^"\\]|\\.)*"|[\w.+-]+)(?=[,}\]])')
_YAML = re.compile(rb"\n *|[^\n:]+|:")
_SCRIPT = re.compile(rb"\n *|[\w.@]+|[^\w\n]")
_TABLE = re.compile(rb'[^",;\n]+|.|\n')
_PATH = re.compile(rb"'[^']*'|\w+|.")
_BYTES = re.compile(rb"PK..|.", re.DOTALL)


def _target(
    feed: Callable[[bytes], None], seeds: tuple[bytes, ...], words: Iterable[bytes], token: re.Pattern[bytes]
) -> Target:
    found = {word for seed in seeds for word in token.findall(seed) if len(word) <= _LONGEST_WORD}
    return Target(feed, seeds, tuple(sorted({*words, *found})), token)


_LAST_RUN = "{gs.response.planner_response.lastExecution.%s}"
_PAYLOADS = (
    payload(
        SESSION,
        message("Where is it?"),
        STATE,
        evaluator("planner_topic_assertion", id="topic", actual=_LAST_RUN % "topic", expected="Orders"),
        evaluator("planner_actions_assertion", id="actions", actual=_LAST_RUN % "invokedActions", expected=["Find"]),
        evaluator("json_assertion", id="json", json_path="$.id", expected=7),
    ),
    payload(
        {**SESSION, "context_variables": [{"name": "a", "value": 1}]},
        message("Hi", "m1"),
        message("Where?"),
        evaluator("bot_response_rating", id="rating", expected="Here.", threshold=3, actual="$.outputs[1].response"),
        evaluator("text_alignment", id="near", generated_output="$.outputs[?(@.id == 'sm')].response"),
        evaluator("numeric_assertion", id="number", actual="$.generatedData.outcome", expected=3),
    ),
)
TARGETS = {
    "definition": _target(_read_definition, _DEFINITIONS, _XML_WORDS, _XML),
    "manifest": _target(_read_manifest, _MANIFESTS, _XML_WORDS, _XML),
    "SOAP call": _target(_read_call, _CALLS, _XML_WORDS, _XML),
    "SOAP reply": _target(_read_reply, _REPLIES, _XML_WORDS, _XML),
    "zip": _target(_read_zip, _ZIPS, _ZIP_WORDS, _BYTES),
    "reference": _target(_follow_reference, _REFERENCES, _PATH_WORDS, _PATH),
    "results": _target(_read_results, _RESULTS, _JSON_WORDS, _JSON_VALUES),
    "test spec": _target(_read_spec, _SPECS, _YAML_WORDS, _YAML),
    "Agent Script": _target(_read_script, (EVERYTHING.encode(),), _SCRIPT_WORDS, _SCRIPT),
    "run-eval": _target(_read_payload, _PAYLOADS, _JSON_WORDS, _JSON_VALUES),
    "table": _target(_read_table, _TABLES, _TABLE_WORDS, _TABLE),
    "run request": _target(_read_request, _REQUESTS, _JSON_WORDS, _JSON_VALUES),
}
