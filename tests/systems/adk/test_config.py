from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import FormatError
from evalmeta.systems.adk.config import DEFAULT_CONFIG, AdkConfig, Criterion, read_test_config


def read(value: object) -> AdkConfig:
    return read_test_config(value if isinstance(value, bytes) else json.dumps(value).encode(), label="test_config.json")


def terms(name: str, criterion: object) -> dict[str, object]:
    [found] = read({"criteria": {name: criterion}}).criteria
    assert found.name == name
    return dict(found.terms)


def problems(value: object) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(value)
    return [f"{problem.message} {problem.hint}".strip() for problem in caught.value.problems]


def test_numbers_are_thresholds() -> None:
    assert read({"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}) == AdkConfig(
        DEFAULT_CONFIG.criteria
    )
    assert terms("response_evaluation_score", 4) == {"threshold": 4.0}
    assert terms("safety_v1", 0) == {"threshold": 0.0}
    assert terms("final_response_match_v2", 0.5) == {"threshold": 0.5, "num_samples": 5, "aggregate": "majority"}


@pytest.mark.parametrize(
    ("match_type", "meant"),
    [
        ("EXACT", "EXACT"),
        ("in_order", "IN_ORDER"),
        ("Any-Order", "ANY_ORDER"),
        ("in order", "IN_ORDER"),
        (0, "EXACT"),
        (1, "IN_ORDER"),
        (2, "ANY_ORDER"),
        (None, "EXACT"),
    ],
)
@pytest.mark.parametrize("key", ["match_type", "matchType"])
def test_calls_are_matched_as_adk_spells_it(match_type: object, meant: str, key: str) -> None:
    assert terms("tool_trajectory_avg_score", {"threshold": 0.5, key: match_type}) == {
        "threshold": 0.5,
        "match_type": meant,
        "ignore_args": False,
    }


def test_arguments_can_be_ignored_in_both_spellings() -> None:
    for key in ("ignore_args", "ignoreArgs"):
        assert terms("tool_trajectory_avg_score", {"threshold": 1, key: True})["ignore_args"] is True


def test_samples_of_a_judge_are_read_and_its_model_is_the_runs() -> None:
    options = {"judgeModel": "gemini-2.5-flash", "numSamples": 3, "parallelism_limit": 2}
    config = read({"criteria": {"final_response_match_v2": {"threshold": 0.8, "judge_model_options": options}}})

    assert config.criteria[0].terms["num_samples"] == 3
    assert [note.message for note in config.notes] == ["'judgeModel' is ignored: the run's rater judges"]


def test_a_metric_of_ones_own_is_a_dotted_function() -> None:
    custom = {"tone": {"code_config": {"name": "checks.tone.score"}, "description": "How it sounds"}}
    config = read({"criteria": {"tone": 7}, "custom_metrics": custom})

    assert config == AdkConfig(
        (Criterion("tone", {"function": "checks.tone.score", "threshold": 7.0, "conversation": True}),)
    )
    unused = read({"criteria": {"safety_v1": 1}, "customMetrics": custom})
    assert [note.message for note in unused.notes] == ["the custom metric 'tone' is not used: no criterion names it"]


def test_metrics_of_efficiency_are_measured_and_not_judged() -> None:
    config = read({"criteria": {"token_usage_v1": None, "tool_call_count_v1": {}, "inference_call_count_v1": None}})

    assert config.criteria == (Criterion("token_usage_v1", {}), Criterion("tool_call_count_v1", {}))
    assert [note.message for note in config.notes] == [
        "'inference_call_count_v1' is ignored: agents do not report how often they call a model"
    ]


def test_our_own_choices_stand_under_a_key_that_adk_passes_over() -> None:
    config = read(
        {
            "criteria": {"response_match_score": 0.8, "final_response_match_v2": 0.5},
            "evalmeta": {"missing": "adk", "tokens": "typescript", "aggregate": "share"},
        }
    )

    assert config.missing == "adk"
    assert [each.terms for each in config.criteria] == [
        {"threshold": 0.8, "tokens": "typescript"},
        {"threshold": 0.5, "num_samples": 5, "aggregate": "share"},
    ]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b'{"criteria": {"response_match_score": 0.8,}}', "this is not valid JSON"),
        ([], "test_config.json is a list, not an object"),
        ({}, 'test_config.json needs \'criteria\' Write {"criteria": {"response_match_score": 0.8}}.'),
        (
            {"criterias": {"response_match_score": 0.8}},
            "test_config.json needs 'criteria' There is 'criterias'; write 'criteria'.",
        ),
        (
            {"criteria": {"response_match_score": {"treshold": 1}}},
            "the criterion 'response_match_score' needs 'threshold' There is 'treshold'; write 'threshold'.",
        ),
        ({"criteria": {"response_match_score": "inf"}}, "the criterion 'response_match_score' is a text, not a number"),
        ({"criteria": {"safety_v1": {"threshold": [1]}}}, "the threshold of 'safety_v1' is a list, not a number"),
        ({"criteria": {}}, "'criteria' of test_config.json is empty: add at least one metric"),
        ({"criteria": []}, "'criteria' is a list, not an object"),
        (
            {"criteria": {"response_match": 0.8}},
            "'response_match' is not a known metric Did you mean 'response_match_score'?",
        ),
        (
            {"criteria": {"per_turn_user_simulator_quality_v1": 1}},
            (
                "ADK's metric 'per_turn_user_simulator_quality_v1' is not supported here"
                " Remove it, or name a function of your own under 'custom_metrics'."
            ),
        ),
        (
            {"criteria": {"response_match_score": 1.2}},
            "the threshold of 'response_match_score' is 1.2; its scores go from 0 to 1",
        ),
        (
            {"criteria": {"response_evaluation_score": {"threshold": 6}}},
            "the threshold of 'response_evaluation_score' is 6; its scores go from 1 to 5",
        ),
        ({"criteria": {"safety_v1": "high"}}, "the criterion 'safety_v1' is a text, not a number or an object"),
        ({"criteria": {"safety_v1": None}}, "the criterion 'safety_v1' is null, not a number or an object"),
        ({"criteria": {"safety_v1": {}}}, "the criterion 'safety_v1' needs 'threshold'"),
        (
            {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "STRICT"}}},
            "'match_type' is 'STRICT', not EXACT, IN_ORDER, ANY_ORDER or a number from 0 to 2",
        ),
        (
            {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": 3}}},
            "'match_type' is 3, not EXACT, IN_ORDER, ANY_ORDER or a number from 0 to 2",
        ),
        (
            {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": []}}},
            "'match_type' is a list, not EXACT, IN_ORDER, ANY_ORDER or a number from 0 to 2",
        ),
        (
            {"criteria": {"final_response_match_v2": {"threshold": 1, "judge_model_options": {"num_samples": 0}}}},
            "'num_samples' is 0, not a whole number from 1 to 25",
        ),
        (
            {"criteria": {"final_response_match_v2": {"threshold": 1, "judge_model_options": {"num_samples": 1.5}}}},
            "'num_samples' is 1.5, not a whole number from 1 to 25",
        ),
        (
            {"criteria": {"token_usage_v1": 100}},
            "'token_usage_v1' is measured and not judged: it has no threshold Write null, or remove it and write ",
        ),
        (
            {"criteria": {"token_usage_v1": {"threshold": 1}}},
            "'token_usage_v1' is measured and not judged: it has no threshold Write null, or remove it and write ",
        ),
        (
            {"criteria": {"tone": 1}, "custom_metrics": {"tone": {"code_config": {"name": "tone"}}}},
            "'tone' is not a dotted name of a function, such as package.module.function",
        ),
        (
            {"criteria": {"tone": 1}, "custom_metrics": {"tone": {}}},
            (
                "the custom metric 'tone' needs 'code_config'"
                ' Write {"code_config": {"name": "package.module.function"}}.'
            ),
        ),
        (
            {"criteria": {"tone": 1}, "custom_metrics": {"tone": {"code_config": {"name": "a.b", "args": [{}]}}}},
            "'code_config' of the custom metric 'tone' has arguments, which are not supported",
        ),
        ({"criteria": {"safety_v1": 1}, "evalmeta": {"missing": "zero"}}, "'missing' is 'zero', not undecided or adk"),
        (
            {
                "criteria": {
                    "rubric_based_tool_use_quality_v1": {
                        "threshold": 1,
                        "rubrics": [{"rubric_id": "a", "rubric_content": {"text_property": "x"}}] * 2,
                    }
                }
            },
            "two rubrics have the id 'a'",
        ),
    ],
)
def test_what_adk_would_pass_over_or_stumble_on_is_an_error(value: object, found: str) -> None:
    assert any(problem.startswith(found) for problem in problems(value)), problems(value)


