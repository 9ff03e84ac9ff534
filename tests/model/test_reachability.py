from __future__ import annotations

import pytest

from evalmeta.engine.references import resolve
from evalmeta.model.generated_data import Action, GeneratedData, reference_root
from evalmeta.model.jsonpath_parser import parse_reference
from evalmeta.model.reachability import why_unreachable

DATA = "$.generatedData"
CALLS = f"{DATA}.invokedActions"
MEMBERS = "type, topic, actionsSequence, invokedActions, outcome, generatedResponse, sessionId"
ROOT = reference_root(
    GeneratedData('{"a": 1}', "T", (Action("A", {"x": [{"y": 1}]}, {"z": 2}, 3.0), Action("B")), session_id="s")
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$.outcome", "$ has no member outcome; it has generatedData"),
        (f"{DATA}.latencyMs", f"{DATA} has no member latencyMs; it has {MEMBERS}"),
        (f"{DATA}.Outcome", f"{DATA} has no member Outcome; did you mean outcome?"),
        (f"{DATA}[0]", f"{DATA} is an object, not a list"),
        (f"{DATA}.topic.name", f"{DATA}.topic is a single value without members"),
        (f"{CALLS}[0].function", f"{CALLS}[0] is a list; add [*] or [0] after it"),
        (f"{CALLS}[1][0]", f"{CALLS} has at most one item; write [0] or [*]"),
        (f"{CALLS}[*][*].function.result", f"{CALLS}[*][*].function has no member result; it has name, input, output"),
        (f"{CALLS}[?(@.function.name == 'A')]", f"{CALLS}[*] is a list; add [*] or [0] after it"),
        (f"{CALLS}[*][?(@.name == 'A')]", f"{CALLS}[*][*] has no member name; it has function, executionLatency"),
        (f"{CALLS}[*][?(@.nme || @.name in ['A'])]", f"{CALLS}[*][*] has no member nme"),
    ],
)
def test_a_reference_to_anything_else_than_recorded_values_is_unreachable(text: str, reason: str) -> None:
    assert (why_unreachable(parse_reference(text)) or "").startswith(reason)


REACHABLE = (
    f"{DATA}.outcome",
    f"{DATA}.outcome.a",
    f"{DATA}.*",
    f"{DATA}['topic','nothing']",
    f"{DATA}.actionsSequence[-1]",
    f"{DATA}.actionsSequence.length()",
    f"{CALLS}[-1][0:1].function.input.x[0].y",
    f"{CALLS}[*][?(@.function.name == 'A')].function.output.z",
    f"{CALLS}[*][?(@.function.name == 'A' || @.name == 'A')].executionLatency",
    f"{CALLS}[*][?(@.nothing != 1 && $.generatedData.topic == 'T')]",
    f"{CALLS}..name",
    f"{DATA}[?(@.topic == 'T')].sessionId",
    "$..*",
)


@pytest.mark.parametrize("text", REACHABLE)
def test_a_reference_that_matches_something_is_reachable(text: str) -> None:
    reference = parse_reference(text)
    assert resolve(reference, ROOT)
    assert why_unreachable(reference) is None
