from __future__ import annotations

import mlflow
import pytest
from mlflow.pyfunc import ChatAgent, PythonModel, ResponsesAgent
from mlflow.types.agent import ChatAgentMessage, ChatAgentResponse
from mlflow.types.responses import ResponsesAgentResponse
from talks import answers, results

from evalmeta import databricks


class Responses(ResponsesAgent):
    """Calls the tool that the question names, and says in which turn."""

    def predict(self, request) -> ResponsesAgentResponse:
        messages = [item.model_dump() for item in request.input]
        asked = [message for message in messages if message.get("role") == "user"]
        text = asked[-1]["content"]
        name, _, id = text.partition(" ")
        items = []
        if id:
            arguments, output = f'{{"id": "{id}"}}', '{"state": "sent"}'
            items.append(self.create_function_call_item(id="f", call_id="c1", name=name, arguments=arguments))
            items.append(self.create_function_call_output_item(call_id="c1", output=output))
        city = (request.custom_inputs or {}).get("city", "")
        items.append(self.create_text_output_item(text=f"{name}{city} in turn {len(asked)}", id="m1"))
        return ResponsesAgentResponse(output=items, custom_outputs={"topic": "Orders"})


class Chat(ChatAgent):
    def predict(self, messages, context=None, custom_inputs=None) -> ChatAgentResponse:
        asked = [message for message in messages if message.role == "user"]
        name, _, id = asked[-1].content.partition(" ")
        said = []
        if id:
            call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": f'{{"id": "{id}"}}'}}
            said.append(ChatAgentMessage(role="assistant", content="", id="1", tool_calls=[call]))
            said.append(
                ChatAgentMessage(role="tool", content='{"state": "sent"}', id="2", tool_call_id="c1", name=name)
            )
        city = (custom_inputs or {}).get("city", "")
        said.append(ChatAgentMessage(role="assistant", content=f"{name}{city} in turn {len(asked)}", id="3"))
        usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
        return ChatAgentResponse(messages=said, usage=usage)


@pytest.fixture(params=[Responses, Chat])
def kind(request):
    return request.param


@pytest.fixture(params=["object", "class", "loaded"])
def agent(kind, request, tmp_path):
    if request.param == "object":
        return kind()
    if request.param == "class":
        return kind
    mlflow.pyfunc.save_model(str(tmp_path / "model"), python_model=kind(), pip_requirements=[])
    return mlflow.pyfunc.load_model(str(tmp_path / "model"))


def test_two_turns_are_one_conversation_with_actions(agent, kind) -> None:
    (result,) = results(agent, ["get_order 7", "Thanks"])
    first, second = answers(result)
    assert [(action.name, action.input, action.output) for action in first.actions] == [
        ("get_order", {"id": "7"}, {"state": "sent"})
    ]
    assert second.outcome == "Thanks in turn 2"
    if kind is Responses:
        assert first.topic == "Orders"
    else:
        assert (first.tokens.input, first.tokens.output) == (10, 3)


def test_cases_at_once_do_not_share_a_conversation(kind) -> None:
    talks = [answers(result) for result in results(kind(), *(["Hi", f"Bye{number}"] for number in range(4)))]
    assert [talk[1].outcome for talk in talks] == [f"Bye{number} in turn 2" for number in range(4)]


def test_the_history_and_the_context_of_a_case_are_known(kind) -> None:
    history = [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}]
    case = {"input": "Well", "conversationHistory": history, "context": {"city": "Bonn"}}
    assert answers(*results(kind(), case))[0].outcome == "WellBonn in turn 2"


def test_evaluations_of_databricks_send_the_request_as_it_is(agent) -> None:
    request = {"messages": [{"role": "user", "content": "get_order 7"}], "custom_inputs": {"city": "Bonn"}}
    result = databricks.evaluate(data=[{"request": request}], model=agent)
    (answer,) = answers(*result.run.run.cases)
    assert answer.outcome == "get_orderBonn in turn 1"
    assert [(action.name, action.output) for action in answer.actions] == [("get_order", {"state": "sent"})]


def test_an_error_of_the_model_is_an_error_of_the_case(kind) -> None:
    agent = kind()
    agent.create_text_output_item = agent.predict = None
    (result,) = results(agent, ["Hi"])
    assert "TypeError" in result.error


class Shout(PythonModel):
    def predict(self, context, model_input):
        return {"said": model_input["question"].upper()}


def test_another_model_is_asked_with_its_inputs(tmp_path) -> None:
    mlflow.pyfunc.save_model(str(tmp_path / "model"), python_model=Shout(), pip_requirements=[])
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    asked, text = results(model, {"input": {"question": "where"}}, ["where"])
    assert answers(asked)[0].value == {"said": "WHERE"}
    assert "cannot be asked a text" in text.error


def test_init_takes_a_model(project) -> None:
    project("from mlflow_models_agents import Responses\nthing = Responses()\n")
