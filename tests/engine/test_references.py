from __future__ import annotations

import json

import pytest

from evalmeta.engine.references import TooManyMatches, compile_reference, resolve
from evalmeta.model.generated_data import Action, GeneratedData, reference_root

ROOT = reference_root(
    GeneratedData(
        "Sunny.",
        "Weather",
        (
            Action("Check_Weather", {"dateToCheck": "2024-03-05", "leistung_kw": 7}, {"result": "ok"}, 120.0),
            Action(
                "SendEmail",
                {"to": "a@example.com", "meta": {"x": [1, {"value": True}]}},
                {"additionalContext": [{"value": 9}]},
            ),
        ),
    )
)
CALLS = "$.generatedData.invokedActions"
WEATHER = f"{CALLS}[*][?(@.function.name == 'Check_Weather')]"
EMAIL = f"{CALLS}[*][?(@.function.name=='SendEmail')]"


def find(text: str, root: object = ROOT) -> list[object]:
    return list(resolve(compile_reference(text), root))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{WEATHER}.function.input.dateToCheck", "2024-03-05"),
        (f"{WEATHER}.function.input.leistung_kw", 7),
        (f"{WEATHER}.executionLatency", 120.0),
        (f"{WEATHER}\n.function.output.result", "ok"),
        (f"{EMAIL}\n.function.output.additionalContext[0].value", 9),
        (f"{EMAIL}.function.input.to", "a@example.com"),
        (f"{EMAIL}.function.input.meta.x[1].value", True),
        (f'{CALLS}[*][?(@.function.name == "SendEmail")].function.name', "SendEmail"),
        (f"{CALLS}[0][0].function.name", "Check_Weather"),
        (f"{CALLS}[0][0].executionLatency", 120.0),
        (f"{CALLS}[0][1].function.input.[to]", "a@example.com"),
        (f"{CALLS}[0][-1]['function']['name']", "SendEmail"),
        ("$.generatedData.outcome", "Sunny."),
        ("$.generatedData.topic", "Weather"),
        ("$.generatedData.actionsSequence", ["Check_Weather", "SendEmail"]),
        ("$.generatedData.actionsSequence[1]", "SendEmail"),
        (CALLS, ROOT["generatedData"]["invokedActions"]),
    ],
)
def test_the_documented_forms_find_their_value(text: str, value: object) -> None:
    assert find(text) == [value]


@pytest.mark.parametrize("text", ["$.generatedData.latencyMs", f"{WEATHER}.function.result", f"{CALLS}[7][0]", "$.a.b"])
def test_missing_values_match_nothing(text: str) -> None:
    assert find(text) == []


def test_a_filter_on_an_object_tests_the_object_itself() -> None:
    root = {"calls": [{"function": {"name": "A"}, "n": 1}, {"function": {"name": "B"}, "n": 2}]}
    assert find("$.calls[*][?(@.function.name == 'B')].n", root) == [2]
    assert find("$.calls[?(@.function.name == 'B')].n", root) == [2]


def test_json_in_a_string_is_opened_on_the_way() -> None:
    root = {"generatedData": {"invokedActions": json.dumps(ROOT["generatedData"]["invokedActions"])}}
    assert find(f"{WEATHER}.function.input.dateToCheck", root) == ["2024-03-05"]
    assert isinstance(find(CALLS, root)[0], str)


def test_text_that_is_no_json_is_only_text() -> None:
    assert find("$.a[0]", {"a": "[no json"}) == []
    assert find("$.a[0]", {"a": "[" * 1_000 + "]" * 1_000}) == []
    assert find("$.a[?(@.b)]", {"a": "text"}) == []


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("@.n > 1", [2, 3]),
        ("@.n >= 2 && @.n < 3", [2]),
        ("@.n == 1 || @.n == 3", [1, 3]),
        ("@.n <= 2", [1, 2]),
        ("@.n != 2", [1, 3]),
        ("@.t", [1, 2]),
        ("!@.t", [3]),
        ("@.t == true", [1]),
        ("@.t == null", [2]),
        ("@.n == $.best", [2]),
        ("@.n == '1'", [1]),
        ("@.n == '1.0'", [1]),
        ("@.n != '1'", [2, 3]),
        ("@.n == 'one'", []),
        ("@.t == '1'", []),
        ("@.n == 1e0", [1]),
        ("@.n < 2.5E+0", [1, 2]),
        ("@.n in [1, '3']", [1, 3]),
        ("@.n nin [1, 3e0] && @.n", [2]),
        ("@.t in [null, 'in []']", [2]),
        ("@.n in []", []),
        ("@.n == true", []),
        ("@.n > 'a'", []),
    ],
)
def test_filters_compare_by_kind(test: str, found: list[int]) -> None:
    root = {"best": 2, "items": [{"n": 1, "t": True}, {"n": 2, "t": None}, {"n": 3}]}
    assert find(f"$.items[?({test})].n", root) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$..n", [1, 2, 3]),
        ("$.a..n", [1, 2]),
        ("$..[?(@.n > 1)].n", [2, 3]),
        ("$.a.length()", [2]),
        ("$.b.size()", [1]),
        ("$.text.length()", [4]),
        ("$.b.n.length()", []),
        ("$[?(@.a.length() == 2)].b.n", [3]),
    ],
)
def test_descendants_and_lengths(text: str, found: list[int]) -> None:
    assert find(text, {"a": [{"n": 1}, {"n": 2}], "b": {"n": 3}, "text": "four"}) == found


def test_descendants_of_too_many_values_are_stopped() -> None:
    with pytest.raises(TooManyMatches):
        find("$..n", {"a": [[0] * 1000] * 20})


def test_unions_and_slices_give_each_node_once() -> None:
    root = {"a": [1, 2, 3], "b": {"x": 1, "y": 2}}
    assert find("$.a[0,0,2]", root) == [1, 3]
    assert find("$.a[1:]", root) == [2, 3]
    assert find("$.a[::0]", root) == []
    assert find("$.b['x','y']", root) == [1, 2]
    assert find("$.b.*", root) == [1, 2]


def test_a_reference_that_touches_too_much_is_stopped() -> None:
    with pytest.raises(TooManyMatches):
        find("$.a[*][*]", {"a": [list(range(1000))] * 20})


def test_doubling_at_every_step_is_stopped() -> None:
    nested: object = 1
    for _ in range(30):
        nested = [nested]
    with pytest.raises(TooManyMatches):
        find("$" + "[0,-1]" * 30, nested)


def test_a_filter_that_tests_too_much_is_stopped() -> None:
    tests = " || ".join(["@.b == 1"] * 50)
    with pytest.raises(TooManyMatches):
        find(f"$.a[?({tests})]", {"a": [{}] * 5000})
