"""The test cases of Agentforce Studio's test specs: several inputs with the same scorers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.formats.spec_cases import read_history, read_pair, read_variables
from evalmeta.model.definition import Expectation, Inputs, PromptInput, TestCase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.formats.yaml_source import YamlRecord


STUDIO_KEYS: Final = ("inputs", "scorers")
"""The keys of a test case."""


def read_studio_cases(root: YamlRecord) -> Iterator[TestCase]:
    """Yield a test case for each input, numbered from 1."""
    number = 0
    for case in root.records("testCases", called="a test case of Agentforce Studio"):
        case.check_keys(*STUDIO_KEYS)
        scorers = []
        for record in case.records("scorers", called="a scorer"):
            record.check_keys("name", "expected")
            scorers.append(Expectation(record.required_text("name"), record.text("expected")))
        if not case.items("inputs"):
            case.error("spec-missing", f"{case.called} needs 'inputs'")
        if "scorers" not in case.values:
            case.require("scorers")
        for each in case.records("inputs", called="an input"):
            number += 1
            yield TestCase(_studio_inputs(each), tuple(scorers), number)


def _studio_inputs(record: YamlRecord) -> Inputs:
    record.check_keys(*("utterance", "contextVariables", "conversationHistory"), "promptInput")
    prompts = record.records("promptInput", called="an input")
    prompt_inputs = tuple(PromptInput(*read_pair(prompt, "referenceName")) for prompt in prompts)
    utterance = record.text("utterance") if prompt_inputs else record.required_text("utterance")
    history = read_history(record, numbers_messages=False)
    return Inputs(utterance or "", read_variables(record), history, prompt_inputs)
