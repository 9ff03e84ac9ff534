"""Archives of runs: a manifest with all rows that belong to them, and their results in a Parquet file.

The manifest is written last and has checksums, so that a folder without it is not an archive. Results have the bytes
that the journal wrote, and beside them columns for people who query the file.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.errors import ArchiveError, NotFound, StoreError, StoreFull, UsageError
from evalmeta.store.copying import Table, plain_value, tables
from evalmeta.store.sql import Row, Value
from evalmeta.store.sqlite import SqliteDatabase, open_sqlite, read_migrations
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.store.archive_folders import ArchiveFolder
    from evalmeta.store.database import Database

MANIFEST: Final = "manifest.json"
RESULTS: Final = "results.parquet"
FILES: Final = frozenset({MANIFEST, RESULTS})
_LAYOUT: Final = 1
_KIND: Final = "evalmeta archive"
_DIGEST_BYTES: Final = 16
_STORED: Final = ("run_id", "iteration", "number", "verdict", "body")
_RESULTS_OF: Final = f"SELECT {', '.join(_STORED)} FROM case_result WHERE run_id = ? ORDER BY iteration, number"
_INSERT: Final = f"INSERT INTO case_result ({', '.join(_STORED)}) VALUES (?, ?, ?, ?, ?)"


class RunKey(NamedTuple):
    """A run: the address of its org, empty for the project's own, and its id."""

    org_url: str
    id: str


