"""What the engine runs: a subject, cases, turns and expectations; which of the cases, and in which order.

People select cases as in `1,4-7`. A case in quarantine is known to be flaky or broken: it is run and shown, and counts
again after a date. Dates are days in UTC. Whether a quarantine has ended is decided by the day on which its run
started, and recorded with each case result, so that a run keeps its verdict whenever it is resumed, rescored or
reported.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import orjson

from evalmeta import limits
from evalmeta.model.definition import ContextVariable, Definition, Expectation, HistoryMessage
from evalmeta.model.expectations import parse_actions, render_actions, scorer_kind
from evalmeta.model.json_value import json_text
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import TESTING_DEFINITION, metadata_type

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run_options import RunOptions

    Key = int | str


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Quarantine(NamedTuple):
    """The quarantine of one case."""

    reason: str  # why its result does not count, for people
    until: date  # the last day on which it does not count
    has_ended: bool = False  # whether the run of the case started after that day, so that its result counts

    def on(self, day: date) -> Quarantine:
        """Return the quarantine as it is on a day."""
        return self._replace(has_ended=day > self.until)


def day_of(seconds: float) -> date:
    """Return the day in UTC of a time in seconds since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).date()


def today() -> date:
    """Return the day in UTC."""
    return datetime.now(UTC).date()


def parse_day(text: str) -> date | None:
    """Return a day such as 2027-01-31; None if the text is not one."""
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def end_fault(until: date) -> str:
    """Return why a quarantine must not end on a day; empty if it may."""
    latest = today() + timedelta(days=limits.MAX_QUARANTINE_DAYS)
    return f"{until} is more than {limits.MAX_QUARANTINE_DAYS} days away; the latest is {latest}" * (until > latest)


@dataclass(frozen=True, slots=True)
class Quarantines:
    """The quarantines of the cases of one run."""

    day: date  # the day on which the run started
    # Those of the project's settings for the test, by the number, the label or the utterance of the case.
    listed: Mapping[Key, Quarantine] = field(default_factory=dict)

    def find(self, own: Quarantine | None, *keys: Key) -> Quarantine | None:
        """Return the quarantine of a case on this day: its file's own or a listed one, whichever ends later.

        The keys of the case are its number, its label and its utterances.
        """
        known = [quarantine for quarantine in (own, *map(self.listed.get, keys)) if quarantine is not None]
        return max(known, key=lambda quarantine: quarantine.until).on(self.day) if known else None


def names_of_test(test: str, kind: str) -> frozenset[str]:
    """Return what the settings may call a test: the API name of a definition, or the path of another file."""
    file = PurePath(test).name
    return frozenset({test, f"{kind}:{test}", file, file.split(".", 1)[0]})


def ended_problem(location: Location, case: str, until: date) -> Problem:
    """Return the warning that the quarantine of a case has ended."""
    message = f"the quarantine of {case} ended on {until}, so its result counts again"
    hint = "Remove the quarantine, or give it a later day."
    return Problem("quarantine-ended", Severity.WARNING, location, message, hint)


