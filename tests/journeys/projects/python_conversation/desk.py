"""An agent with sessions, asked in several turns by a test spec."""

from pathlib import Path

import evalmeta


class Desk:
    def open(self, history, context):
        return Conversation(context.get("customer", "you"))


class Conversation:
    def __init__(self, customer):
        self.customer = customer
        self.order = None

    async def ask(self, utterance):
        for word in utterance.replace("?", "").split():
            if word.isdigit():
                self.order = word
        if self.order is None:
            return {"outcome": f"Which order, {self.customer}?", "topic": "Orders"}
        action = {"name": "find_order", "input": {"id": self.order}, "output": {"state": "sent"}}
        return {"outcome": f"Order {self.order} is sent.", "topic": "Orders", "actions": [action]}


finished = evalmeta.evaluate(Path("conversations.yaml"), Desk)
assert finished.succeeded, finished.report()
