from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import FormatError
from evalmeta.systems.databricks.evaluation_sets import copy_rows, read_databricks

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {
        "request_id": "a",
        "request": {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Hi"}]},
        "response": '["no list but a text"]',
        "expected_facts": ["x", "y"],
        "guidelines": {"tone": ["No slang"]},
        "retrieved_context": [{"doc_uri": "d", "content": "c"}],
    },
    {"request": '{"no": "request"}', "response": "b", "expected_response": "[1]", "other": {"kept": True}},
]


def as_table() -> bytes:
    told = io.StringIO()
    table = csv.DictWriter(told, dict.fromkeys(key for row in ROWS for key in row))
    table.writeheader()
    for row in ROWS:
        table.writerow({key: each if isinstance(each, str) else json.dumps(each) for key, each in row.items()})
    return told.getvalue().encode()


@pytest.mark.parametrize("data", [json.dumps(ROWS).encode(), json.dumps({"rows": ROWS}).encode(), as_table()])
def test_rows_of_any_form_keep_all_that_they_say(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "set"
    file.write_bytes(data)
    copied = copy_rows(file, label="set")

    assert [json.loads(line) for line in copied.splitlines()] == ROWS
    assert list(read_databricks(copied, label="set.jsonl", name="n").evaluation.cases) == list(
        read_databricks(data, label="set", name="n").evaluation.cases
    )


def test_rows_that_do_not_fit_the_format_are_not_copied(tmp_path: Path) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text('{"request": "a", "expected_facts": 3}')
    with pytest.raises(FormatError, match="expected_facts"):
        copy_rows(file, label="set")
