"""Print what ArgumentCorrectness says of the cases of standard input; runs in the environment of pydantic-evals."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta

from pydantic_evals.evaluators import ArgumentCorrectness, EvaluatorContext
from pydantic_evals.otel.span_tree import SpanNode, SpanTree

START = datetime(2026, 1, 1, tzinfo=UTC)


def verdict(case: dict, tool: str) -> bool:
    tree = SpanTree()
    tree.add_spans(
        [
            SpanNode(
                name=f"execute_tool {call['name']}",
                trace_id=1,
                span_id=place,
                parent_span_id=None,
                start_timestamp=START + timedelta(seconds=place),
                end_timestamp=START + timedelta(seconds=place + 1),
                attributes={"gen_ai.tool.name": call["name"], "gen_ai.tool.call.arguments": json.dumps(call["input"])},
            )
            for place, call in enumerate(case["calls"], 1)
        ]
    )
    context = EvaluatorContext(
        name="case",
        inputs=None,
        metadata=None,
        expected_output=None,
        output=None,
        duration=0.0,
        _span_tree=tree,
        attributes={},
        metrics={},
    )
    mode = "exact" if case["exact"] else "subset"
    return ArgumentCorrectness(tool, case["expected"], match_mode=mode).evaluate(context).value


tool, cases = json.load(sys.stdin)
json.dump([verdict(case, tool) for case in cases], sys.stdout)
