"""A delivery desk that does a little more than it is asked, for two ways of grading to disagree about.

What it answers to each utterance is fixed, and so is the latency it tells.
"""

from __future__ import annotations

PROMOTED = "p_16jPl000000GwEX_Deliveries_16j8eeef13560aa"
# What it is asked: the actions it takes, its topic, and how many milliseconds it says it took.
ANSWERS = {
    "Where is parcel P-1?": (["FindParcel"], "Deliveries", 120.0),
    "When does parcel P-2 arrive?": (["FindParcel", "FindDriver"], "Deliveries", 120.0),
    "Good morning!": (["FindCustomer"], "Greetings", 40.0),
    "Move parcel P-3 to Friday and tell the driver": (["TellDriver", "MoveParcel"], "Deliveries", 310.0),
    "Leave parcel P-4 with a neighbour": (["FindParcel"], "Deliveries", 150.0),
    "Which parcels come today?": (["ListParcels"], "Deliveries", 2400.0),
    "Who delivers parcel P-5?": (["FindDriver"], PROMOTED, 130.0),
}


def answer(utterance: str, **_session: object) -> dict[str, object]:
    """Answers an utterance of the definition beside it, and anything else without an action."""
    actions, topic, latency = ANSWERS.get(utterance, ([], "Deliveries", 10.0))
    return {"outcome": "Done.", "topic": topic, "actions": actions, "latency_ms": latency}
