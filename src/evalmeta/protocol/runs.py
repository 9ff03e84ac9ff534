"""What evalmeta adds to the Connect API: the options and the definition of a run, and why runs cannot start."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import EvalmetaError, MessageUnreadable, NotFound, SettingsError, SubjectNotBound, UsageError
from evalmeta.model.run import ContentKind, RunContent
from evalmeta.model.run_options import RUN_OPTIONS, SCORING_OPTIONS, Option, Origin, RunOptions, Scoring, Setup
from evalmeta.protocol.json_fields import integer, list_of_objects, number, object_at, optional_text, text, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue


class RunDefinition(NamedTuple):
    """The definition of a run as it was when the run was created, and as it is deployed now; None if it is gone."""

    original: RunContent
    current: bytes | None
    is_abandoned: bool


def write_run_definition(definition: RunDefinition) -> JsonObject:
    """Write the definition of a run, an extension of evalmeta."""
    current = None if definition.current is None else b64encode(definition.current).decode()
    original, kind = definition.original
    then = b64encode(original).decode()
    return {"then": then, "kind": kind.value, "now": current, "isAbandoned": definition.is_abandoned}


def read_run_definition(source: JsonObject) -> RunDefinition:
    """Read the definition of a run; raise MessageUnreadable if it is not valid base64."""
    current = optional_text(source, "now")
    kind = text(source, "kind")
    try:
        then = b64decode(text(source, "then"), validate=True)
        original = RunContent(then, ContentKind(kind) if kind in {*ContentKind} else ContentKind.DEFINITION)
        return RunDefinition(
            original, None if current is None else b64decode(current, validate=True), source.get("isAbandoned") is True
        )
    except binascii.Error:
        raise MessageUnreadable("the definition of a run is not valid base64") from None


_DEFAULT: Final = RunOptions()
_PAIR: Final = 2
_LABELS: Final = ("suite", "branch", "revision", "subject", "parent")


def write_options(options: RunOptions) -> JsonObject:
    """Write run options."""
    nested = {"origin": options.origin._asdict(), "setup": options.setup._asdict()}
    known: JsonObject = {
        name: {key: value for key, value in facts.items() if value}
        for name, facts in nested.items()
        if any(facts.values())
    }
    return {**_written(options, RUN_OPTIONS), **known, "scoring": _written(options.scoring, SCORING_OPTIONS)}


def _written(owner: RunOptions | Scoring, options: Sequence[Option]) -> JsonObject:
    values = [(option, getattr(owner, option.name)) for option in options]
    return {option.wire: value for option, value in values if not (option.is_sparse and value == option.default)}


_DEFAULT_WRITTEN: Final = write_options(_DEFAULT)


def read_options(source: JsonObject, *, default: RunOptions = _DEFAULT) -> RunOptions:
    """Read run options; missing keys have the values of `default`, and unknown values those of evalmeta."""
    # Lists read the options of all their runs.
    missing = _DEFAULT_WRITTEN if default is _DEFAULT else write_options(default)
    source = {**missing, **source}
    scoring = {**object_at(missing, "scoring"), **object_at(source, "scoring")}
    origin, setup = object_at(source, "origin"), object_at(source, "setup")
    place = min(max(0, integer(origin, "place", 0)), limits.MAX_INTEGER)
    labels = (text(origin, name)[: limits.MAX_LABEL_CHARS] for name in _LABELS)
    suite, branch, revision, subject, parent = labels
    tags, project = texts(origin, "tags")[: limits.MAX_RUN_TAGS], text(origin, "project")[: limits.MAX_ERROR_CHARS]
    return RunOptions(
        **_values(source, RUN_OPTIONS),  # type: ignore[arg-type] # each has the type of its row
        scoring=Scoring(**_values(scoring, SCORING_OPTIONS)),  # type: ignore[arg-type]
        origin=Origin(
            suite, branch, revision, tuple(tags), place, project, subject, parent, origin.get("is_clean") is True
        ),
        setup=Setup(*(text(setup, name)[: limits.MAX_ERROR_CHARS] for name in Setup._fields)),
    )


def _values(source: JsonObject, options: Sequence[Option]) -> dict[str, object]:
    return {option.name: _value(source, option) for option in options}


def _value(source: JsonObject, option: Option) -> object:
    """Return the value of an option, or its default if the value has another type or is not a choice."""
    value = source.get(option.wire)
    match option.kind:
        case "integer":
            return integer(source, option.wire, option.default)
        case "number":
            return number(source, option.wire, option.default)
        case "text":
            return text(source, option.wire) or option.default
        case "choice":
            return value if value in option.choices else option.default
        case "integers":
            return _integers(value)
    pair = _integers(value) or ()
    return pair if len(pair) == _PAIR else option.default


def _integers(value: JsonValue) -> tuple[int, ...] | None:
    if not isinstance(value, list | tuple):
        return None
    return tuple(number for number in value if isinstance(number, int) and not isinstance(number, bool))


_CLASSES: Final = {kind.__name__: kind for kind in (NotFound, SettingsError, SubjectNotBound)}
_SHOWN_TESTS: Final = 5


class RunFault(NamedTuple):
    """A reason why runs cannot start, and their places in the request, from 0."""

    error: EvalmetaError
    runs: tuple[int, ...]


def write_faults(faults: Iterable[RunFault], *, clean: Callable[[str], str] = str) -> JsonObject:
    """Write faults; `clean` removes from texts what the client must not see."""
    return {
        "faults": [
            {
                "name": error.name,
                "message": clean(str(error)),
                "actions": [clean(action) for action in error.actions],
                "runs": list(runs),
            }
            for error, runs in faults
        ]
    }


def read_faults(source: JsonObject) -> list[RunFault]:
    """Read faults; the class of an unknown error is UsageError."""
    return [
        RunFault(
            _CLASSES.get(text(fault, "name"), UsageError)(text(fault, "message"), actions=texts(fault, "actions")),
            _integers(fault.get("runs")) or (),
        )
        for fault in list_of_objects(source, "faults")
    ]


def joined_error(faults: Sequence[RunFault], tests: Sequence[str]) -> EvalmetaError:
    """Return one error for all faults; `tests` are the names of the runs, shown where a fault affects some of them."""
    affected: dict[str, set[int]] = {}
    for error, runs in faults:
        affected.setdefault(str(error), set()).update(runs)
    lines = [f"{message}{_named(runs, tests)}" for message, runs in affected.items()]
    kinds = {type(error) for error, _ in faults}
    kind = kinds.pop() if len(kinds) == 1 else SettingsError
    if len(lines) > 1:
        lines = [f"no test was run, for {len(lines)} reasons:", *lines]
    return (kind if kind in _CLASSES.values() else UsageError)(
        "\n  ".join(lines),
        problems=[*dict.fromkeys(problem for error, _ in faults for problem in error.problems)],
        actions=_joined_actions(action for error, _ in faults for action in error.actions),
    )


def _named(runs: set[int], tests: Sequence[str]) -> str:
    if len(runs) == len(tests):
        return ""
    names = [tests[number] for number in sorted(runs)]
    more = f" and {len(names) - _SHOWN_TESTS:,} more" if len(names) > _SHOWN_TESTS else ""
    return f" ({', '.join(names[:_SHOWN_TESTS])}{more})"


def _joined_actions(actions: Iterable[str]) -> list[str]:
    """Return each action once, and at the end the lines for the settings, below one heading of each kind."""
    plain: list[str] = []
    blocks: dict[str, list[str]] = {}
    for action in dict.fromkeys(actions):
        heading, _, lines = action.partition("\n\n")
        if lines:
            blocks.setdefault(heading, []).append(lines)
        else:
            plain.append(action)
    block = "\n\n".join(text for heading, lines in blocks.items() for text in (heading, *lines))
    return [*plain, block] if block else plain
