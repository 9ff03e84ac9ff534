"""The agent under test: it answers by rules. DESK=careless makes it a worse one."""

import os

import evalmeta.ballerina

CALLS = {
    "Summarize my unread emails and schedule a follow-up meeting.": [
        ("readEmail", {"folder": "unread"}),
        ("summarizeEmail", {}),
        ("readCalendar", {"days": 7}),
        ("bookCalendar", {"title": "Follow-up"}),
    ],
    "Send an email to Raj and add a calendar invite.": [
        ("sendEmail", {"to": "Raj"}),
        ("bookCalendar", {"title": "Raj"}),
    ],
}
ANSWERS = {
    "When do you open?": "We open at nine and close at five.",
    "Do you open on Sundays?": "No, we are closed on Sundays.",
    "Where is order 7?": "Order 7 was sent on Monday.",
}


def is_careless():
    return os.environ.get("DESK") == "careless"


def answer(question):
    calls = CALLS.get(question, [])
    text = ANSWERS.get(question, "Done.")
    if is_careless():
        calls, text = calls[::-1], "I do not know."
    topic = "Orders" if "order" in text.lower() else "Hours"
    return {
        "outcome": text,
        "topic": topic,
        "actions": [{"name": name, "input": args, "output": "ok"} for name, args in calls],
    }


def run(query):
    """Return the trace, as `agent.run(query)` does in Ballerina."""
    return evalmeta.ballerina.trace_of(answer(query), query)