@dataclass(frozen=True, slots=True)
class ResultsFile:
    """The file of the results: its size and checksum, and the checksum of the rows, whatever the file's encoding."""

    rows: int
    checksum: str
    bytes: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive has.

    Attributes:
        runs: the ids of the runs that were named, in their order; others only asked their suspect cases again.
        rows: the rows of each table of the store but that of results, with the columns of its layout.
        store_layout: the number of that layout.
    """

    runs: tuple[str, ...]
    rows: Mapping[str, Sequence[JsonObject]]
    results: ResultsFile
    store_layout: int

    def is_same(self, other: Manifest) -> bool:
        """Return whether another archive has the same runs, rows and results."""
        mine, others = ((one.runs, one.rows, one.results.rows, one.results.checksum) for one in (self, other))
        return mine == others

    def write(self) -> bytes:
        """Return it as JSON."""
        document = {
            "kind": _KIND,
            "layout": _LAYOUT,
            "version": __version__,
            "storeLayout": self.store_layout,
            "runs": self.runs,
            "results": {"file": RESULTS, **asdict(self.results)},
            "tables": self.rows,
        }
        return orjson.dumps({**document, "sha256": _checksum(document)}, option=orjson.OPT_INDENT_2)


def _checksum(document: Mapping[str, object]) -> str:
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_manifest(folder: ArchiveFolder) -> Manifest:
    """Return the manifest of an archive.

    Raise NotFound if the folder has none, UsageError if it is not one of an archive or of a newer evalmeta, and
    ArchiveError if it is damaged.
    """
    try:
        content = folder.read(MANIFEST, max_bytes=limits.MAX_ARCHIVE_MANIFEST_BYTES)
    except NotFound:
        names = folder.names()
        what = "an archive that was not completed" if RESULTS in names else "no archive of runs"
        archive_it = f"Write one: evalmeta test archive RUN... {folder.name}"
        raise NotFound(f"{folder.name} has {what}", actions=[archive_it]) from None
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise _damaged(folder, f"{MANIFEST} is not valid JSON") from None
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        raise UsageError(f"{folder.name} is not an archive of runs: its {MANIFEST} is of another program")
    layouts = (document.get("layout"), document.get("storeLayout"))
    for layout, known in zip(layouts, (_LAYOUT, len(read_migrations())), strict=True):
        if not isinstance(layout, int) or layout > known:
            raise UsageError(
                f"{folder.name} was written by a newer evalmeta, {document.get('version')} (this is {__version__})",
                actions=["Upgrade evalmeta."],
            )
    if document.pop("sha256", None) != _checksum(document):
        raise _damaged(folder, f"{MANIFEST} does not have its checksum")
    results = {name: value for name, value in document["results"].items() if name != "file"}
    return Manifest(tuple(document["runs"]), document["tables"], ResultsFile(**results), document["storeLayout"])


def _damaged(folder: ArchiveFolder, why: str) -> ArchiveError:
    return ArchiveError(
        f"{folder.name} is damaged: {why}", actions=["Copy it from a backup, or archive its runs again."]
    )


def describe(database: Database, named: Sequence[RunKey], others: Sequence[RunKey] = ()) -> Manifest:
    """Return the manifest of an archive with runs, without the size of its file; call it in a snapshot.

    `others` are the runs that asked suspect cases of the named ones again. All results are read.
    """
    counted = _Counted()
    for _ in counted.rows(_stored_rows(database, [*named, *others])):
        pass
    return _manifest(database, named, others, counted.file())


def write_archive(
    database: Database, folder: ArchiveFolder, named: Sequence[RunKey], others: Sequence[RunKey] = ()
) -> Manifest:
    """Write an archive with runs, and return its manifest; arguments are those of `describe`."""
    counted, digest, size = _Counted(), hashlib.sha256(), 0

    def pieces() -> Iterator[bytes]:
        nonlocal size
        for piece in _parquet_pieces(counted.rows(_stored_rows(database, [*named, *others]))):
            digest.update(piece)
            size += len(piece)
            yield piece

    folder.put(RESULTS, pieces())
    results = replace(counted.file(), bytes=size, sha256=digest.hexdigest())
    manifest = _manifest(database, named, others, results)
    if len(content := manifest.write()) > limits.MAX_ARCHIVE_MANIFEST_BYTES:
        raise UsageError("these are too many runs for one archive", actions=["Archive some of them at a time."])
    folder.put(MANIFEST, [content])
    return manifest


def _manifest(database: Database, named: Sequence[RunKey], others: Sequence[RunKey], results: ResultsFile) -> Manifest:
    rows, layout = rows_of(database, [*named, *others]), len(read_migrations())
    return Manifest(tuple(key.id for key in named), rows, results, layout)


def _stored_rows(database: Database, keys: Iterable[RunKey]) -> Iterator[Row]:
    for key in keys:
        for *case, body in () if key.org_url else database.rows(_RESULTS_OF, (key.id,)):
            yield *case, body if type(body) is bytes else plain_value("BLOB", body)


class _Counted:
    """The number of results, and the checksum of their rows."""

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._rows = 0

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Pass rows on."""
        for row in rows:
            run_id, iteration, number, verdict, body = row
            self._digest.update(f"{run_id} {iteration} {number} {verdict} {len(body)}:".encode())
            self._digest.update(body)
            self._rows += 1
            yield row

    def file(self) -> ResultsFile:
        return ResultsFile(self._rows, self._digest.hexdigest())


def rows_of(database: Database, keys: Sequence[RunKey]) -> dict[str, list[JsonObject]]:
    """Return the rows that belong to runs, by table, but not those of their results."""
    known = {table.name: table for table in tables()}
    rows: dict[str, list[JsonObject]] = {}

    def add(name: str, condition: str, values: Sequence[Value]) -> list[Row]:
        table = known[name]
        sql = f"SELECT {', '.join(table.columns)} FROM {name} WHERE {condition}"
        found = database.query(sql, values)
        rows.setdefault(name, []).extend(_as_json(table, row) for row in found)
        return found

    digests, suites = dict[Value, None](), dict[Value, None]()
    for key in keys:
        is_own = not key.org_url
        name, condition = ("run", "id = ?") if is_own else ("remote_run", "org_url = ? AND id = ?")
        for row in add(name, condition, (key.id,) if is_own else key):
            columns = dict(zip(known[name].columns, row, strict=True))
            digests[columns["content_sha256"]] = suites[columns["suite"]] = None
        add("mark", "org_url = ? AND run_id = ? ORDER BY iteration, number, name, turn, user_id", key)
    for digest in digests:
        if digest is not None:
            add("content", "sha256 = ?", (digest,))
    for suite in suites:
        if add("suite", "id = ?", (suite,)):
            add("suite_test", "suite = ? ORDER BY place", (suite,))
    return rows


