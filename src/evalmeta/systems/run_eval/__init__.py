"""Payloads of `sf agent test run-eval`, declared here as a format of test files, and as what an org receives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.formats.diagnostics import Written
from evalmeta.formats.document import Document, Reading, read_bytes
from evalmeta.formats.registry import FileHead, Format

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.definition import Definition
    from evalmeta.model.json_value import JsonValue


_EVALUATORS: Final = re.compile(rb'"(?:agent|evaluator)\.\w+"')


class _RunEval(Format):
    name = "run-eval"
    description = "a payload of sf agent test run-eval (tests with steps)"
    inner_keys = ("steps",)
    is_written = True

    def recognises(self, value: JsonValue) -> bool:
        # Other tools have tests too.
        tests = value.get("tests") if isinstance(value, dict) else None
        return isinstance(tests, list) and any(isinstance(test, dict) and "steps" in test for test in tests)

    def is_test(self, head: FileHead) -> bool:
        is_json = head.content == "json"
        return (
            is_json
            and all(key in head.data for key in (b'"tests"', b'"steps"'))
            and bool(_EVALUATORS.search(head.data))
        )

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.systems.run_eval.payloads import read_payload

        return read_payload(read_bytes(path), label=label, name=name).document

    def read_kept(self, content: bytes, *, name: str) -> Document:
        from evalmeta.systems.run_eval.payloads import read_payload

        return read_payload(content, label=name, name=name, is_raw=True).document

    def write(self, definition: Definition) -> Written:
        from evalmeta.systems.run_eval.payloads import write_run_eval

        return write_run_eval(definition)

    def rewrite(self, path: Path, *, label: str) -> Written:

        # A definition has no name for its steps, and no turns; the names are not needed.
        self.read(path, label=label, name=path.stem, reading=Reading())
        return Written(read_bytes(path))


RUN_EVAL: Final = _RunEval()
