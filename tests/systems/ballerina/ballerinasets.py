"""Evaluation sets as Ballerina writes them, made for tests."""

from __future__ import annotations

import json

__all__ = ["ADD", "SUBTRACT", "assistant", "evalset", "iteration", "result", "trace", "user"]

Json = dict[str, object]

SUBTRACT: Json = {"name": "subtract", "arguments": {"a": 7, "b": 3}}
ADD: Json = {"name": "add", "arguments": {"a": 4, "b": 9}}


def user(content: str) -> Json:
    return {"role": "user", "content": content}


def assistant(content: str | None = None, *calls: Json) -> Json:
    return {"role": "assistant", "content": content, "toolCalls": list(calls) or None}


def result(name: str, content: str, **more: str) -> Json:
    return {"role": "function", "name": name, "content": content, **more}


def iteration(output: object, *history: Json, end: object = "2026-02-12T05:47:09.5Z") -> Json:
    return {"history": list(history), "output": output, "startTime": "2026-02-12T05:47:08Z", "endTime": end}


def trace(question: str, output: object, *iterations: Json, **more: object) -> Json:
    return {
        "id": f"trace of {question}",
        "userMessage": user(question),
        "iterations": list(iterations),
        "output": output,
        "tools": [{"name": "add", "description": "Adds.", "parametersSchema": {"type": "object"}}],
        "startTime": "2026-02-12T05:47:08Z",
        "endTime": "2026-02-12T05:47:10.25Z",
        **more,
    }


def evalset(**threads: list[Json]) -> bytes:
    """Gives a file with these threads; in those that are called `a__b` the id is `a`."""
    listed = [{"id": name.partition("__")[0], "description": "", "traces": traces} for name, traces in threads.items()]
    return json.dumps({"id": "1", "name": "maths", "description": "", "threads": listed}, indent=2).encode()
