"""Run options as JSON, an extension for orgs of evalmeta, also stored with runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, get_args

from evalmeta.model.run import ActionMatch, Matches, RunOptions, Scoring, ScoringProfile, TopicMatch
from evalmeta.protocol.json_fields import integer, number, object_at, optional_integer, optional_number, text, value_at

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue


_DEFAULT: Final = RunOptions()
_SCORING: Final = Scoring()
_PAIR: Final = 2
_T = TypeVar("_T", bound=str)


def write_options(options: RunOptions) -> JsonObject:
    """Write run options."""
    scoring = options.scoring
    return {
        "iterations": options.iterations,
        "minPassRate": options.min_pass_rate,
        "undecided": options.undecided,
        "concurrency": options.concurrency,
        "caseTimeoutSeconds": options.case_timeout,
        "rateLimit": options.rate_limit,
        "retries": options.retries,
        "maxErrors": options.max_errors,
        "seed": options.seed,
        "cases": options.cases,
        "shard": options.shard,
        "scoring": {
            "profile": scoring.profile,
            "actions": scoring.actions,
            "topics": scoring.topics,
            "matches": scoring.matches,
            "threshold": scoring.threshold,
            "rater": scoring.rater,
        },
    }


def read_options(source: JsonObject) -> RunOptions:
    """Read run options; missing and unknown values get the default."""
    return RunOptions(
        iterations=integer(source, "iterations", _DEFAULT.iterations),
        min_pass_rate=number(source, "minPassRate", _DEFAULT.min_pass_rate),
        undecided="fail" if source.get("undecided") == "fail" else "ignore",
        concurrency=integer(source, "concurrency", _DEFAULT.concurrency),
        case_timeout=number(source, "caseTimeoutSeconds", _DEFAULT.case_timeout),
        rate_limit=optional_number(source, "rateLimit"),
        retries=integer(source, "retries", _DEFAULT.retries),
        max_errors=optional_integer(source, "maxErrors"),
        seed=optional_integer(source, "seed"),
        cases=_integers(value_at(source, "cases")),
        shard=_shard(value_at(source, "shard")),
        scoring=_read_scoring(object_at(source, "scoring")),
    )


def _read_scoring(source: JsonObject) -> Scoring:
    profiles: tuple[ScoringProfile, ...] = get_args(ScoringProfile)
    actions: tuple[ActionMatch, ...] = get_args(ActionMatch)
    topics: tuple[TopicMatch, ...] = get_args(TopicMatch)
    matches: tuple[Matches, ...] = get_args(Matches)
    chosen = text(source, "actions")
    return Scoring(
        profile=_one_of(profiles, text(source, "profile"), _SCORING.profile),
        actions=_one_of(actions, chosen, "exact") if chosen in actions else None,
        topics=_one_of(topics, text(source, "topics"), _SCORING.topics),
        matches=_one_of(matches, text(source, "matches"), _SCORING.matches),
        threshold=number(source, "threshold", _SCORING.threshold),
        rater=text(source, "rater") or _SCORING.rater,
    )


def _one_of(known: tuple[_T, ...], word: str, default: _T) -> _T:
    return next((each for each in known if each == word), default)


def _integers(value: JsonValue) -> tuple[int, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    return tuple(each for each in value if isinstance(each, int) and not isinstance(each, bool))


def _shard(value: JsonValue) -> tuple[int, int] | None:
    pair = _integers(value)
    return (pair[0], pair[1]) if pair is not None and len(pair) == _PAIR else None
