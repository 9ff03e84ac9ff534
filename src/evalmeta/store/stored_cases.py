"""The case results of stored runs: their JSON, and sequences of them; those of a large run stay in the database.

A case result is a JSON array, which is small and quick to write. Rare fields are at the end of the array and are left
out if they are empty.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, cast, overload

import orjson

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.evaluation import Quarantine, all_tags
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, ErrorOrigin, TestResult, Verdict, Verdicts
from evalmeta.model.spending import Spent
from evalmeta.store.database import Database, open_database

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.spending import Role
    from evalmeta.model.tally import DetailedTally

    Change = Callable[[CaseResult], CaseResult]
    _Action: TypeAlias = tuple[str, JsonObject, JsonValue, float | None, *tuple[str | None, ...]]
    _Tokens: TypeAlias = tuple[int | None, int | None, *tuple[int | str | None, ...]]
    _Passages: TypeAlias = list[tuple[str, str | None]]
    _Rare: TypeAlias = tuple[
        _Passages | None, bool, float | None, JsonObject | None, Sequence[str] | None, str | None
    ]  # fmt: skip
    _Generated: TypeAlias = tuple[
        str, str | None, list[_Action] | None, float | None, str | None, _Tokens | None, JsonValue,
        *tuple[_Passages | bool | float | JsonObject | Sequence[str] | str | None, ...],
    ]  # fmt: skip
    _Field: TypeAlias = str | float | bool | Verdicts | None
    _Result: TypeAlias = tuple[_Field, ...]
    _Spent: TypeAlias = tuple[Role, str, *tuple[int, ...]]
    _Turns: TypeAlias = list[tuple[str, _Generated]]
    _Plain: TypeAlias = tuple[
        int, int, str, Verdict, float, float, list[_Result], _Generated | None, str | None,
    ]  # fmt: skip

# A key is an iteration, and below it a case number of so many bits.
_NUMBER_BITS: Final = 32
_NUMBERS: Final = (1 << _NUMBER_BITS) - 1
# The place in the array of a result that says whether it is only measured.
_IS_MEASURED: Final = TestResult._fields.index("is_measured")
# What an answer has if its array ends before.
_NOTHING_RARE: Final = None, False, None, None, None, None


def open_cases(database: Database, run_id: str, *, change: Change | None = None) -> Sequence[CaseResult]:
    """Return the finished cases of a run, ordered by iteration and number.

    Few cases are read at once. Others are read from the database each time they are used, which then must still exist;
    results that are added later are left out. `change` is applied to each case result.
    """
    [(size,)] = database.query("SELECT sum(length(body)) FROM case_result WHERE run_id = ?", (run_id,))
    stored = StoredCases(database, run_id, change=change)
    return stored if (size or 0) > limits.MAX_CASE_BYTES_IN_MEMORY else tuple(stored.read(database))


class StoredCases(Sequence["CaseResult"]):
    """The case results of a run in a database; only their keys are in memory."""

    __slots__ = ("_change", "_database", "_keys", "_run_id")

    def __init__(self, database: Database, run_id: str, *, change: Change | None = None) -> None:
        sql = "SELECT iteration, number FROM case_result WHERE run_id = ? ORDER BY iteration, number"
        rows = database.rows(sql, (run_id,))
        self._keys = array("Q", (iteration << _NUMBER_BITS | number for iteration, number in rows))
        self._database = database
        self._run_id = run_id
        self._change = change

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice[int | None, int | None, int | None]) -> tuple[CaseResult, ...]: ...
    def __getitem__(
        self, index: int | slice[int | None, int | None, int | None]
    ) -> CaseResult | tuple[CaseResult, ...]:
        if isinstance(index, slice):
            return tuple(self._find(self._keys[index]))
        return next(self._find([self._keys[index]]))

    def __iter__(self) -> Iterator[CaseResult]:
        with self._open() as database:
            yield from self.read(database)

    def by_number(self) -> Iterator[CaseResult]:
        """Yield the case results in order of number and iteration."""
        return self._find(sorted(self._keys, key=lambda key: (key & _NUMBERS, key)))

    def of_numbers(self, numbers: Collection[int]) -> Iterator[CaseResult]:
        """Yield the case results with some numbers, in order of iteration and number."""
        return self._find(key for key in self._keys if key & _NUMBERS in numbers)

    def read(self, database: Database) -> Iterator[CaseResult]:
        """Yield the case results in order of iteration and number, with one query."""
        keys = iter(self._keys)
        expected = next(keys, None)
        sql = "SELECT iteration, number, body FROM case_result WHERE run_id = ? ORDER BY iteration, number"
        for iteration, number, body in database.rows(sql, (self._run_id,)) if expected is not None else ():
            # Results that were added since are not in the keys.
            if iteration << _NUMBER_BITS | number == expected:
                yield self._case(body)
                expected = next(keys, None)
                if expected is None:
                    return
        if expected is not None:
            raise self._gone()

    def _find(self, keys: Iterable[int]) -> Iterator[CaseResult]:
        sql = "SELECT body FROM case_result WHERE run_id = ? AND iteration = ? AND number = ?"
        with self._open() as database:
            for key in keys:
                rows = database.query(sql, (self._run_id, key >> _NUMBER_BITS, key & _NUMBERS))
                if not rows:
                    raise self._gone()
                yield self._case(rows[0][0])

    def _case(self, body: bytes) -> CaseResult:
        case = decode_case(body)
        return case if self._change is None else self._change(case)

    def _open(self) -> Database:
        # Opening would create a new, empty database.
        if not self._database.exists:
            raise self._gone()
        return open_database(self._database.store)

    def _gone(self) -> StoreError:
        return StoreError(f"the results of run {self._run_id} are no longer in {self._database.name}")


def encode_case(case: CaseResult) -> bytes:
    """Return a case result of an own run, whose results have one verdict, as JSON for `decode_case`."""
    generated = case.generated
    body: _Plain = (
        case.number,
        case.iteration,
        case.utterance,
        case.verdict,
        case.started,
        case.ended,
        [result[: _length(result)] for result in case.results],
        None if generated is None else _from_generated(generated),
        case.error,
    )
    turns: _Turns = [(turn.utterance, _from_generated(turn.generated)) for turn in case.earlier]
    others = case.label, turns, case.traceback, case.checks
    has_rare = case.quarantine or case.asked_again or case.spent or case.metadata or case.unanswered or case.origin
    if not (has_rare or case.tags):
        return orjson.dumps((*body, *others), default=dict)
    quarantine = tuple(case.quarantine) if case.quarantine else None
    spent, unanswered = [tuple(row) for row in case.spent], case.unanswered and _from_generated(case.unanswered)
    others_last = case.metadata, unanswered, case.origin, case.tags
    rare: tuple[object, ...] = (quarantine, case.asked_again, spent, *others_last)
    while not rare[-1]:
        rare = rare[:-1]
    return orjson.dumps((*body, *others, *rare), default=dict)


def _length(result: TestResult) -> int:
    """Return the number of a result's fields up to the last that is not a default."""
    if result.is_measured:
        return 13
    return 10 if result.threshold is None and not result.turn else 12


