"""Members of MLflow that evalmeta has not: MLflow's own if it is installed, or else an error that says so."""

from __future__ import annotations

import importlib
from typing import Final

from evalmeta.systems.mlflow.tracking import FLAVORS, Flavor


def member_of(module: str, name: str) -> object:
    """Return a member of a module of MLflow; raise AttributeError if neither evalmeta nor MLflow has it."""
    shown = ".".join(filter(None, ("evalmeta.mlflow", module)))
    if name.startswith("__"):
        raise AttributeError(f"module {shown!r} has no attribute {name!r}")
    if not module and name in FLAVORS:
        return Flavor(name)
    try:
        original = importlib.import_module(".".join(filter(None, ("mlflow", module))))
        member: object = getattr(original, name)
    except (ImportError, AttributeError):
        instead = _INSTEAD.get(name, "see docs/coming-from-mlflow.md")
        raise AttributeError(f"{shown} has no {name!r}, and no installed MLflow has it; {instead}") from None
    return member


_ENSEMBLE: Final = "pass all scorers to evaluate, or call them in a function with @scorer"
_REGISTRY: Final = "keep scorers in your code, because evalmeta has no tracking server"
_INSTEAD: Final = {
    **dict.fromkeys(
        ("make_scorer_ensemble", "agg_all", "agg_any", "majority_vote", "maximum", "mean", "minimum"), _ENSEMBLE
    ),
    **dict.fromkeys(("get_scorer", "list_scorers", "delete_scorer", "ScorerSamplingConfig"), _REGISTRY),
}