def review_problem(location: Location, case: str) -> Problem:
    """Return the warning that a person must review a case, which is undecided until then."""
    message = f"{case} is undecided in every run, because it is marked review: true"
    hint = "Check its expectations, correct them, and remove the line."
    return Problem("review-pending", Severity.WARNING, location, message, hint)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message to the agent, and the expectations of the answer."""

    utterance: str
    expectations: tuple[Expectation, ...] = ()
    recorded: GeneratedData | None = None  # the answer that the file already contains; None if there is none
    recorded_error: str = ""  # the error in which the recorded agent ended instead of answering; empty if it answered
    inputs: JsonValue = None  # what an agent in Python receives, if it is not text; the utterance is its JSON text
    expected: JsonValue = None  # what functions that judge receive as `expected`


class SessionIds(NamedTuple):
    """What identifies the session of a case to its agent; the agent chooses what is empty."""

    app_name: str = ""
    user_id: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One case: turns in one session that begins with history, context variables and state."""

    number: int
    turns: tuple[Turn, ...]
    history: tuple[HistoryMessage, ...] = ()
    context_variables: tuple[ContextVariable, ...] = ()
    tags: tuple[str, ...] = ()
    label: str = ""  # its name in the file, for people; the number identifies the case
    # The initial state of the session; agents receive it as context, with the variables.
    state: JsonObject = field(default_factory=dict)
    not_run: str = ""  # why evalmeta cannot run the case, whose result is this error; empty if it can
    quarantine: Quarantine | None = None  # the quarantine that its file says; None without one
    metadata: JsonObject = field(default_factory=dict)  # what else its file says of it; the agent does not receive it
    approve: tuple[str, ...] = ()  # the tools that the agent may call when it waits for a person's approval
    review: bool = False  # whether a person must review it before its results can pass or fail
    iterations: int | None = None  # the number of times to run it, whatever the run says; None for the run's number
    session: SessionIds | None = None  # the ids of its session, if its file names them

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Return the tags that select the case: its own, and `NAME=VALUE` for each value of its metadata."""
        return all_tags(self.tags, self.metadata)


def all_tags(tags: tuple[str, ...], metadata: JsonObject | None) -> tuple[str, ...]:
    """Return the tags of a case, and `NAME=VALUE` for each value of its metadata."""
    values = ((name, value) for name, value in (metadata or {}).items() if not isinstance(value, dict | list))
    return (*tags, *(f"{name}={json_text(value)}" for name, value in values)) if metadata else tags


def metadata_fault(metadata: JsonObject) -> str:
    """Return why a case cannot have this metadata; empty if it can."""
    if len(metadata) > limits.MAX_METADATA_VALUES:
        return f"the metadata has {len(metadata):,} values; at most {limits.MAX_METADATA_VALUES} are allowed"
    try:
        size = len(orjson.dumps(metadata))
    except TypeError as error:
        return f"the metadata cannot be written as JSON: {error}"
    if size > limits.MAX_METADATA_BYTES:
        return f"the metadata has {size:,} bytes as JSON; at most {limits.MAX_METADATA_BYTES:,} are allowed"
    return ""


def iterations_fault(iterations: object) -> str:
    """Return why a case cannot have this number of iterations; empty if it can."""
    most = limits.MAX_ITERATIONS
    if isinstance(iterations, int) and not isinstance(iterations, bool) and 1 <= iterations <= most:
        return ""
    return f"'iterations' is {iterations!r}; whole numbers from 1 to {most} are allowed"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A named set of cases for one subject; case numbers are unique."""

    name: str
    subject_name: str
    cases: Iterable[Case]  # iterated over once per iteration and not kept in memory, because files may have any length
    subject_version: str | None = None
    subject_type: str = "AGENT"
    title: str = ""  # the name that the file says, for people; empty if it says none beside the name of the evaluation
    quarantines: Quarantines | None = None  # on the day of the run; None for those of its file today
    listed_tags: Mapping[str, frozenset[int] | None] = field(default_factory=dict)  # see `Settings.tags_of`

    def tags_of(self, case: Case) -> tuple[str, ...]:
        """Return the tags of a case: those of its file, and those that the project's settings give it."""
        if not self.listed_tags:
            return case.tags
        listed = (tag for tag, numbers in self.listed_tags.items() if numbers is None or case.number in numbers)
        return (*dict.fromkeys((*case.tags, *listed)),)


def evaluation_of(definition: Definition, *, name: str) -> Evaluation:
    """Return the evaluation of a definition; `name` is its API name (the file's full name).

    The message to a prompt template has its inputs, one per line; they are context variables too.
    """
    is_testing = definition.type == TESTING_DEFINITION
    numbers = case_numbers([case.number for case in definition.test_cases])
    cases = []
    for number, case in zip(numbers, definition.test_cases, strict=True):
        expectations = tuple(map(_scorer_expectation, case.expectations)) if is_testing else case.expectations
        inputs = case.inputs
        message, variables = inputs.utterance, inputs.context_variables
        if inputs.prompt_inputs:
            message = message or "\n".join(f"{given.reference_name}: {given.value}" for given in inputs.prompt_inputs)
            variables += tuple(ContextVariable(given.reference_name, given.value) for given in inputs.prompt_inputs)
        cases.append(Case(number, (Turn(message, expectations),), inputs.conversation, variables))
    header = definition.subject_name, tuple(cases), definition.subject_version, definition.subject_type
    return Evaluation(name, *header, title_of(definition, name=name))


def title_of(definition: Definition, *, name: str) -> str:
    """Return the name that a definition gives itself; empty if it is the name of its evaluation or of its file."""
    is_other = definition.name not in {name, PurePath(name).stem}
    return definition.name[: limits.MAX_LABEL_CHARS] if is_other else ""


def case_numbers(given: Sequence[int | None]) -> list[int]:
    """Return the numbers of test cases, of which some may have none in their file.

    Such a test case gets the first unused number from its position on (reference, AiEvaluationTestCase: "automatically
    calculated").
    """
    used = {number for number in given if number is not None}
    if len(used) == len(given):
        return [number for number in given if number is not None]
    numbers = []
    for place, known in enumerate(given, 1):
        number = place if known is None else known
        while known is None and number in used:
            number += 1
        used.add(number)
        numbers.append(number)
    return numbers


def _scorer_expectation(scorer: Expectation) -> Expectation:
    """Return a scorer as an expectation: a single action as a list, and an unknown scorer as a custom one."""
    if scorer_kind(scorer.name) is None:
        return replace(scorer, scorer_type="Custom")
    value = (scorer.expected_value or "").strip()
    if scorer.name == "action_sequence_match" and value and parse_actions(value) is None and not value.startswith("["):
        return replace(scorer, expected_value=render_actions([value]))
    return scorer


_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_LIST: Final = re.compile(r"[\d,\s-]+", re.ASCII)
_SHARD: Final = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)


class CaseList(NamedTuple):
    """Selected cases."""

    name: str  # the definition, as `Type:Name` if two have the name; empty for every definition
    numbers: frozenset[int] | None  # the numbers of the cases; None for all cases
    label: str = ""  # the label of a case, or `FILE:LABEL`; its number is not known yet


