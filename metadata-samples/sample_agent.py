"""A small CRM agent for the sample definitions: no model, no network, the same answer every time.

`answer` is what evalmeta.toml binds to a subject. It chooses a topic by keywords, looks up
the record that is meant, takes the topic's other actions and says what it found.
"""

from __future__ import annotations

import re
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Fields = dict[str, str | float]
    Message = Mapping[str, str | None]

ACCOUNTS: dict[str, Fields] = {
    "Global Media": {"industry": "media", "city": "Toronto", "owner": "Priya Raman", "opportunities": 3},
    "Harbor Light Coffee": {"industry": "food", "city": "Lisbon", "owner": "Tomás Figueira", "opportunities": 2},
    "Löwenzahn Möbel": {"industry": "furniture", "city": "Görlitz", "owner": "Jörg Weiß", "opportunities": 1},
    "Smith & Søn": {"industry": "shipping", "city": "Århus", "owner": "Zoë O'Brien", "opportunities": 4},
    "サクラ商事": {"industry": "trade", "city": "Ōsaka", "owner": "Yūki Tanaka", "opportunities": 5},
}
ORDERS: dict[str, Fields] = {
    "10045": {"status": "shipped", "total": 129.5, "date": "14 May", "approver": "Priya Raman"},
    "10052": {"status": "packed", "total": 89.9, "date": "16 May", "approver": "Priya Raman"},
    "10071": {"status": "delivered", "total": 640.0, "date": "2 May", "approver": "Tomás Figueira"},
}
CASES: dict[str, Fields] = {
    "2001": {"subject": "Projector does not start", "priority": "High", "status": "Working"},
    "2002": {"subject": "Coffee arrived late", "priority": "Medium", "status": "New"},
    "2003": {"subject": "Invoice < 100 € is missing", "priority": "Low", "status": "New"},
}
REFUND_LIMITS = {"Standard": 100.0, "Gold": 500.0}


def _check_refund_policy(record: str, tier: str) -> Fields:
    limit = REFUND_LIMITS.get(tier, 0.0)
    return {"limit": limit, "approved": float(ORDERS[record]["total"]) <= limit}


# An action takes the record's name or number; finding nothing gives no fields.
ACTIONS: dict[str, Callable[..., Fields]] = {
    "IdentifyRecordByName": lambda record: ACCOUNTS.get(record, {}),
    "GetOrder": lambda record: ORDERS.get(record, {}),
    "TrackShipment": lambda record: {"carrier": "Parcel Nordic", "date": ORDERS[record]["date"]},
    "CheckRefundPolicy": _check_refund_policy,
    "IssueRefund": lambda record: {"amount": ORDERS[record]["total"], "days": 5},
    "RequestApproval": lambda record: {"approver": ORDERS[record]["approver"]},
    "GetCase": lambda record: CASES.get(record, {}),
    "EscalateCase": lambda record, priority: {"case": record, "team": "Night Shift", "priority": priority},
}


class Turn:
    """One question, what was said before it, what is known of the user, and the actions taken for it."""

    def __init__(self, utterance: str, history: Sequence[Message], context: Mapping[str, str]) -> None:
        self.utterance = " ".join(utterance.split())
        self.history = history
        self.context = context
        self.actions: list[dict[str, object]] = []

    def take(self, name: str, **given: str) -> Fields:
        """Takes an action and notes what went in, what came out and how long it took."""
        started = perf_counter()
        output = ACTIONS[name](**given)
        latency_ms = (perf_counter() - started) * 1000
        self.actions.append({"name": name, "input": given, "output": output, "latency_ms": latency_ms})
        return output

    def find(self, pattern: re.Pattern[str]) -> str | None:
        """Finds the record meant: named now, or talked about last; "the other one" is the one before that."""
        if named := pattern.search(self.utterance):
            return named[0]
        earlier = [found for message in reversed(self.history) for found in pattern.findall(message["message"] or "")]
        if "other" in self.utterance:
            earlier = [found for found in earlier if found != earlier[0]]
        return earlier[0] if earlier else None


def _summarize(_turn: Turn, name: str, account: Fields) -> str:
    return (
        f"Summarization of the {name} account: {account['industry']}, based in {account['city']}, "
        f"owned by {account['owner']}, open opportunities: {account['opportunities']}."
    )


