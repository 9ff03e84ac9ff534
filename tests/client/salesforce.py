"""An org on loopback that speaks as Salesforce documents, and was seen to, and no more; what it says is scripted."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import orjson

from client.servers import http_reply, listening
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION
from evalmeta.package.archive import build_zip
from evalmeta.protocol.metadata_api import AsyncResult, FileProperties, RetrieveResult
from evalmeta.protocol.soap import read_call, write_results

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["RETRY", "STARTED", "Salesforce", "Scene", "case", "done", "result", "salesforce", "studio_case"]

STARTED = "2026-11-20T15:08:45.000Z"
ENDED = "2026-11-20T15:08:50.000Z"
RETRY = (500, [{"errorCode": "UNKNOWN_EXCEPTION", "message": "The specified enum type has no constant named: RETRY"}])
NO_RESULTS = (404, [{"errorCode": "NOT_FOUND", "message": "no results yet"}])

Reply = dict[str, object] | tuple[int, list[dict[str, str]]]


class Scene(NamedTuple):
    """What the org says of a run at one time: its status, and its results; a tuple is an error."""

    status: str | Reply
    results: Reply = NO_RESULTS


def result(verdict: str | None = "PASS", **fields: object) -> dict[str, object]:
    """Return one result of a case."""
    return {
        "name": "topic_assertion",
        "actualValue": "Orders",
        "expectedValue": "Orders",
        "score": 1,
        "result": verdict,
        "metricLabel": "topic_assertion",
        "metricExplainability": "",
        "status": "COMPLETED",
        "startTime": STARTED,
        "endTime": ENDED,
        "errorCode": None,
        "errorMessage": None,
        **fields,
    }


def case(number: int, *results: dict[str, object], status: str = "COMPLETED", **fields: object) -> dict[str, object]:
    """Return one case as Testing Center sends it: lists and JSON in text, HTML-escaped."""
    data = {
        "actionsSequence": "[&#39;Find&#39;]",
        "invokedActions": '[[{"function":{"name":"Find"},"executionLatency":12}]]'.replace('"', "&quot;"),
        "outcome": "It&#39;s on its way.",
        "sessionId": "019a",
        "topic": "Orders",
    }
    return {
        "status": status,
        "testNumber": number,
        "startTime": STARTED,
        "endTime": ENDED,
        "inputs": {"utterance": "Where&#39;s it?"},
        "generatedData": data,
        "testResults": list(results) or [result()],
        **fields,
    }


def studio_case(number: int, status: str = "PASS") -> dict[str, object]:
    """Return one case as Agentforce Studio sends it."""
    scored = orjson.dumps({"status": status, "score": 92, "actualValue": "a", "expectedValue": "b"}).decode()
    return {
        "testNumber": number,
        "subjectResponse": "{&quot;userInput&quot;:&quot;Hi&quot;,&quot;response&quot;:&quot;Hello&quot;}",
        "testScorerResults": [{"scorerName": "factuality", "scorerResponse": scored.replace('"', "&quot;")}],
    }


def done(*cases: dict[str, object], status: str = "COMPLETED", **fields: object) -> dict[str, object]:
    """Return a results object."""
    return {
        "status": status,
        "startTime": STARTED,
        "endTime": ENDED,
        "errorMessage": None,
        "subjectName": "Orders",
        "testCases": list(cases),
        **fields,
    }


class Salesforce:
    """The org: what it says, and what it was asked.

    Args:
        scripts: each run that is started goes through the next one, the last one again and
            again. Every question for the status goes on to the next scene; the last one stays.
        definition: the one definition that it has.
        content: the definition's file; None refuses to return it.
        versions: the agent's versions, as SOQL returns them.
        instead: replies to requests that contain a text.
        modified: when the definition was deployed.
        others: the names of further definitions, which are only listed.

    Attributes:
        url: its address.
        starts: the bodies of the requests that started runs.
        canceled: the ids of the runs that were canceled.
        questions: how many requests there were.
    """

    def __init__(
        self,
        scripts: Sequence[Sequence[Scene]],
        definition: str,
        content: bytes | None = None,
        versions: Sequence[dict[str, object]] = (),
        instead: Mapping[bytes, bytes] | None = None,
        modified: str = "",
        others: Sequence[str] = (),
    ) -> None:
        self.url = ""
        self.starts: list[object] = []
        self.canceled: list[str] = []
        self.questions = 0
        self._scripts = scripts
        self._definition = definition
        self._content = content
        self._versions = versions
        self._instead = instead or {}
        self._modified = modified
        self._others = others
        self._scenes: dict[str, list[Scene]] = {}

    def deploy_again(self, modified: str) -> None:
        """Change the date of all definitions."""
        self._modified = modified

    def answer(self, request: bytes) -> bytes:
        """Answer a request."""
        self.questions += 1
        return next((reply for part, reply in self._instead.items() if part in request), b"") or self._answer(request)

    def _answer(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        path = head.split()[1].decode()
        if run := re.search(r"/runs/(\w+)/?(\w*)$", path):
            return self._say(run[1], run[2])
        if path.endswith("/runs"):
            return self._start("3A2" if "ai-testing" in path else "4KB", body)
        if "/query?" in path:
            agent = {"DeveloperName": "Agent", "BotVersions": {"records": list(self._versions)}}
            return _json(200, {"totalSize": 1, "done": True, "records": [agent]})
        if path.endswith("/services/data"):
            return _json(200, [{"label": "Spring '26", "url": "/services/data/v66.0", "version": "66.0"}])
        if (call := read_call(body)).name in {"retrieve", "checkRetrieveStatus"}:
            return http_reply(200, self._retrieve(call.name))
        return http_reply(200, self._list(body))

    def _start(self, prefix: str, body: bytes) -> bytes:
        self.starts.append(orjson.loads(body))
        number = len(self.starts)
        script = self._scripts[min(number, len(self._scripts)) - 1]
        run_id = f"{prefix}5e{number:010d}AAA"
        self._scenes[run_id] = [script[0], *script]
        return _json(201, {"runId": run_id, "status": "NEW"})

    def _say(self, run_id: str, what: str) -> bytes:
        scenes = self._scenes.get(run_id)
        if scenes is None:
            return _json(404, [{"errorCode": "NOT_FOUND", "message": f"Run not found: {run_id}"}])
        if what == "cancel":
            self.canceled.append(run_id)
            scenes[:] = [Scene("TERMINATED", scenes[0].results)]
            return _json(200, {"success": True})
        if what != "results" and len(scenes) > 1:
            scenes.pop(0)
        told = scenes[0].results if what == "results" else scenes[0].status
        if isinstance(told, str):
            told = {"status": told, "startTime": STARTED, "endTime": None, "errorMessage": None}
        return _json(*told) if isinstance(told, tuple) else _json(200, told)

    def _retrieve(self, call: str) -> bytes:
        if call == "retrieve":
            return write_results(call, [AsyncResult(done=False, id="09S000000000001EAA")])
        kind = TESTING_DEFINITION if self._definition == "Visits" else EVALUATION_DEFINITION
        name = f"unpackaged/{kind.directory}/{self._definition}.{kind.suffix}"
        files = build_zip([] if self._content is None else [(name, self._content)])
        about = [FileProperties(kind.name, self._definition, name, last_modified_date=self._modified)]
        result = RetrieveResult("09S", "Succeeded", done=True, success=True, zip_file=files, file_properties=about)
        return write_results(call, [result])

    def _list(self, body: bytes) -> bytes:
        kind = "AiTestingDefinition" if self._definition == "Visits" else "AiEvaluationDefinition"
        names = (self._definition, *self._others) if kind.encode() in body else ()
        there = [FileProperties(kind, name, f"x/{name}", last_modified_date=self._modified) for name in names]
        return write_results(read_call(body).name, there)


@contextmanager
def salesforce(
    *scripts: Sequence[Scene],
    definition: str = "Orders",
    content: bytes | None = None,
    versions: Sequence[dict[str, object]] = (),
    instead: Mapping[bytes, bytes] | None = None,
    modified: str = "",
    others: Sequence[str] = (),
) -> Iterator[Salesforce]:
    """Listen on loopback and yield the org, which answers as `Salesforce` does."""
    org = Salesforce(scripts, definition, content, versions, instead, modified, others)
    with listening(org.answer) as server:
        org.url = server.url
        yield org


def _json(status: int, body: object) -> bytes:
    return http_reply(status, orjson.dumps(body), "Content-Type: application/json")
