"""Servers made with the library's first major version."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from loopback import serving
from mcp.server.fastmcp import FastMCP
from talks import answers, results

if TYPE_CHECKING:
    from collections.abc import Iterator

server = FastMCP("shop")


@server.tool()
def get_order(id: str) -> dict:
    """Order by id."""
    if id == "0":
        raise ValueError("no such order")
    return {"id": id, "state": "sent"}


@server.tool()
def hello(name: str) -> str:
    """Say hello."""
    return f"Hello {name}"


@pytest.fixture(params=["program", "http"])
def settings(request) -> Iterator[dict]:
    if request.param == "program":
        yield {"adapter": "mcp", "command": (sys.executable, __file__)}
        return
    fresh = FastMCP("shop")
    fresh.add_tool(get_order)
    fresh.add_tool(hello)
    with serving(lambda _: fresh.streamable_http_app(), lifespan="on") as url:
        yield {"adapter": "mcp", "url": f"{url}/mcp"}


def call(tool: str, **arguments) -> dict:
    return {"tool": tool, "arguments": arguments}


def test_calls_return_values(settings: dict) -> None:
    (result,) = results(settings, [call("get_order", id="7"), call("hello", name="Ann")])
    assert [answer.value for answer in answers(result)] == [{"id": "7", "state": "sent"}, "Hello Ann"]


def test_the_error_of_a_tool_is_the_error_of_its_action(settings: dict) -> None:
    (action,) = answers(*results(settings, [call("get_order", id="0")]))[0].actions
    assert "no such order" in action.error


if __name__ == "__main__":
    server.run("stdio")