@pytest.mark.parametrize(
    ("value", "threshold", "shown"),
    [("0.8", 0.8, "'0.8', read as 0.8"), (" 1 ", 1.0, "' 1 ', read as 1"), (True, 1.0, "true, read as 1")],
)
def test_thresholds_are_read_as_adk_reads_them(value: object, threshold: float, shown: str) -> None:
    for criterion in (value, {"threshold": value}):
        found = read({"criteria": {"response_match_score": criterion}})

        assert found.criteria[0].terms["threshold"] == threshold
        assert [note.message for note in found.notes] == [f"the threshold of 'response_match_score' is {shown}"]


def test_intermediate_responses_are_not_judged() -> None:
    criterion = {"threshold": 1, "includeIntermediateResponsesInFinal": True}
    found = read({"criteria": {"safety_v1": criterion}})

    assert [note.message for note in found.notes] == [
        "'includeIntermediateResponsesInFinal' is ignored: agents report only their answer"
    ]
    assert read({"criteria": {"safety_v1": {**criterion, "includeIntermediateResponsesInFinal": False}}}).notes == ()


def test_a_threshold_below_the_scale_is_a_warning() -> None:
    found = read({"criteria": {"response_evaluation_score": 0.5}})

    assert [note.message for note in found.notes] == [
        "the threshold of 'response_evaluation_score' is 0.5; its scores go from 1 to 5, so that it always passes"
    ]


