"""The metrics that a rater judges."""

from __future__ import annotations

from typing import Final

JUDGED_BY_RULES: Final = frozenset(
    {"bot_response_rating", "response_match", "final_response_match_v2", "response/llm_judged/correctness/rating"}
)
"""The canonical names of the metrics of which rules can judge some results."""
