"""Programs with which users of evalmeta work: notebooks, a type checker, and plugins that run coroutine functions."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".venv/python-tools"
CELL = """
import evalmeta
from evalmeta import databricks
from evalmeta.engine.interfaces import Rating
from evalmeta.model.run import Verdict

async def agent(question):
    return {"outcome": "On its <b>way</b>.", "topic": "Orders"}

run = evalmeta.evaluate([{"input": "Where?", "topic": "Orders"}, {"input": "When?", "topic": "Returns"}], agent)
rows = [{"request": "What is Spark?", "response": "An engine.", "expected_response": "An engine."}]
result = databricks.evaluate(data=rows, rater=lambda _: Rating(5, Verdict.PASS, "yes", "judge"))
assert (run.summary.passed, run.summary.failed) == (1, 1)
display(run, result)
"""
EXECUTE = """
import json, sys, nbformat
from nbclient import NotebookClient

notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(sys.argv[1])])
NotebookClient(notebook, kernel_name="python3", timeout=100).execute()
print(json.dumps([output["data"] for output in notebook.cells[0].outputs if output.output_type == "display_data"]))
"""


def tool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program of the environment in a folder."""
    assert (TOOLS / "ready").exists(), "Install the tools: make .venv/python-tools/ready"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PATH"] = f"{TOOLS / 'bin'}{os.pathsep}{environment['PATH']}"
    command = [str(TOOLS / "bin/python"), *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=170, check=False
    )


def test_evaluate_works_in_a_notebook_which_shows_tables(tmp_path: Path) -> None:
    done = tool(tmp_path, "-c", EXECUTE, CELL)

    assert done.returncode == 0, done.stderr
    run, result = json.loads(done.stdout.splitlines()[-1])
    assert "not passed" in run["text/html"]
    assert "FinishedRun" in run["text/plain"]
    assert "response/llm_judged/correctness/rating/percentage" in result["text/html"]


def test_pyright_accepts_every_example_of_the_library_page(tmp_path: Path) -> None:
    page = (ROOT / "docs/library.md").read_text()
    for number, example in enumerate(re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE), 1):
        (tmp_path / f"example_{number}.py").write_text(example)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')

    done = tool(tmp_path, "-m", "pyright", "--pythonpath", str(TOOLS / "bin/python"))

    assert "0 errors, 0 warnings" in done.stdout, done.stdout


ASYNC = """
import asyncio

import evalmeta
import pytest
import pytest_asyncio

running = most = 0


async def agent(number):
    global running, most
    running += 1
    most = max(most, running)
    for _ in range(20):
        await asyncio.sleep(0)
    running -= 1
    return number


@pytest_asyncio.fixture
async def client():
    loop = asyncio.get_running_loop()

    async def ask(number):
        assert asyncio.get_running_loop() is loop
        return await agent(number)

    yield ask


@evalmeta.evaluation
@pytest.mark.asyncio
@pytest.mark.parametrize("number", range(1, 5))
async def test_marked(number):
    assert await agent(number)


def test_together():
    assert most == 4


@evalmeta.evaluation
@pytest.mark.asyncio
@pytest.mark.parametrize("number", range(1, 4))
async def test_client(number, client):
    assert await client(number)


@evalmeta.evaluation
@pytest.mark.anyio
@pytest.mark.parametrize("number", range(1, 3))
async def test_anyio(number, anyio_backend):
    assert await agent(number)
"""


@pytest.mark.parametrize("mode", ["auto", "strict"])
def test_plugins_for_coroutine_functions_run_those_with_their_fixtures(tmp_path: Path, mode: str) -> None:
    (tmp_path / "test_it.py").write_text(ASYNC)
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    options = ["-o", f"asyncio_mode={mode}", "-o", "asyncio_default_fixture_loop_scope=function", "-W", "error"]

    printed = tool(tmp_path, "-m", "pytest", "--rootdir", str(tmp_path), *options).stdout

    assert "13 passed" in printed, printed
    assert "PASSED test_it.py::test_marked: 100 % (4 of 4)" in printed
    assert "  the tests ran one after another: the plugin of the fixture client runs them" in printed
    assert "  the tests ran one after another: the plugin of the fixture anyio_backend runs them" in printed
