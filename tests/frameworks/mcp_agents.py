from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from loopback import serving
from mcp.server import MCPServer
from pydantic import BaseModel
from talks import answers, results

from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.subjects import bind
from evalmeta.systems.mcp.subject import McpSubject

if TYPE_CHECKING:
    from collections.abc import Iterator

server = MCPServer("shop")


class Order(BaseModel):
    id: str
    state: str


@server.tool()
def get_order(id: str) -> dict:
    """Order by id."""
    if id == "0":
        raise ValueError("no such order")
    return {"id": id, "state": "sent"}


@server.tool()
def find_order(id: str) -> Order:
    """Order by id, with a schema of the result."""
    return Order(id=id, state="sent")


@server.tool()
def hello(name: str, times: int = 1) -> str:
    """Say hello."""
    return f"Hello {name}" * times


PROGRAM = {"adapter": "mcp", "command": (sys.executable, __file__)}


@pytest.fixture(params=["program", "http", "http with JSON", "http without sessions"])
def settings(request) -> Iterator[dict]:
    if request.param == "program":
        yield PROGRAM
        return
    options = {"json_response": "JSON" in request.param, "stateless_http": "without" in request.param}
    with serving(lambda _: server.streamable_http_app(**options), lifespan="on") as url:
        yield {"adapter": "mcp", "url": f"{url}/mcp"}


def call(tool: str, **arguments) -> dict:
    return {"tool": tool, "arguments": arguments}


def test_two_calls_return_structured_values(settings: dict) -> None:
    (result,) = results(settings, [call("get_order", id="7"), call("find_order", id="8"), call("hello", name="Ann")])
    first, second, third = answers(result)
    assert [first.value, second.value, third.value] == [
        {"id": "7", "state": "sent"}, {"id": "8", "state": "sent"}, "Hello Ann",
    ]  # fmt: skip
    (action,) = first.actions
    assert (action.name, action.input, action.output) == ("get_order", {"id": "7"}, first.value)


def test_the_tools_of_a_server_are_its_actions(settings: dict) -> None:
    inventory = run_to_end(bind(McpSubject.model_validate(settings), root=Path()).inventory())
    assert [part.name for part in inventory.parts] == ["get_order", "find_order", "hello"]


def test_the_error_of_a_tool_is_the_error_of_its_action(settings: dict) -> None:
    (action,) = answers(*results(settings, [call("get_order", id="0")]))[0].actions
    assert "Error executing tool get_order" in action.error


def test_arguments_are_checked_before_the_call(settings: dict) -> None:
    (result,) = results(settings, [call("hello", name="Ann", times="many")])
    assert 'arguments.times: expected type "integer"' in result.error


def test_a_server_checks_arguments_too(settings: dict) -> None:
    (result,) = results({**settings, "check_calls": False}, [call("hello", name="Ann", times="many")])
    assert "times" in answers(result)[0].actions[0].error


def test_cases_at_once_are_answered(settings: dict) -> None:
    given = results(settings, *([call("hello", name=f"Ann {number}")] for number in range(4)))
    assert [answers(result)[0].outcome for result in given] == [f"Hello Ann {number}" for number in range(4)]


def test_a_server_that_is_gone_is_an_error() -> None:
    (result,) = results({"adapter": "mcp", "url": "http://127.0.0.1:9/mcp"}, [call("hello", name="Ann")])
    assert "is it running" in result.error


def test_init_lists_the_tools_and_its_tests_run(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("EVALMETA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    outputs = []
    for words in (["init", "--agent", f"mcp:{sys.executable} {__file__}"], ["run", "tests", "--json"], ["doctor"]):
        program = [sys.executable, "-m", "evalmeta", *words]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
        outputs.append(done.stdout + done.stderr)
        assert done.returncode == 0, outputs
    assert "3 tools: get_order, find_order, hello" in outputs[0]
    assert '"Hello text"' in outputs[1]
    assert "has 3 tools: get_order, find_order, hello" in outputs[2]


if __name__ == "__main__":
    server.run("stdio")
