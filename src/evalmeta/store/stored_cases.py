"""The case results of a stored run as a sequence; those of a large run stay in the database."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, overload

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.store.database import open_database
from evalmeta.store.runs import decode_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evalmeta.model.run import CaseResult
    from evalmeta.store.database import Database

    Change = Callable[[CaseResult], CaseResult]

# A key is an iteration, and below it a case number of so many bits.
_NUMBER_BITS: Final = 32
_NUMBERS: Final = (1 << _NUMBER_BITS) - 1


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

    __slots__ = ("_change", "_keys", "_path", "_run_id")

    def __init__(self, database: Database, run_id: str, *, change: Change | None = None) -> None:
        sql = "SELECT iteration, number FROM case_result WHERE run_id = ? ORDER BY iteration, number"
        rows = database.rows(sql, (run_id,))
        self._keys = array("Q", (iteration << _NUMBER_BITS | number for iteration, number in rows))
        self._path = database.path
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
        if not self._path.exists():
            raise self._gone()
        return open_database(self._path.parent)

    def _gone(self) -> StoreError:
        return StoreError(f"the results of run {self._run_id} are no longer in {self._path}")
