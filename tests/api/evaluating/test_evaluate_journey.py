from __future__ import annotations

from typing import TYPE_CHECKING

from engine.raters.llm.model_server import model_serving, ruled

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PROGRAM = """
import evalmeta

ORDERS = {"10045": {"state": "sent", "total": 30.0}, "10046": {"state": "open", "total": 12.5}}


async def agent(question, *, history):
    number = next((word.strip("?.") for word in question.split() if word[0].isdigit()), "10045")
    if "refund" in question:
        actions = [{"name": name, "input": {"id": number}} for name in ("get_order", "refund_order")]
        return {"outcome": f"{number} is refunded: {ORDERS[number]['total']} EUR.", "actions": actions}
    if "JSON" in question:
        return ORDERS[number], [{"name": "get_order", "args": {"id": number}}]
    if "return" in question:
        return {"outcome": "You may return it within 30 days.", "actions": ["search_help"]}
    asked = f" You asked {len(history) // 2} times before." if history else ""
    return f"{number} is {ORDERS[number]['state']}.{asked}", [{"name": "get_order", "args": {"id": number}}]


def is_short(answer):
    return len(str(answer)) < 100


def has_the_total(answer, *, expected, actions):
    return evalmeta.Check(f"{expected} EUR" in answer, score=len(actions), reason=f"{expected} was expected")


cases = [
    {"input": "Where is 10045?", "contains": "sent", "actions": [{"name": "get_order", "input": {"id": "10045"}}]},
    {"input": "Where is 10046?", "contains": "open", "actions": ["get_order"]},
    {"input": "10045 as JSON", "equals": {"state": "sent", "total": 30.0}},
    {"input": "10046 as JSON", "json": {"path": "$.total", "at_most": 20}},
    {"input": "May I return it?", "rubric": "The answer names the time limit.", "actions": ["search_help"]},
    {"input": "A refund of 10046", "actions": ["get_order", {"name": "refund_order", "input": {"id": "10046"}}]},
    {"input": "A refund of 10045", "expected": 30.0, "checks": [has_the_total]},
    {"input": "Where is it?", "latency_ms": 2_000, "not_contains": "sorry"},
    {"input": "How long may I return it?", "matches": r"\\d+ days"},
    {"turns": [{"input": "Where is 10045?"}, {"input": "And 10046?", "contains": "10046 is open. You asked 1 times"}]},
]
options = evalmeta.RunOptions(iterations=3, min_pass_rate=0.9)
before, now = (evalmeta.evaluate(cases, agent, options=options, checks=[is_short], rater=RATER) for _ in range(2))
comparison = now.compare(before)
assert now.succeeded and not comparison.is_worse, now.report()
"""


def test_a_python_user_writes_ten_tests_in_fifty_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for line in PROGRAM.splitlines() if line]
    assert len(lines) <= 50
    assert sum(line.startswith("    {") for line in lines) == 10
    with model_serving(ruled("yes", "yes")) as server:
        names: dict[str, object] = {"RATER": {"adapter": "llm", "model": "judge-1", "url": server.url}}
        exec(PROGRAM, names)  # noqa: S102 - our own program
    run = names["now"]
    assert "10 cases" in str(run) or "30" in str(run)