def _as_json(table: Table, row: Row) -> JsonObject:
    return {
        column: _json_value(plain_value(kind, value))
        for column, kind, value in zip(table.columns, table.types, row, strict=True)
    }


def _json_value(value: Value) -> JsonValue:
    """Return a value of a row as JSON: bytes are text if they are UTF-8, and otherwise hexadecimal numbers."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def _sql_value(kind: str, value: JsonValue) -> Value:
    if isinstance(value, dict):
        return bytes.fromhex(str(value["hex"]))
    if isinstance(value, list | bool):
        raise TypeError(value)
    return plain_value(kind, value)


class _Pieces(io.RawIOBase):
    """A file whose content is taken piece by piece while it is written."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, piece: bytes, /) -> int:  # type: ignore[override] # pyarrow writes bytes
        self._pieces.append(bytes(piece))
        return len(piece)

    def take(self) -> list[bytes]:
        taken, self._pieces = self._pieces, []
        return taken


def _parquet_pieces(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield the Parquet file of results; one row group is in memory at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    sink, schema = _Pieces(), _schema()
    with parquet.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        for group in _groups(rows):
            writer.write_table(_table(group, schema), row_group_size=len(group))
            yield from sink.take()
    yield from sink.take()


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    group, size = list[Row](), 0
    for row in rows:
        group.append(row)
        size += len(row[-1])
        if len(group) == limits.ARCHIVE_GROUP_ROWS or size >= limits.ARCHIVE_GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _schema() -> pa.Schema:
    import pyarrow as pa

    columns: list[tuple[str, pa.DataType]] = [
        ("run_id", pa.string()),
        ("iteration", pa.int32()),
        ("number", pa.int32()),
        ("verdict", pa.string()),
        ("utterance", pa.string()),
        ("answer", pa.string()),
        ("topic", pa.string()),
        ("latency_ms", pa.float64()),
        ("started", pa.timestamp("ms", tz="UTC")),
        ("error", pa.string()),
        ("results", pa.list_(pa.struct(_result_fields()))),
        ("body", pa.binary()),
    ]
    return pa.schema(columns)


def _result_fields() -> list[pa.Field[pa.DataType]]:
    import pyarrow as pa

    return [pa.field("name", pa.string()), pa.field("verdict", pa.string()), pa.field("score", pa.float64())]


def _table(group: Sequence[Row], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    run_ids, iterations, numbers, verdicts, bodies = zip(*group, strict=True)
    cases = [orjson.loads(body) for body in bodies]
    # The places are those of `encode_case`; there is no answer if the agent gave none.
    answers = [case[7] or (None,) * 4 for case in cases]
    columns: list[Sequence[object]] = [
        *(run_ids, iterations, numbers, verdicts, [case[2] for case in cases]),
        *([answer[place] for answer in answers] for place in (0, 1, 3)),
        [round(1000 * case[4]) for case in cases],
        [case[8] for case in cases],
    ]
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, schema, strict=False)]
    results = _results_array([case[6] for case in cases])
    return pa.table([*arrays, results, pa.array(bodies, type=pa.binary())], schema=schema)


# The place in a stored result that says that it is only a number, which has no verdict.
_IS_MEASURED: Final = 12


def _results_array(results: Sequence[Sequence[Row]]) -> pa.Array[pa.ListScalar[pa.DataType]]:
    import pyarrow as pa

    ends = [0]
    for of_case in results:
        ends.append(ends[-1] + len(of_case))
    flat = [*chain.from_iterable(results)]
    verdicts = [None if len(result) > _IS_MEASURED and result[_IS_MEASURED] else result[1] for result in flat]
    columns, fields = ([result[0] for result in flat], verdicts, [result[4] for result in flat]), _result_fields()
    arrays = [pa.array(values, type=field.type) for values, field in zip(columns, fields, strict=True)]
    return pa.ListArray.from_arrays(pa.array(ends, type=pa.int32()), pa.StructArray.from_arrays(arrays, fields=fields))