def decode_case(body: bytes) -> CaseResult:
    """Return a case result from the JSON of `encode_case`."""
    source = orjson.loads(body)
    return _case(source[:9], *source[9:])


def count_answers(
    database: Database, run_id: str, tally: DetailedTally
) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Count the answers of a run, what they cost, and why results are undecided; return the verdicts by name, and tags.

    This takes a third of the time of reading case results and counting them. The tally gets no cases and no verdicts.
    """
    verdicts, tags = defaultdict[str, Counter[str]](Counter), Counter[str]()
    sql = "SELECT body FROM case_result WHERE run_id = ? ORDER BY iteration, number"
    for (body,) in database.rows(sql, (run_id,)):
        source = orjson.loads(body)
        _, _, _, _, _, _, results, generated, _, *others = source
        turns, spent, metadata, own = others[1:2], others[6:7], others[7:8], others[10:]
        if metadata:
            tags.update(all_tags(tuple(own[0] if own else ()), metadata[0]))
        answers = [*(answer for _, answer in (turns[0] if turns else ())), *([generated] if generated else ())]
        for _, _, _, latency_ms, _, tokens, _, *rare in answers:
            tally.add_answer(latency_ms, *(rare[2:3] or [None]), *(tokens[:2] if tokens else (None, None)))
        tally.add_spent(tuple(Spent(*row) for row in spent[0]) if spent else (), len(answers))
        tally.has_results |= bool(results)
        for result in results:
            if len(result) > _IS_MEASURED and result[_IS_MEASURED]:
                continue
            name, verdict, *rest = result
            verdicts[name][verdict] += 1
            if verdict == "UNDECIDED":
                tally.add_reason(name, rest[3])
    tally.has_judged = bool(verdicts)
    return verdicts, tags


def _from_action(action: Action) -> _Action:
    plain = action.name, action.input, action.output, action.latency_ms
    if action.review:
        return (*plain, action.error, action.review)
    return plain if action.error is None else (*plain, action.error)


def _from_generated(generated: GeneratedData) -> _Generated:
    tokens, retrieved, actions = generated.tokens, generated.retrieved, generated.actions
    plain = (
        generated.outcome,
        generated.topic,
        None if actions is None else [_from_action(action) for action in actions],
        generated.latency_ms,
        generated.session_id,
        None if tokens is None else _from_tokens(tokens),
        generated.trace,
    )
    passages = None if retrieved is None else [(passage.uri, passage.content) for passage in retrieved]
    # Defaults at the end are left out.
    if generated.state is not None or generated.handoffs is not None or generated.traceparent is not None:
        rare = passages, generated.is_json, generated.first_token_ms, generated.state, generated.handoffs
        return (*plain, *rare) if generated.traceparent is None else (*plain, *rare, generated.traceparent)
    if generated.first_token_ms is not None:
        return (*plain, passages, generated.is_json, generated.first_token_ms)
    if generated.is_json:
        return (*plain, passages, True)
    return plain if passages is None else (*plain, passages)


def _from_tokens(tokens: Tokens) -> _Tokens:
    plain = tokens.input, tokens.output
    return plain if tokens.cached is None and not tokens.model else (*plain, tokens.cached, tokens.model)


def _case(  # noqa: PLR0913, PLR0917 - the parts of the array
    source: _Plain,
    label: str = "",
    turns: _Turns | None = None,
    traceback: str = "",
    checks: str = "",
    quarantine: tuple[str, str, bool] | None = None,
    asked_again: int = 0,
    spent: Sequence[_Spent] = (),
    metadata: JsonObject | None = None,
    unanswered: _Generated | None = None,
    origin: str | None = None,
    tags: Sequence[str] = (),
) -> CaseResult:
    number, iteration, utterance, verdict, started, ended, results, generated, error = source
    return CaseResult(
        number,
        iteration,
        utterance,
        _verdict(verdict),
        started,
        ended,
        tuple(map(_result, results)),  # type: ignore[arg-type] # JSON has lists
        None if generated is None else _generated(generated),
        error,
        label,
        tuple(EarlierTurn(asked, _generated(answer)) for asked, answer in turns or ()),
        traceback,
        checks,
        None if quarantine is None else Quarantine(quarantine[0], date.fromisoformat(quarantine[1]), quarantine[2]),
        asked_again,
        tuple(Spent(*row) for row in spent),
        metadata,
        None if unanswered is None else _generated(unanswered),
        None if origin is None else ErrorOrigin(origin),
        tuple(tags),
    )


def _result(source: list[_Field]) -> TestResult:
    # In its place: the array was read for this result only, and a run has several million.
    source[1] = _verdict(source[1])
    return TestResult(*source)  # type: ignore[arg-type] # written by `encode_case`


@cache
def _verdict(name: str) -> Verdict:
    """Return a verdict by its name; the enum itself takes three times as long, and raises for other names too."""
    return Verdict(name)


def _generated(source: _Generated) -> GeneratedData:
    outcome, topic, actions, latency_ms, session_id, tokens, trace, *rare = source
    others = (*rare, *_NOTHING_RARE[len(rare) :]) if rare else _NOTHING_RARE
    retrieved, is_json, first_token_ms, state, handoffs, traceparent = cast("_Rare", others)
    return GeneratedData(
        outcome,
        topic,
        None if actions is None else tuple([Action(*action) for action in actions]),
        latency_ms,
        session_id,
        None if tokens is None else Tokens(*tokens),  # type: ignore[arg-type] # written by `_from_tokens`
        trace,
        None if retrieved is None else tuple(Passage(*passage) for passage in retrieved),
        is_json,
        first_token_ms,
        state,
        None if handoffs is None else tuple(handoffs),
        traceparent,
    )
