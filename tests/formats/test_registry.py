from __future__ import annotations

import pytest

from evalmeta.formats.registry import recognise


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\xef\xbb\xbf\n <?xml version='1.0'?>", "definition"),
        ("<a/>".encode("utf-16"), "definition"),
        (b"\xef\xbb\xbfUtterance;Expected Topic\n", "csv"),
        (b"name: Utterance\n", "testspec"),
        (b'{"name": "x", "testCases": []}', "testspec"),
        (b"{name: x}", "testspec"),
        (b"", "testspec"),
        (b'{"evalSetId": "x", "evalCases": []}', "adk"),
        (b'{"eval_set_id": "x", "eval_cases": [', "adk"),
        (b'[{"query": "x"}]', "adk"),
        (b'[{"name": "x", "data": []}]', "adk"),
        (b'{"threads": []}', "ballerina"),
        (b'{"confidence": 0.8, "entries": []}', "ballerina"),
        (b'[{"input": "x", "expectedTools": []}]', "ballerina"),
        (b'[[{"input": "x"}]]', "ballerina"),
        (b'[{"request": "x"}]', "databricks"),
        (b'{"request": "x"}\n{"request": "y"}\n', "databricks"),
        (b'{"request_id": "1", "request": "x"}\n{"request": ', "databricks"),
        (b"request,response\nx,y\n", "databricks"),
        (b"PAR1\x15\x04", "databricks"),
        (b'{"name": "x"}', None),
        (b"[]", None),
        (b"[1, 2]", None),
        (b'{"query": "x"}\n{"evalCases": []}\n', "databricks"),
        (b'{"evalCases": []}\n{"evalCases": []}\n', "adk"),
        (b'[{"input": "x"}]\n,', "ballerina"),
        ('{"evalCases": []}'.encode("utf-16"), "adk"),
        ("\ufeffrequest,response\n".encode("utf-16-be"), "databricks"),
    ],
)
def test_a_format_is_told_by_the_content(data: bytes, found: str | None) -> None:
    assert recognise(data) == found
