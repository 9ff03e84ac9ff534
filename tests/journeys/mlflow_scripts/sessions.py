"""Conversations of a chat, recorded with session ids, judged as a whole."""

import mlflow
from mlflow.genai import make_judge
from mlflow.genai.scorers import ConversationCompleteness, UserFrustration, scorer


@mlflow.trace(span_type="TOOL")
def find_order(id):
    return {"state": "sent"}


@mlflow.trace
def chat(message, session):
    mlflow.update_current_trace(metadata={"mlflow.trace.session": session, "mlflow.trace.user": "u-1"})
    order = next((word for word in message.split() if word.isdigit()), None)
    return f"Order {order} is {find_order(order)['state']}." if order else "Which order?"


for session, messages in {"s-1": ["Where is my order?", "It is 10045"], "s-2": ["Where is order 7"]}.items():
    for message in messages:
        chat(message, session)


@scorer
def turns(session):
    return len(session)


@scorer
def mentions_an_order(outputs) -> bool:
    return "rder" in outputs


polite = make_judge(
    name="polite", instructions="Is the assistant polite in {{ conversation }}?", feedback_value_type=bool
)
result = mlflow.genai.evaluate(
    data=mlflow.search_traces(return_type="list"),
    scorers=[ConversationCompleteness(), polite, turns, mentions_an_order],
)
frustrated = mlflow.genai.evaluate(data=mlflow.search_traces(return_type="list"), scorers=[UserFrustration()])
