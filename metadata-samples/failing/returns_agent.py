"""A returns desk with three mistakes in it, for the definition beside it to find.

Its topics are tried in the wrong order, it forgets to print the label, and it refunds
more than it should. Correct `answer` one by one and watch the run turn green.
"""

from __future__ import annotations

PRICES = {"R-100": 24.00, "R-200": 89.90}
POSTAGE = 4.95


def answer(utterance: str, **_session: object) -> dict[str, object]:
    """Answers one utterance about a return; what was said before and who asks is not looked at."""
    words = utterance.lower()
    number = next((number for number in PRICES if number.lower() in words), None)
    if "broken" in words:
        return _reply("I have noted your complaint about the broken lamp.", "Complaints")
    if number and "refund" in words:
        refund = PRICES[number]  # the postage is not taken off
        action = _action("GetReturn", {"return": number}, {"price": PRICES[number], "refund": refund})
        return _reply(f"You get {refund:.2f} EUR back for return {number}.", "Returns", action)
    if number and "label" in words:
        action = _action("GetReturn", {"return": number}, {"price": PRICES[number]})
        return _reply(f"Here is the label for return {number}.", "Returns", action)  # PrintLabel was never called
    return _reply("You can return what you bought within 30 days.", "Returns")


def _reply(outcome: str, topic: str, *actions: dict[str, object]) -> dict[str, object]:
    return {"outcome": outcome, "topic": topic, "actions": list(actions)}


def _action(name: str, given: dict[str, str], output: dict[str, float]) -> dict[str, object]:
    return {"name": name, "input": given, "output": output}
