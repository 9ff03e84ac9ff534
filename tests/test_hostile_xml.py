"""Hostile documents at every entrance: each is refused with one complaint, and nothing that it points to is touched."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

import evalmeta
from client.servers import TOKEN, replying
from evalmeta.cli.main import main
from evalmeta.client.connection import Connection
from evalmeta.client.metadata import deploy, describe
from evalmeta.errors import MessageUnreadable, OrgFault
from evalmeta.model.registry import NEWEST_API_VERSION
from evalmeta.org.app import embedded_org
from evalmeta.package.archive import build_zip
from evalmeta.package.project import find_project
from evalmeta.protocol.metadata_api import AsyncResult, DescribeResult, RetrieveResult
from evalmeta.protocol.soap import read_results, write_results
from evalmeta.xmlio.reader import NAMESPACE
from hostile_xml import HOSTILE, SECRET, Bait, Hostile, hostile, laid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

FILE = Path("force-app/Hostile.aiEvaluationDefinition-meta.xml")
OTHER = next((Path(__file__).parent.parent / "metadata-samples/dx-project").rglob("Outage_Desk*"))
MANIFEST = Path("manifest/package.xml")
DEFINITION = (
    f'<AiEvaluationDefinition xmlns="{NAMESPACE}"><description>{{here}}</description><name>Hostile</name>'
    "<subjectName>Desk</subjectName><subjectType>AGENT</subjectType><testCase><number>1</number>"
    "<inputs><utterance>Hi</utterance></inputs><expectation><name>topic_assertion</name>"
    "<expectedValue>Orders</expectedValue></expectation></testCase></AiEvaluationDefinition>"
)
TYPES = "<types><members>*</members><name>AiEvaluationDefinition</name></types>"
PACKAGE = f'<Package xmlns="{NAMESPACE}"><description>{{here}}</description>{TYPES}<version>64.0</version></Package>'
DELETION = PACKAGE.replace("*", "Old")
HEADER = f'<Header xmlns="{NAMESPACE}"><SessionHeader><sessionId>{{token}}</sessionId></SessionHeader></Header>'
SOAP = '<Envelope xmlns="http://schemas.xmlsoap.org/soap/envelope/">{header}<Body>{body}</Body></Envelope>'
CALL = SOAP.format(
    header=HEADER, body="<describeMetadata><asOfVersion>66.0</asOfVersion><x>{{here}}</x></describeMetadata>"
)
REPLY = SOAP.format(
    header="",
    body="<r><result><metadataObjects><directoryName>{here}</directoryName><suffix>s</suffix><xmlName>n</xmlName>"
    "</metadataObjects></result></r>",
)
REASON = re.compile(r"xml-(doctype|encoding|malformed|too-deep|too-large)|more than 200 times its size")
COMMANDS = {
    "validate": (FILE, DEFINITION, f"validate {FILE}"),
    "format": (FILE, DEFINITION, f"format {FILE}"),
    "diff": (FILE, DEFINITION, f"diff {OTHER} {FILE}"),
    "deploy": (FILE, DEFINITION, "deploy"),
    "deploy --source-dir": (FILE, DEFINITION, f"deploy --source-dir {FILE}"),
    "validate a manifest": (MANIFEST, PACKAGE, f"validate {MANIFEST}"),
    "format a manifest": (MANIFEST, PACKAGE, f"format {MANIFEST}"),
    "validate --manifest": (MANIFEST, PACKAGE, f"validate --manifest {MANIFEST}"),
    "deploy --manifest": (MANIFEST, PACKAGE, f"deploy --manifest {MANIFEST}"),
    "retrieve --manifest": (MANIFEST, PACKAGE, f"retrieve --manifest {MANIFEST}"),
    "convert --manifest": (MANIFEST, PACKAGE, f"convert source --manifest {MANIFEST}"),
    "package build": (MANIFEST, PACKAGE, f"package build --manifest {MANIFEST}"),
    "deletion": (Path("old.xml"), DELETION, f"package build -x {MANIFEST} --pre-destructive-changes old.xml"),
}


@pytest.fixture(autouse=True)
def bait(tmp_path: Path, copy_samples: Callable[[str], Path]) -> Iterator[Bait]:
    """Lays bait beside a project; afterwards nothing in the project, its database included, has the canary's text."""
    project = copy_samples("dx-project")
    with laid(tmp_path) as made:
        yield made
    assert not [path for path in project.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def check(complaints: Mapping[str, list[str]], *, besides: AbstractSet[str] = frozenset()) -> None:
    assert complaints.keys() == HOSTILE.keys() - besides
    for name, told in complaints.items():
        assert [bool(REASON.search(each)) for each in told] == [True], (name, told)
        assert not re.search(rf"{SECRET}|Traceback|defect", told[0]), name


def run(capsys: pytest.CaptureFixture[str], command: str) -> list[str]:
    """Runs a command and gives what it complains about."""
    with pytest.raises(SystemExit) as left:
        main([*command.split(), "--json"])
    out, err = capsys.readouterr()
    assert not re.search(rf"{SECRET}|Traceback", out + err)
    envelope = json.loads(out)
    problems = envelope["data"] if "data" in envelope else envelope["result"].get("problems", [])
    assert bool(left.value.code) is bool(problems)
    return [f"{problem['code']}: {problem['message']}" for problem in problems]


async def deployed(files: Mapping[str, bytes]) -> list[str]:
    """Sends a zip to the embedded org, past every check of the client, and gives what the org complains about."""
    async with evalmeta.connect(find_project(Path.cwd())) as connection:
        result = await deploy(connection, build_zip(files.items()))
    told = [failure.problem or "" for failure in result.details.component_failures]
    return [*told, result.error_message] if result.error_message else told


async def called(body: bytes) -> list[str]:
    """Posts a SOAP body to the embedded org over ASGI and gives its complaint."""
    async with embedded_org(find_project(Path.cwd())) as (app, token):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://org.invalid") as http:
            reply = await http.post("/services/Soap/m/66.0", content=body.replace(b"{token}", token.encode()))
    try:
        read_results(DescribeResult, reply.content)
    except OrgFault as fault:
        return [str(fault)]
    return []


async def told_by(reply: bytes) -> list[str]:
    """Asks a server on loopback that answers with these bytes, and gives the client's complaint."""
    async with replying(reply) as url, Connection(url=url, token=TOKEN, api_version=NEWEST_API_VERSION) as connection:
        try:
            await describe(connection)
        except MessageUnreadable as error:
            return [str(error)]
    return []


PATH = "aiEvaluationDefinitions/Hostile.aiEvaluationDefinition"
GOOD_PACKAGE = PACKAGE.replace("{here}", "").encode()
SENT = {
    "zip member": (DEFINITION, lambda data: deployed({"package.xml": GOOD_PACKAGE, PATH: data})),
    "package.xml in a zip": (PACKAGE, lambda data: deployed({"package.xml": data})),
    "SOAP body": (CALL, called),
    "SOAP reply": (REPLY, told_by),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_hostile_file_is_refused_by_every_command(
    command: str, bait: Bait, capsys: pytest.CaptureFixture[str]
) -> None:
    path, good, words = COMMANDS[command]
    complaints = {}
    for name, kind in HOSTILE.items():
        path.write_bytes(hostile(kind, good, bait))
        complaints[name] = run(capsys, words)
    check(complaints)


@pytest.mark.slow
@pytest.mark.parametrize("entrance", SENT)
def test_a_hostile_message_is_refused_on_every_way(entrance: str, bait: Bait) -> None:
    good, send = SENT[entrance]
    # Replies may be larger than whatever else is read.
    welcome = {"too large"} if entrance == "SOAP reply" else set()
    complaints = {name: asyncio.run(send(hostile(kind, good, bait))) for name, kind in HOSTILE.items()}
    assert {name for name, told in complaints.items() if not told} == welcome
    check({name: told for name, told in complaints.items() if told}, besides=welcome)


def test_there_are_enough_documents_and_entrances() -> None:
    assert len(HOSTILE) >= 25
    assert len(HOSTILE) * (len(COMMANDS) + len(SENT)) >= 150


@pytest.mark.parametrize("command", COMMANDS)
def test_without_what_makes_them_hostile_files_are_accepted(
    command: str, bait: Bait, capsys: pytest.CaptureFixture[str]
) -> None:
    path, good, words = COMMANDS[command]
    path.write_bytes(hostile(Hostile(inside="x"), good, bait))
    assert run(capsys, words) == []


@pytest.mark.parametrize("entrance", SENT)
def test_without_what_makes_them_hostile_messages_are_accepted(entrance: str, bait: Bait) -> None:
    good, send = SENT[entrance]
    assert asyncio.run(send(hostile(Hostile(inside="x"), good, bait))) == []


def small(bait: Bait) -> Iterator[bytes]:
    return (hostile(kind, DEFINITION, bait) for name, kind in HOSTILE.items() if name != "too large")


@pytest.mark.slow
def test_what_a_hostile_org_sends_is_written_and_never_read(bait: Bait) -> None:
    async def retrieved(data: bytes) -> None:
        zip_file = build_zip({f"unpackaged/{PATH}": data, "unpackaged/package.xml": data}.items())
        found = RetrieveResult("09S", "Succeeded", done=True, success=True, zip_file=zip_file)
        receipt = write_results("retrieve", [AsyncResult(done=False, id="09S")])
        async with (
            replying(receipt, write_results("checkRetrieveStatus", [found])) as url,
            Connection(url=url, token=TOKEN, api_version=NEWEST_API_VERSION) as connection,
        ):
            await evalmeta.retrieve(connection, find_project(Path.cwd()), ignore_conflicts=True)

    for data in small(bait):
        asyncio.run(retrieved(data))
        [written] = Path("force-app").rglob("Hostile*")
        assert written.read_bytes() == data


def test_a_conversion_copies_hostile_bytes_and_never_reads_them(bait: Bait, capsys: pytest.CaptureFixture[str]) -> None:
    for data in small(bait):
        FILE.write_bytes(data)
        assert run(capsys, "convert source --output-dir out --force") == []
        assert (Path("out") / PATH).read_bytes() == data


READ_ALL = """
import resource, sys
from contextlib import suppress
from pathlib import Path
from evalmeta.errors import EvalmetaError
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.validator import validate_manifest
from evalmeta.validation.validator import validate_component
from evalmeta.protocol.metadata_api import AsyncResult
from evalmeta.protocol.soap import read_call, read_results

def read(data):
    validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D")
    validate_manifest(data, label="m")
    for reader in (read_call, lambda data: read_results(AsyncResult, data)):
        with suppress(EvalmetaError):
            reader(data)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1_000_000 if sys.platform == "darwin" else 1_000)

read(Path(sys.argv[1]).read_bytes())
before = peak()
for path in Path(sys.argv[2]).iterdir():
    read(path.read_bytes())
print(peak() - before)
"""


def test_reading_everything_hostile_takes_little_memory(bait: Bait, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    for number, good in enumerate((DEFINITION, PACKAGE, CALL)):
        for name, kind in HOSTILE.items():
            (folder / f"{number} {name}").write_bytes(hostile(kind, good, bait))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", READ_ALL, str(OTHER), str(folder)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert 0 <= int(child.stdout) <= 50
