"""Replies of any size are sent in pieces, and take no memory of their size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# Counts the bytes of a reply without keeping them, and by how many megabytes the process has grown.
SCRIPT = """\
import asyncio, resource, sys
from pathlib import Path
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, RunContent, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.org.app import create_app
from evalmeta.model.evaluation import Evaluation
from evalmeta.store.runs import Lease, RunJournal
from org.parts import definition, deploy, opened, package
from protocol.envelopes import jsforce_call

LIST = "<listMetadata><queries><type>AiEvaluationDefinition</type></queries></listMetadata>"

async def ask(app, method, path, body, token):
    size, given = 0, [{"type": "http.request", "body": body}]
    async def receive():
        return given.pop() if given else await asyncio.sleep(3600)
    async def send(message):
        nonlocal size
        size += len(message.get("body", b""))
        assert message.get("status", 200) == 200, message
    headers = [(b"host", b"x"), (b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode(),
             "query_string": b"", "headers": headers, "client": ("127.0.0.1", 1), "server": ("x", 80), "scheme": "http"}
    await app(scope, receive, send)
    return size

def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

with opened(Path(sys.argv[1])) as org:
    if sys.argv[2] == "list":
        content = definition("A")
        with org.database.transaction():
            names = (f"Orders_{number:06d}" for number in range(100_000))
            org.components.save(EVALUATION_DEFINITION, {name: content for name in names}, now=1.0)
        request = "POST", "/services/Soap/m/66.0", jsforce_call(LIST, session=org.token)
    else:
        deploy(org, package({"Orders": definition("Orders")}))
        tested = Evaluation("Orders", "Desk", ())
        content = definition("Orders")
        run_id = org.runs.start(EVALUATION_DEFINITION, tested, RunContent(content), RunOptions(), total=50_000, now=1.0)
        org.runs.claim(run_id, "w", taken_from=Lease(None, None), until=9e9)
        answer = GeneratedData("x" * 2_000, "Orders")
        for batch in range(50):
            results = (TestResult("n", Verdict.PASS),)
            RunJournal(org.database, run_id, "w").append(
                [CaseResult(number, batch + 1, "Hi", Verdict.PASS, 1.0, 2.0, results, answer) for number in range(1000)]
            )
        request = "GET", f"/services/data/v66.0/einstein/ai-evaluations/runs/{run_id}/results", b""
    app = create_app(org)
    before = megabytes()
    size = asyncio.run(ask(app, *request, org.token))
    print(size // 1_000_000, megabytes() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("what", "most"), [("list", 60), ("results", 30)])
def test_a_large_reply_takes_less_memory_than_its_size(tmp_path: Path, what: str, most: int) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), what]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin"}
    )
    assert done.returncode == 0, done.stderr
    size, growth = map(int, done.stdout.split())
    assert (size > 50, growth < most) == (True, True), done.stdout
