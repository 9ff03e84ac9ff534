"""Results of a run that its shared store cannot take now, in a file of the state folder until it can be reached again.

The file has a line for each result, with a checksum. A line that a crash cut short was never reported, and is ignored.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import StoreError, StoreFull
from evalmeta.package.files import sync_file, sync_names
from evalmeta.package.trust import state_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_FOLDER: Final = "unsent"
_NAME_CHARS: Final = 8


class SpooledResult(NamedTuple):
    """A result as the store has it; the body is JSON without line breaks."""

    iteration: int
    number: int
    verdict: str
    body: bytes


class Batch(NamedTuple):
    """Results that were read together, and the place in the file after them."""

    results: list[SpooledResult]
    end: int


class Spool:
    """The results of one run. `identity` tells it from runs with the same id in other stores."""

    __slots__ = ("_size", "path")

    def __init__(self, folder: Path, run_id: str, *, identity: str) -> None:
        digest = hashlib.sha256(identity.encode()).hexdigest()[:_NAME_CHARS]
        self.path = state_file(folder, _FOLDER, f"{run_id}-{digest}.results")
        self._size: int | None = None

    @property
    def exists(self) -> bool:
        """Return whether there are results that the store may not have."""
        return self.path.exists()

    def append(self, results: Iterable[SpooledResult]) -> None:
        """Add results, which are on disk before this returns; raise StoreFull or StoreError."""
        lines = b"".join(map(_line, results))
        whole = self._whole() if self._size is None else self._size
        if whole + len(lines) > limits.MAX_SPOOL_BYTES:
            raise StoreFull(
                f"{self.path} has no room for more results: it may have {limits.MAX_SPOOL_BYTES:,} bytes",
                actions=["Run the command again when the store can be reached."],
            )
        # After an error, the next call removes what was written of them.
        self._size = None
        try:
            self._write(lines, whole)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}",
                actions=["Run the command again when the store can be reached."],
            ) from None
        self._size = whole + len(lines)

    def _write(self, lines: bytes, whole: int) -> None:
        is_new = not self.exists
        if is_new:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
        with self.path.open("r+b") as file:
            file.truncate(whole)
            file.seek(whole)
            file.write(lines)
            file.flush()
            sync_file(file.fileno())
        if is_new:
            sync_names(self.path.parent)

    def _whole(self) -> int:
        """Return the length of the file without a line at its end that is not whole."""
        return max((end for _, end in self._read(0)), default=0)

    def batches(self, *, after: int = 0) -> Iterator[Batch]:
        """Yield the results after a place in the file, up to `limits.JOURNAL_BATCH` at once."""
        results, end = list[SpooledResult](), after
        for result, end in self._read(after):
            results.append(result)
            if len(results) == limits.JOURNAL_BATCH:
                yield Batch(results, end)
                results = []
        if results:
            yield Batch(results, end)

    def remove(self) -> None:
        """Delete the file, whose results the store has."""
        self.path.unlink(missing_ok=True)
        self._size = None

    def _read(self, after: int) -> Iterator[tuple[SpooledResult, int]]:
        """Yield results and the places after them, up to the first line that is not whole."""
        try:
            with self.path.open("rb") as file:
                file.seek(after)
                end = after
                for line in file:
                    end += len(line)
                    if (result := _result(line)) is None:
                        return
                    yield result, end
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from None


def spooled_files(folder: Path) -> list[Path]:
    """Return the files of a state folder with results that their stores may not have; their names begin with runs."""
    return sorted(state_file(folder, _FOLDER).glob("*.results"))


def _line(result: SpooledResult) -> bytes:
    text = b"%d %d %s %s" % (result.iteration, result.number, result.verdict.encode(), result.body)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _result(line: bytes) -> SpooledResult | None:
    """Return the result of a line; None if the line is not whole."""
    checksum, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
        return None
    iteration, number, verdict, body = text.split(b" ", 3)
    return SpooledResult(int(iteration), int(number), verdict.decode(), body)
