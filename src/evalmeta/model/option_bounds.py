"""The bounds of a run's options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta import limits

if TYPE_CHECKING:
    from evalmeta.model.run import RunOptions


def invalid_option(options: RunOptions) -> str | None:
    """Return what is wrong with the first option that is out of range, by its name in `runOptions`; else None."""
    bounds: dict[str, tuple[float | None, float, float]] = {
        "iterations": (options.iterations, 1, limits.MAX_ITERATIONS),
        "minPassRate": (options.min_pass_rate, 0, 1),
        "minDecided": (options.min_decided, 0, 1),
        "concurrency": (options.concurrency, 1, limits.MAX_CONCURRENCY),
        "caseTimeoutSeconds": (options.case_timeout, 0, limits.MAX_CASE_TIMEOUT_SECONDS),
        "rateLimit": (options.rate_limit, 1e-6, limits.MAX_RATE),
        "retries": (options.retries, 0, limits.MAX_RETRIES),
        "maxErrors": (options.max_errors, 1, limits.MAX_INTEGER),
        "seed": (options.seed, -limits.MAX_INTEGER, limits.MAX_INTEGER),
        "shard": (options.shard and options.shard[0], 1, options.shard[1] if options.shard else 1),
        "scoring.threshold": (options.scoring.threshold, 0, 5),
    }
    for name, (value, least, most) in bounds.items():
        if value is not None and not least <= value <= most:
            return f"{name} is {value}; {least} to {most:g} are allowed"
    return None
