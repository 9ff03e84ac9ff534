"""What prevents runs from starting: every reason with the runs that it affects, as values, as JSON and as one error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import EvalmetaError, NotFound, SettingsError, SubjectNotBound, UsageError
from evalmeta.protocol.json_fields import list_of_objects, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from evalmeta.model.json_value import JsonObject


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
    return [_read_fault(value) for value in list_of_objects(source, "faults")]


def _read_fault(source: JsonObject) -> RunFault:
    actions, runs = source.get("actions"), source.get("runs")
    error = _CLASSES.get(text(source, "name"), UsageError)(
        text(source, "message"), actions=[str(action) for action in actions] if isinstance(actions, list) else ()
    )
    return RunFault(
        error, tuple(number for number in runs if isinstance(number, int)) if isinstance(runs, list) else ()
    )


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