def fetch_results(folder: ArchiveFolder, manifest: Manifest, copy: Path) -> None:
    """Copy the file of the results; raise ArchiveError if it does not have its checksum."""
    digest = hashlib.sha256()
    try:
        with copy.open("wb") as file:
            for piece in folder.pieces(RESULTS):
                digest.update(piece)
                file.write(piece)
    except OSError as error:
        raise StoreError(f"{copy} cannot be written: {error.strerror}") from None
    if digest.hexdigest() != manifest.results.sha256:
        raise _damaged(folder, f"{RESULTS} does not have its checksum")


def read_results(folder: ArchiveFolder, manifest: Manifest, copy: Path) -> Iterator[Row]:
    """Yield the stored columns of all results in a copy of their file, in order.

    Raise ArchiveError at the end if the rows do not have their checksum.
    """
    counted = _Counted()
    yield from counted.rows(_parquet_rows(folder, copy))
    read = counted.file()
    if (read.rows, read.checksum) != (manifest.results.rows, manifest.results.checksum):
        raise _damaged(folder, f"{RESULTS} does not have the results of its manifest")


def _parquet_rows(folder: ArchiveFolder, path: Path) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for place in range(file.num_row_groups):
                size = file.metadata.row_group(place).total_byte_size
                if size > limits.MAX_ARCHIVE_GROUP_BYTES:
                    raise _damaged(folder, f"a row group of {RESULTS} has {size:,} bytes")
                group = file.read_row_group(place, columns=[*_STORED])
                yield from zip(*(group[column].to_pylist() for column in _STORED), strict=True)
    except (pa.ArrowException, KeyError) as error:
        raise _damaged(folder, f"{RESULTS}: {error}") from None


def load_archive(
    folder: ArchiveFolder, manifest: Manifest, state: Path, *, on_progress: Callable[[int], None] = lambda _: None
) -> None:
    """Load an archive into the database of a new state folder.

    The layout is that of the archive; opening the database brings it up to date.
    """
    copy = state / RESULTS
    fetch_results(folder, manifest, copy)
    try:
        with open_sqlite(state, layout=manifest.store_layout) as database:
            # It is deleted with the process, so that nothing of it must survive a crash.
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "foreign_keys = OFF"):
                database.query(f"PRAGMA {pragma}")
            with database.transaction():
                for name, rows in manifest.rows.items():
                    _load_rows(database, name, rows)
                database.execute_many(_INSERT, _noted(read_results(folder, manifest, copy), on_progress))
            if database.query("PRAGMA foreign_key_check"):
                raise _damaged(folder, "rows without their run")
            database.query("PRAGMA journal_mode = WAL")
    except StoreFull:
        raise
    except (StoreError, KeyError, TypeError, ValueError) as error:
        raise _damaged(folder, f"{MANIFEST} has rows that cannot be stored ({error})") from None
    copy.unlink()


def _noted(rows: Iterable[Row], on_progress: Callable[[int], None]) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        if number % limits.ARCHIVE_PROGRESS_ROWS == 0:
            on_progress(number)
        yield row


def _load_rows(database: SqliteDatabase, name: str, rows: Sequence[JsonObject]) -> None:
    """Insert rows into a table, whose columns they must have."""
    columns = database.query("SELECT name, type FROM pragma_table_info(?)", (name,))
    names = [column for column, _ in columns]
    if any(sorted(row) != sorted(names) for row in rows) or not names:
        raise ValueError(f"{name} has other columns")
    values = ([_sql_value(kind, row[column]) for column, kind in columns] for row in rows)
    database.load(name, names, values)
