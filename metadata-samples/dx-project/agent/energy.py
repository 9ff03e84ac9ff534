"""An energy supplier's advisor: meter readings, tariffs and outages, answered by fixed rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Message = Mapping[str, str | None]
    Action = dict[str, object]

LAST_READINGS = {"M-417": 14980, "M-902": 7310}
# EUR a month and EUR for each kWh.
TARIFFS = {"Calm": (9.00, 0.34), "Breeze": (14.00, 0.30), "Storm": (22.00, 0.26)}
WORKS = {"04109": "16:30", "20457": "21:00"}
MONTHS = 12

METER = re.compile(r"M-\d{3}")
NUMBER = re.compile(r"(?<![-\d])\d{4,5}(?!\d)")


async def answer(utterance: str, *, history: Sequence[Message], context: Mapping[str, str]) -> dict[str, object]:
    """Answers one utterance; the context variable Postcode says where the user lives.

    evalmeta awaits an agent that is written with `async def`; a plain `def` does as well.
    """
    words = utterance.lower()
    actions: list[Action] = []
    if "tariff" in words:
        topic, outcome = "Tariff_Advice", _advise(utterance, actions)
    elif "power" in words or "outage" in words:
        topic, outcome = "Outages", _look_for_works(utterance, context, actions)
    elif "kwh" in words or "meter" in words:
        topic, outcome = "Meter_Readings", _read_meter(utterance, history, actions)
    else:
        topic, outcome = "Small_Talk", "I'm sorry, I can't help with that."
    return {"outcome": outcome, "topic": topic, "actions": actions}


def _advise(utterance: str, actions: list[Action]) -> str:
    usage = NUMBER.search(utterance)
    if not usage:
        return "How many kWh do you use in a year?"
    costs = {name: round(MONTHS * base + int(usage[0]) * price, 2) for name, (base, price) in TARIFFS.items()}
    best = min(costs, key=costs.__getitem__)
    output = {"tariff": best, "cost": costs[best], "costs": costs}
    actions.append(_action("CompareTariffs", {"usage": int(usage[0])}, output))
    return f"{best} is the cheapest tariff for {usage[0]} kWh: {costs[best]:.2f} EUR a year."


def _look_for_works(utterance: str, context: Mapping[str, str], actions: list[Action]) -> str:
    named = NUMBER.search(utterance)
    postcode = named[0] if named else context.get("Postcode")
    if not postcode:
        return "What is your postcode?"
    until = WORKS.get(postcode)
    actions.append(_action("CheckWorks", {"postcode": postcode}, {"until": until}))
    if until:
        return f"We are working on the grid in {postcode}. The power is back at {until}."
    actions.append(_action("ReportOutage", {"postcode": postcode}, {"reported": True}))
    return f"No works are planned in {postcode}, so I reported the outage to the grid operator."


def _read_meter(utterance: str, history: Sequence[Message], actions: list[Action]) -> str:
    said = [utterance, *(message["message"] or "" for message in reversed(history))]
    meter = next((found[0] for text in said if (found := METER.search(text))), None)
    if not meter:
        return "Which meter is it? Its number starts with M."
    reading = NUMBER.search(utterance)
    if not reading:
        return f"What does meter {meter} show?"
    last = LAST_READINGS.get(meter, 0)
    if int(reading[0]) < last:
        return f"Meter {meter} showed {last} kWh before, so {reading[0]} kWh must be a mistake."
    used = int(reading[0]) - last
    actions.append(_action("RecordReading", {"meter": meter, "reading": int(reading[0])}, {"used": used}))
    return f"I recorded {reading[0]} kWh for meter {meter}. You used {used} kWh since the last reading."


def _action(name: str, given: dict[str, object], output: dict[str, object]) -> Action:
    return {"name": name, "input": given, "output": output}
