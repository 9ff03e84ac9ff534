"""What a run is started with, its options and its definition, as evalmeta adds it to the Connect API."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar, get_args

from evalmeta import limits
from evalmeta.errors import MessageUnreadable
from evalmeta.model.run_options import (
    ActionMatch,
    Deciding,
    Matches,
    Origin,
    RunOptions,
    Scoring,
    ScoringProfile,
    Setup,
    TopicMatch,
)
from evalmeta.protocol.json_fields import integer, number, object_at, optional_text, text, texts

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue


class RunDefinition(NamedTuple):
    """The definition of a run as it was when the run was created, and as it is deployed now; None if it is gone."""

    original: bytes
    current: bytes | None
    is_abandoned: bool


def write_run_definition(definition: RunDefinition) -> JsonObject:
    """Write the definition of a run, an extension of evalmeta."""
    current = None if definition.current is None else b64encode(definition.current).decode()
    original = b64encode(definition.original).decode()
    return {"then": original, "now": current, "isAbandoned": definition.is_abandoned}


def read_run_definition(source: JsonObject) -> RunDefinition:
    """Read the definition of a run; raise MessageUnreadable if it is not valid base64."""
    current = optional_text(source, "now")
    try:
        original = b64decode(text(source, "then"), validate=True)
        return RunDefinition(
            original, None if current is None else b64decode(current, validate=True), source.get("isAbandoned") is True
        )
    except binascii.Error:
        raise MessageUnreadable("the definition of a run is not valid base64") from None


_DEFAULT: Final = RunOptions()
_SCORING: Final = Scoring()
_PAIR: Final = 2
_T = TypeVar("_T", bound=str)


def write_options(options: RunOptions) -> JsonObject:
    """Write run options."""
    scoring = options.scoring
    confirms: JsonObject = {"confirms": options.confirms} if options.confirms else {}
    setup: JsonObject = {name: value for name, value in options.setup._asdict().items() if value}
    origin: JsonObject = {"origin": {name: value for name, value in options.origin._asdict().items() if value}}
    return {
        "iterations": options.iterations,
        "minPassRate": options.min_pass_rate,
        "undecided": options.undecided,
        "minDecided": options.min_decided,
        "concurrency": options.concurrency,
        "caseTimeoutSeconds": options.case_timeout,
        "rateLimit": options.rate_limit,
        "retries": options.retries,
        "maxErrors": options.max_errors,
        "seed": options.seed,
        "cases": options.cases,
        "shard": options.shard,
        **confirms,
        **({} if options.decides == "org" else {"decides": options.decides}),
        **(origin if any(options.origin) else {}),
        **({"setup": setup} if setup else {}),
        "scoring": {
            "profile": scoring.profile,
            "actions": scoring.actions,
            "topics": scoring.topics,
            "matches": scoring.matches,
            "threshold": scoring.threshold,
            "rater": scoring.rater,
        },
    }


def read_options(source: JsonObject, *, default: RunOptions = _DEFAULT) -> RunOptions:
    """Read run options; missing keys have the values of `default`, and unknown values those of evalmeta."""
    missing = write_options(default)
    source = {**missing, **source, "scoring": {**object_at(missing, "scoring"), **object_at(source, "scoring")}}
    shard = _integers(source.get("shard"))
    deciding: tuple[Deciding, ...] = get_args(Deciding)
    return RunOptions(
        iterations=integer(source, "iterations", _DEFAULT.iterations),
        min_pass_rate=number(source, "minPassRate", _DEFAULT.min_pass_rate),
        undecided="fail" if source.get("undecided") == "fail" else "ignore",
        min_decided=number(source, "minDecided", None),
        concurrency=integer(source, "concurrency", _DEFAULT.concurrency),
        case_timeout=number(source, "caseTimeoutSeconds", _DEFAULT.case_timeout),
        rate_limit=number(source, "rateLimit", None),
        retries=integer(source, "retries", _DEFAULT.retries),
        max_errors=integer(source, "maxErrors", None),
        seed=integer(source, "seed", None),
        cases=_integers(source.get("cases")),
        shard=(shard[0], shard[1]) if shard is not None and len(shard) == _PAIR else None,
        confirms=text(source, "confirms") or "",
        scoring=_read_scoring(object_at(source, "scoring")),
        decides=_one_of(deciding, text(source, "decides"), _DEFAULT.decides),
        origin=_read_origin(object_at(source, "origin")),
        setup=_read_setup(object_at(source, "setup")),
    )


def _read_setup(source: JsonObject) -> Setup:
    return Setup(*((text(source, name) or "")[: limits.MAX_ERROR_CHARS] for name in Setup._fields))


def _read_origin(source: JsonObject) -> Origin:
    suite, branch, revision = ((text(source, name) or "")[: limits.MAX_LABEL_CHARS] for name in Origin._fields[:3])
    return Origin(suite, branch, revision, tuple(texts(source, "tags")[: limits.MAX_RUN_TAGS]))


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
