"""Objects of MLflow itself, run by evalmeta."""

import json

import mlflow as original
from mlflow.entities import Feedback as MlflowFeedback
from mlflow.genai.scorers import RegexMatch as MlflowRegexMatch
from mlflow.genai.scorers import scorer as mlflow_scorer
from mlflow.pyfunc import ChatAgent, ResponsesAgent
from mlflow.types.agent import ChatAgentMessage, ChatAgentResponse
from mlflow.types.responses import ResponsesAgentResponse

from evalmeta import databricks, mlflow


class Chat(ChatAgent):
    def predict(self, messages, context=None, custom_inputs=None):
        call = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": 7}'}}
        return ChatAgentResponse(
            messages=[
                ChatAgentMessage(role="assistant", content="", id="1", tool_calls=[call]),
                ChatAgentMessage(role="tool", content='{"state": "sent"}', id="2", tool_call_id="c1", name="get_order"),
                ChatAgentMessage(role="assistant", content=f"About {messages[-1].content}", id="3"),
            ],
            usage={"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
        )


class Responses(ResponsesAgent):
    def predict(self, request):
        item = {"id": "f", "call_id": "c1", "name": "get_order", "arguments": '{"id": 7}'}
        return ResponsesAgentResponse(
            output=[
                self.create_function_call_item(**item),
                self.create_function_call_output_item(call_id="c1", output='{"state": "sent"}'),
                self.create_text_output_item(text=f"About {request.input[-1].content}", id="m1"),
            ]
        )


@mlflow_scorer
def short(outputs, trace):
    assert type(trace).__module__.startswith("mlflow."), type(trace)
    return MlflowFeedback(value=len(outputs) < 20, rationale="counted")


found = {}
for model in (Chat(), Responses()):
    result = databricks.evaluate(data=[{"request": "orders"}], model=model)
    [case] = result.run.run.cases
    assert case.generated is not None, case.error
    found[type(model).__name__] = [
        case.generated.outcome,
        [[action.name, action.input, action.output] for action in case.generated.actions or ()],
    ]
result = mlflow.genai.evaluate(
    data=[{"inputs": {"text": "a"}}, {"inputs": {"text": "a" * 30}}],
    predict_fn=lambda text: text,
    scorers=[short, MlflowRegexMatch(pattern="^a$")],
)
found["scorers"] = result.metrics
found["rationale"] = result.result_df["short/rationale"][0]
found["delegated"] = mlflow.MlflowClient is original.MlflowClient
print(json.dumps(found))
