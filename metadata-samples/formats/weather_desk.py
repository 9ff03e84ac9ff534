"""An agent without a model: it reads weather stations, whatever it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

STATIONS = {"Lisbon": (24, "a clear sky"), "Bergen": (11, "rain")}


def answer(utterance: str, *, context: Mapping[str, object]) -> dict[str, object]:
    """Gives the weather in the city that is named, or at home."""
    city = next((each for each in STATIONS if each in utterance), str(context.get("home", "Lisbon")))
    degrees, sky = STATIONS[city]
    return {
        "outcome": f"It is {degrees} degrees in {city}, with {sky}.",
        "actions": [{"name": "read_station", "input": {"city": city}}],
    }