def _track(turn: Turn, number: str, order: Fields) -> str:
    if order["status"] == "packed":
        return f"Order {number} is being packed and leaves our warehouse on {order['date']}."
    shipment = turn.take("TrackShipment", record=number)
    if order["status"] == "delivered":
        return f"Order {number} was delivered by {shipment['carrier']} on {shipment['date']}."
    return f"Order {number} is on its way with {shipment['carrier']} and arrives on {shipment['date']}."


def _refund(turn: Turn, number: str, order: Fields) -> str:
    tier = turn.context.get("LoyaltyTier", "Standard")
    policy = turn.take("CheckRefundPolicy", record=number, tier=tier)
    if policy["approved"]:
        refund = turn.take("IssueRefund", record=number)
        return f"I refunded {refund['amount']:.2f} EUR for order {number}. It arrives within {refund['days']} days."
    approver = turn.take("RequestApproval", record=number)["approver"]
    return (
        f"Order {number} cost {order['total']:.2f} EUR and the {tier} limit is {policy['limit']:.2f} EUR, "
        f"so {approver} has to approve the refund."
    )


def _care(turn: Turn, number: str, case: Fields) -> str:
    if "escalate" in turn.utterance.lower():
        new = turn.take("EscalateCase", record=number, priority="High")
        return f"Case {number} is now with the {new['team']} team and has priority {new['priority']}."
    return f"Case {number} ({case['subject']}) has priority {case['priority']} and status {case['status']}."


class Topic(NamedTuple):
    """A kind of work: the words that ask for it, the record it is about, the look-up, and the rest."""

    words: re.Pattern[str]
    record: re.Pattern[str]
    look_up: str
    respond: Callable[[Turn, str, Fields], str]


ACCOUNT_NAME = re.compile("|".join(map(re.escape, ACCOUNTS)))
ORDER_NUMBER = re.compile(r"\b\d{5}\b")
CASE_NUMBER = re.compile(r"\b\d{4}\b")

# The first topic whose words match wins: "refund order 10045" is about a refund.
TOPICS = {
    "Refunds": Topic(re.compile(r"(?i)\brefund"), ORDER_NUMBER, "GetOrder", _refund),
    "Case_Management": Topic(re.compile(r"(?i)\bcase\b"), CASE_NUMBER, "GetCase", _care),
    "Order_Inquiries": Topic(re.compile(r"(?i)\border"), ORDER_NUMBER, "GetOrder", _track),
    "OOTBSingleRecordSummary": Topic(re.compile(r"(?i)\bsummar"), ACCOUNT_NAME, "IdentifyRecordByName", _summarize),
}
FORBIDDEN = re.compile(r"(?i)\b(delete|password)\b")
GREETING = re.compile(r"(?i)(hello|hi|good morning)\b")
FOLLOW_UP = re.compile(r"(?i)(and|what about|go back)\b")


def _choose_topic(turn: Turn) -> str:
    if FORBIDDEN.search(turn.utterance):
        return "Small_Talk"
    asked = (name for name, topic in TOPICS.items() if topic.words.search(turn.utterance))
    goes_on = turn.history and FOLLOW_UP.match(turn.utterance)
    return next(asked, (turn.history[-1]["topic"] if goes_on else None) or "Small_Talk")


def _respond(turn: Turn, topic_name: str) -> str:
    if topic_name not in TOPICS:
        return "Hello! How can I help?" if GREETING.match(turn.utterance) else "I'm sorry, I can't help with that."
    topic = TOPICS[topic_name]
    record = turn.find(topic.record) or turn.context.get("RecordName")
    if not record:
        return "Which record do you mean?"
    fields = turn.take(topic.look_up, record=record)
    return topic.respond(turn, record, fields) if fields else f"There is no record {record}."


def answer(utterance: str, *, history: Sequence[Message], context: Mapping[str, str]) -> dict[str, object]:
    """Answers one utterance: the outcome's text, the topic, and the actions taken, in order.

    `history` holds the messages so far (role, message, topic). Of the context variables,
    LoyaltyTier sets the refund limit and RecordName says which record "my account" is.
    """
    turn = Turn(utterance, history, context)
    topic = _choose_topic(turn)
    return {"outcome": _respond(turn, topic), "topic": topic, "actions": turn.actions}
