from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalmeta.api.specs import convert_file
from evalmeta.formats.testspec import read_spec
from evalmeta.formats.yaml_source import json_value, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {
        "request_id": "order-1",
        "request": {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is it?"}],
            "region": "EU",
        },
        "expected_facts": ["It is on its way."],
        "guidelines": ["Be polite."],
    },
    {"inputs": {"question": "Hi"}, "expectations": {"expected_response": "Hello"}, "tags": {"team": "a"}},
    {"request": "x", "response": "y", "expected_retrieved_context": [{"doc_uri": "a"}]},
]


def test_an_evaluation_set_keeps_names_tags_facts_and_guidelines_in_a_test_spec(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    written = convert_file(path, "testspec")
    spec = json_value(read_yaml(written.content, label="spec").value)
    assert spec == {
        "testCases": [
            {
                "name": "order-1",
                "input": "Where is it?",
                "conversationHistory": [{"role": "system", "message": "Be brief."}],
                "context": {"region": "EU"},
                "rubric": ["The answer states this fact: It is on its way.", "Be polite."],
            },
            {"input": "Hi", "tags": ["team=a"], "expectedOutcome": "Hello"},
            {"input": "x", "metadata": {"not_judged": "the documents that must be retrieved"}, "review": True},
        ]
    }
    assert [str(loss) for loss in written.losses] == [
        "the file: the metrics of Databricks without an expectation, such as safety and groundedness",
        "the file: recorded answers; the agent is asked",
        "test case 3: the documents that must be retrieved; the case is marked review: true",
    ]
    assert len(read_spec(written.content, label="spec").cases) == len(ROWS)
