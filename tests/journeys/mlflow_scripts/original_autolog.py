"""MLflow's own autologging of the client of OpenAI, in an agent whose tools are plain functions."""

import json
import sys

from openai import OpenAI

from evalmeta import databricks, mlflow
from evalmeta.mlflow.genai.scorers import scorer

mlflow.openai.autolog()
client = OpenAI(base_url=sys.argv[1], api_key="none")


def predict_fn(question):
    messages = [{"role": "user", "content": question}]
    for _ in range(3):
        message = client.chat.completions.create(model="m", messages=messages).choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump(exclude_none=True))
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": '{"state": "sent"}'} for call in message.tool_calls
        ]
    return "I gave up."


@scorer
def models(trace):
    return len(trace.search_spans(span_type="CHAT_MODEL"))


result = mlflow.genai.evaluate(
    data=[{"inputs": {"question": question}} for question in ("Where is order 7?", "Hello")],
    predict_fn=predict_fn,
    scorers=[models],
)
found = {}
for case in result.run.run.cases:
    assert case.generated is not None, case.error
    actions = [[action.name, action.input, action.output] for action in case.generated.actions or ()]
    found[case.generated.outcome] = [actions, case.generated.tokens.input]


def model(model_input):
    return predict_fn(model_input["messages"][-1]["content"])


agent = databricks.evaluate(data=[{"request": "Where is order 7?"}], model=model)
[case] = agent.run.run.cases
actions = [[action.name, action.input, action.output] for action in case.generated.actions or ()]
print(json.dumps({"answers": found, "metrics": result.metrics, "actions of a model": actions}))
