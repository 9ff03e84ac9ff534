"""Tests and datasets of other test tools, declared here as formats: promptfoo, pydantic-evals, inspect and others.

They are read if they are named, and converted to test specs. In a folder they are listed and not run, because the tool
to which they belong runs them there.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, Protocol, cast

from evalmeta.formats.registry import Format
from evalmeta.plugins import all_checks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from evalmeta.formats.diagnostics import Written
    from evalmeta.formats.document import Document, Reading
    from evalmeta.formats.registry import FileHead
    from evalmeta.formats.translation import Translation
    from evalmeta.model.json_value import JsonValue


_MODULES: Final = "evalmeta.systems.test_tools"


class _Translate(Protocol):
    def __call__(self, path: Path, *, label: str) -> Translation: ...


class _TestTool(Format):
    """A format of another tool; `translate` is the function that reads it, as `module:function`."""

    translate: str

    def is_test(self, head: FileHead) -> bool:
        return False

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        return self._translation(path, label).document(name)

    def write_spec(self, path: Path, *, label: str, subject: str | None) -> Written:
        return self._translation(path, label).spec(subject=subject)

    def _translation(self, path: Path, label: str) -> Translation:
        # A module is loaded when a file needs it.
        read = cast("_Translate", resolve_name(f"{_MODULES}.{self.translate}"))
        return read(path, label=label)


class _Samples(_TestTool):
    """A format of which each test case is an object with certain keys, or a row with certain columns.

    `list_key` is the key of an object that has them in a list; empty if there is none.
    """

    list_key = ""

    def has_keys(self, keys: Collection[str]) -> bool:
        """Return whether keys are those of a test case."""
        raise NotImplementedError

    def recognises(self, value: JsonValue) -> bool:
        if isinstance(value, dict) and isinstance(listed := value.get(self.list_key), list):
            value = listed
        first = value[0] if isinstance(value, list) and value else value
        return isinstance(first, dict) and self.has_keys(first)

    def has_columns(self, titles: Collection[str]) -> bool:
        return self.has_keys(titles)


class _Promptfoo(_TestTool):
    name = "promptfoo"
    description = "a configuration of promptfoo"
    translate = "promptfoo:translate"
    named_only = "it is a configuration of promptfoo; name it to run it, or convert it"

    def recognises(self, value: JsonValue) -> bool:
        if isinstance(value, dict):
            has_tests = not {"tests", "scenarios", "defaultTest", "providers", "targets"}.isdisjoint(value)
            return ("prompts" in value and has_tests) or {"vars", "assert"} <= {*value}
        first = value[0] if isinstance(value, list) and value else None
        return isinstance(first, dict) and {"vars", "assert"} <= {*first}

    def has_columns(self, titles: Collection[str]) -> bool:
        return any(title.startswith("__expected") for title in titles)

    def files_of(self, path: Path) -> Sequence[Path]:
        from evalmeta.systems.test_tools.promptfoo import files_of

        return files_of(path)


_DATASET_KEYS: Final = frozenset({"$schema", "name", "cases", "evaluators", "report_evaluators"})
_CASE_KEYS: Final = frozenset({"name", "inputs", "metadata", "expected_output", "evaluators"})


class _PydanticEvals(_TestTool):
    name = "pydantic-evals"
    description = "a dataset of pydantic-evals"
    translate = "pydantic_evals:translate"
    named_only = "it is a dataset of pydantic-evals; name it to run it, or convert it"

    def recognises(self, value: JsonValue) -> bool:
        cases = value.get("cases") if isinstance(value, dict) and {*value} <= _DATASET_KEYS else None
        first = cases[0] if isinstance(cases, list) and cases else None
        if not isinstance(first, dict) or "inputs" not in first or not {*first} <= _CASE_KEYS:
            return False
        return isinstance(value, dict) and ("evaluators" in value or len({*first} - {"name", "metadata"}) > 1)


class _OpenAIEvals(_Samples):
    name = "openai-evals"
    description = "samples of OpenAI evals"
    translate = "datasets:translate_openai_evals"
    named_only = "it has samples of OpenAI evals; name it to run it, or convert it"

    def has_keys(self, keys: Collection[str]) -> bool:
        return {"input", "ideal"} <= {*keys} and not _has_checks(keys)


class _Inspect(_Samples):
    name = "inspect"
    description = "samples of inspect"
    translate = "datasets:translate_inspect"
    named_only = "it has samples of inspect; name it to run it, or convert it"

    def has_keys(self, keys: Collection[str]) -> bool:
        return {"input", "target"} <= {*keys} and not _has_checks(keys)


_EXAMPLE_KEYS: Final = frozenset(
    {*("dataset_id", "dataset_name", "source_run_id", "split", "splits", "created_at", "modified_at")}
)


class _LangSmith(_Samples):
    name = "langsmith"
    description = "examples that LangSmith exported"
    translate = "datasets:translate_langsmith"
    list_key = "examples"
    named_only = "it has examples of LangSmith; name it to run it, or convert it"

    def has_keys(self, keys: Collection[str]) -> bool:
        # MLflow has inputs and outputs, too: there, outputs are recorded answers.
        return {"inputs", "outputs"} <= {*keys} and not _EXAMPLE_KEYS.isdisjoint(keys) and "expectations" not in keys


class _DeepEval(_Samples):
    name = "deepeval"
    description = "goldens of deepeval"
    translate = "datasets:translate_deepeval"
    list_key = "goldens"
    named_only = "it has goldens of deepeval; name it to run it, or convert it"

    def has_keys(self, keys: Collection[str]) -> bool:
        is_golden = "input" in keys and not {"expected_output", "expected_tools"}.isdisjoint(keys)
        is_saved = not {"actual_output", "retrieval_context", "additional_metadata", "tools_called"}.isdisjoint(keys)
        is_conversation = "scenario" in keys and not {"expected_outcome", "turns"}.isdisjoint(keys)
        return ((is_golden and is_saved) or is_conversation) and not _has_checks(keys)


class _AgentsCli(_Samples):
    name = "agents-cli"
    description = "a dataset of agents-cli"
    translate = "agents_cli:translate"
    list_key = "eval_cases"
    named_only = "it is a dataset of agents-cli; name it to run it, or convert it"

    def has_keys(self, keys: Collection[str]) -> bool:
        return not {"eval_case_id", "prompt", "agent_data"}.isdisjoint(keys) and "conversation" not in keys

    def recognises(self, value: JsonValue) -> bool:
        return isinstance(value, dict) and self.list_key in value and super().recognises(value)

    def has_columns(self, titles: Collection[str]) -> bool:
        return False


def _has_checks(keys: Collection[str]) -> bool:
    """Return whether keys are those of evalmeta's own test cases, which may have any others as metadata."""
    return not {*all_checks(), "expectedOutcome", "expectedTopic", "expectedActions"}.isdisjoint(keys)


PROMPTFOO: Final = _Promptfoo()
PYDANTIC_EVALS: Final = _PydanticEvals()
OPENAI_EVALS: Final = _OpenAIEvals()
INSPECT: Final = _Inspect()
LANGSMITH: Final = _LangSmith()
DEEPEVAL: Final = _DeepEval()
AGENTS_CLI: Final = _AgentsCli()
