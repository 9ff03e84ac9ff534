"""Tests as google-adk's documentation teaches them."""

import json
import pathlib

import pytest
from google.adk.evaluation.agent_evaluator import AgentEvaluator
from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.eval_set import EvalSet

FIXTURES = pathlib.Path(__file__).parent / "fixture"


@pytest.mark.asyncio
async def test_folder():
    """All files of a folder, with the default criteria."""
    await AgentEvaluator.evaluate(
        agent_module="weather_agent", eval_dataset_file_path_or_dir=str(FIXTURES / "weather"), num_runs=2
    )


@pytest.mark.asyncio
async def test_conversation():
    await AgentEvaluator.evaluate("weather_agent", str(FIXTURES / "conversation/conversation.test.json"))


@pytest.mark.asyncio
async def test_wrong_arguments():
    await AgentEvaluator.evaluate("weather_agent", str(FIXTURES / "wrong/wrong.test.json"))


@pytest.mark.asyncio
async def test_criteria_beside_the_file():
    await AgentEvaluator.evaluate("weather_agent.agent", str(FIXTURES / "lenient/lenient.test.json"), num_runs=1)


@pytest.mark.asyncio
async def test_state_of_the_session():
    await AgentEvaluator.evaluate("weather_agent", str(FIXTURES / "account/account.test.json"), num_runs=1)


@pytest.mark.asyncio
async def test_initial_session_of_a_legacy_file():
    await AgentEvaluator.evaluate(
        agent_module="weather_agent",
        eval_dataset_file_path_or_dir=str(FIXTURES / "legacy/legacy.test.json"),
        num_runs=1,
        initial_session_file=str(FIXTURES / "legacy/session.json"),
    )


@pytest.mark.asyncio
async def test_transfer_to_a_sub_agent():
    await AgentEvaluator.evaluate("weather_agent", str(FIXTURES / "handoff/handoff.test.json"), num_runs=1)


@pytest.mark.asyncio
async def test_sub_agent_by_name():
    await AgentEvaluator.evaluate(
        agent_module="weather_agent",
        eval_dataset_file_path_or_dir=str(FIXTURES / "bookings/bookings.test.json"),
        num_runs=1,
        agent_name="bookings",
    )


@pytest.mark.asyncio
async def test_unknown_sub_agent():
    await AgentEvaluator.evaluate("weather_agent", str(FIXTURES / "bookings/bookings.test.json"), agent_name="billing")


@pytest.mark.asyncio
async def test_agent_that_a_coroutine_function_makes():
    await AgentEvaluator.evaluate("async_agent.agent", str(FIXTURES / "weather/weather.test.json"), num_runs=1)


@pytest.mark.asyncio
async def test_app_with_a_plugin():
    await AgentEvaluator.evaluate("shop_app", str(FIXTURES / "greeting/greeting.test.json"), num_runs=1)


@pytest.mark.asyncio
async def test_model_that_fails():
    await AgentEvaluator.evaluate("weather_agent", str(FIXTURES / "broken/broken.test.json"), num_runs=1)


@pytest.mark.asyncio
async def test_eval_set_object():
    await AgentEvaluator.evaluate_eval_set(
        agent_module="weather_agent",
        eval_set=EvalSet.model_validate_json((FIXTURES / "weather/weather.test.json").read_text()),
        eval_config=EvalConfig.model_validate({"criteria": {"response_match_score": 0.9}}),
        num_runs=1,
        print_detailed_results=False,
    )


@pytest.mark.asyncio
async def test_criteria_that_are_missed():
    content = json.loads((FIXTURES / "weather/weather.test.json").read_text())
    content["eval_cases"][0]["conversation"][0]["final_response"]["parts"][0]["text"] = "Rainy"
    await AgentEvaluator.evaluate_eval_set(
        "weather_agent", EvalSet.model_validate(content), criteria={"response_match_score": 0.7}, num_runs=1
    )