def parse_case_list(text: str, *, is_named: bool = False, takes_labels: bool = False) -> CaseList:
    """Parse a list such as `3`, `1,4-7` or `Order_Desk:3`; raise ValueError if the text is not valid.

    With `is_named`, a definition's name alone means all its cases. With `takes_labels`, a text that is not a list of
    numbers is the label of a case.
    """
    name, colon, numbers = text.strip().rpartition(":")
    if takes_labels and text.strip() and not _LIST.fullmatch(numbers):
        return CaseList("", None, text.strip())
    if is_named and not _RANGE.match(numbers) and (not colon or metadata_type(name)):
        return CaseList(text.strip(), None)
    if (colon and not name) or not numbers:
        raise ValueError(_wrong(text))
    return CaseList(name, frozenset(number for part in numbers.split(",") for number in _numbers(part, text)))


def parse_shard(text: str) -> tuple[int, int]:
    """Parse a shard such as `2/5`, the second of five; raise ValueError if there is no such shard."""
    match = _SHARD.fullmatch(text.strip())
    part, parts = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= part <= parts <= limits.MAX_SHARDS:
        raise ValueError(
            f"{text!r} is not a valid shard, such as 2/5 for the second of five (at most {limits.MAX_SHARDS})"
        )
    return part, parts


def _numbers(part: str, text: str) -> range:
    match = _RANGE.fullmatch(part.strip())
    if not match:
        raise ValueError(_wrong(text))
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first or last - first > limits.MAX_TEST_CASES:
        raise ValueError(_wrong(text))
    return range(first, last + 1)


def _wrong(text: str) -> str:
    return f"{text!r} is not a valid list of cases, such as 3, 1,4-7 or Order_Desk:3"


class WorkItem(NamedTuple):
    """One case in one iteration; iterations count from 1."""

    iteration: int
    case: Case


def work_items(
    evaluation: Evaluation, options: RunOptions, finished: Collection[tuple[int, int]]
) -> Iterator[WorkItem]:
    """Yield the work that is not finished, iteration by iteration, in the order of the cases or shuffled by the seed.

    Cases are read lazily, except that a seed needs all cases of an iteration at once, and that cases with more
    iterations than the run are kept.
    """
    longer: list[Case] = []
    usual, iteration, most = options.iterations, 1, 1
    while iteration <= most:
        # Reading all cases again for the few that have more iterations than the run would take long.
        cases = select_cases(evaluation, options) if iteration <= usual else iter(longer)
        if options.seed is not None:
            import random

            shuffled = list(cases)
            random.Random(f"{options.seed}:{iteration}").shuffle(shuffled)
            cases = iter(shuffled)
        for case in cases:
            times = usual if case.iterations is None else iterations_of(case, options)
            if times > most:  # noqa: PLR1730 - `max` takes longer than most of the loop
                most = times
            if iteration == 1 and times > usual:
                longer.append(case)
            if iteration <= times and (iteration, case.number) not in finished:
                yield WorkItem(iteration, case)
        iteration += 1


def iterations_of(case: Case, options: RunOptions) -> int:
    """Return how often a run asks a case: as often as the case says, or else as the run says."""
    own = case.iterations if options.iterations_by == "case" else None
    return options.iterations if own is None else own


class Workload(NamedTuple):
    """What a run must do.

    Attributes:
        results: the number of results that it must have.
        most_iterations: the most iterations of one of its cases if cases say for themselves how often they run; else 0.
    """

    results: int
    most_iterations: int


def workload(evaluation: Evaluation, options: RunOptions) -> Workload:
    """Count what a run must do, which iterates over the cases."""
    own = [case.iterations for case in select_cases(evaluation, options)]
    # The usual case costs next to nothing.
    if options.iterations_by == "run" or own.count(None) == len(own):
        return Workload(len(own) * options.iterations, 0)
    times = [options.iterations if number is None else number for number in own]
    return Workload(sum(times), max(times) if {*times} != {options.iterations} else 0)


InputKind: TypeAlias = "tuple[str, ...] | None"
"""How an input reaches a function: the keys of a mapping, which may be keywords; None for one argument."""


def input_kinds(cases: Iterable[Case]) -> frozenset[InputKind]:
    """Return the kinds of all inputs."""
    return frozenset(
        tuple(turn.inputs) if isinstance(turn.inputs, dict) else None for case in cases for turn in case.turns
    )


def select_cases(evaluation: Evaluation, options: RunOptions) -> Iterator[Case]:
    """Yield the cases of a run: those with the chosen numbers that are in its shard.

    The CRC-32 of `NAME:NUMBER` decides the shard, so that a case never changes its shard when others are added.
    """
    numbers = None if options.cases is None else frozenset(options.cases)
    shard, shards = options.shard or (1, 1)
    for case in evaluation.cases:
        if numbers is not None and case.number not in numbers:
            continue
        if shards == 1 or shard_of(evaluation.name, case.number, shards) == shard:
            yield case


def shard_of(name: str, number: int, shards: int) -> int:
    """Return in which of so many shards a case of a test is, from 1."""
    return zlib.crc32(f"{name}:{number}".encode()) % shards + 1