def test_what_is_measured_can_be_named_where_adk_passes_over_it() -> None:
    found = read({"criteria": {"safety_v1": 1}, "evalmeta": {"measure": ["token_usage_v1"]}})

    assert found.criteria[1:] == (Criterion("token_usage_v1", {}),)
    assert [
        problem.removeprefix("test_config.json:1:63 ")
        for problem in problems({"criteria": {"safety_v1": 1}, "evalmeta": {"measure": ["token_usage"]}})
    ] == ["'token_usage' is not a metric that is measured Did you mean 'token_usage_v1'?"]


def test_errors_have_line_and_column() -> None:
    with pytest.raises(
        FormatError, match=r"^test_config\.json:2:38: 'respnse_match_score' is not a known metric\n  Did you mean"
    ):
        read(b'{\n "criteria": {"respnse_match_score": 0.8}}')


def test_unknown_keys_are_warnings() -> None:
    config = read({"criteria": {"safety_v1": {"threshold": 1, "treshold": 1}}, "criterias": 1})

    assert [(note.message, note.hint) for note in config.notes] == [
        ("the criterion 'safety_v1' has no key 'treshold'; it is ignored", "Did you mean 'threshold'?"),
        ("test_config.json has no key 'criterias'; it is ignored", "Did you mean 'criteria'?"),
    ]


shares = st.floats(0, 1)
trajectories = st.builds(
    lambda threshold, match_type, ignore: {"threshold": threshold, "match_type": match_type, "ignore_args": ignore},
    shares,
    st.sampled_from(["EXACT", "IN_ORDER", "ANY_ORDER"]),
    st.booleans(),
)


def as_written(terms: dict[str, object]) -> object:
    """Return a criterion as users write it: its threshold alone where its other options have their defaults."""
    if terms.get("match_type", "EXACT") == "EXACT" and not terms.get("ignore_args"):
        return terms["threshold"]
    return terms


@given(trajectories, shares)
def test_what_is_written_reads_to_the_same(trajectory: dict[str, object], overlap: float) -> None:
    config = AdkConfig(
        (
            Criterion("tool_trajectory_avg_score", trajectory),  # type: ignore[arg-type]
            Criterion("response_match_score", {"threshold": overlap, "tokens": "unicode"}),
        )
    )

    assert read({"criteria": {each.name: as_written(dict(each.terms)) for each in config.criteria}}) == config
