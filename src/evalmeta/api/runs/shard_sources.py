"""Where the runs of shards are: in stores, in folders with state folders and reports, and in JSON reports."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.api.runs.baselines import read_documents, run_of
from evalmeta.api.runs.shards import FoundShards, Shard, content_facts, hash_facts, shards_in
from evalmeta.api.stores import find_store
from evalmeta.errors import EvalmetaError, NotFound, UsageError
from evalmeta.model.registry import EVALUATION_DEFINITION, hash_of, type_of_run
from evalmeta.model.run import ContentKind, Run, RunContent
from evalmeta.model.store import Store
from evalmeta.package.files import read_file, shown
from evalmeta.package.folders import find_components
from evalmeta.package.trust import STATE_FOLDER
from evalmeta.protocol.json_fields import object_at, text
from evalmeta.store.components import Components
from evalmeta.store.database import open_database
from evalmeta.store.runs import Runs
from evalmeta.store.stored_cases import encode_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.package.project import Project
    from evalmeta.store.sql import Row

_FILE: Final = "org.sqlite3"
_BEGINNING: Final = 16_384
_MARK: Final = b'"testCases"'
_FILE_KEYS: Final = {"file", "digest", "subjectName", "subject", "reading"}
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def find_shards(project: Project, words: Sequence[str]) -> FoundShards:
    """Return the runs of shards in what words name: folders, JSON reports, or stores as `find_store` does.

    Of each store, the newest suite of each shard is taken, and of folders also the reports of other runs. Raise
    NotFound for a word that names no run of a shard.
    """
    stores: dict[str, FoundShards] = {}
    reports: dict[str, list[Shard]] = {}
    for word in words:
        places, files = _places_at(project, word)
        for label, store in places:
            if label not in stores:
                stores[label] = shards_in(store, label)
        for path in files:
            if str(path) not in reports:
                reports[str(path)] = _shards_in_report(project, path, is_named=str(path) == word)
        has_shards = any(stores[label].runs or stores[label].unstarted for label, _ in places)
        if not (has_shards or any(reports[str(path)] for path in files) or Path(word).is_file()):
            raise _no_shard(word)
    found = FoundShards()
    for of_store in stores.values():
        found = found.joined(of_store)
    known = {shard.identity for shard in found.runs}
    others = [shard for shards in reports.values() for shard in shards if shard.identity not in known]
    return found.joined(FoundShards(tuple(others)))


def _no_shard(word: str) -> NotFound:
    return NotFound(
        f"{word} has no run with --shard",
        actions=[
            "Name the state folder of each shard, which is .evalmeta or that of EVALMETA_HOME.",
            "Or name the store that the shards had in common: shared, or its URL.",
        ],
    )


def _places_at(project: Project, word: str) -> tuple[list[tuple[str, Store]], list[Path]]:
    """Return the stores that a word names, with their names in messages, and the files that may be reports."""
    path = Path(word)
    if path.is_dir():
        folders, files = _search(path)
        return [(shown(folder.absolute()), Store(folder.absolute())) for folder in folders], files
    if path.exists():
        return [], [path]
    if "://" in word or word in {"local", "shared"}:
        return [(word, find_store(project, word))], []
    raise NotFound(f"{word} cannot be found")


def _search(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the state folders and the JSON files at or below a folder; raise UsageError if it is too large."""
    for candidate in (folder, folder / STATE_FOLDER):
        if (candidate / _FILE).is_file():
            return [candidate], []
    found: list[Path] = []
    reports: list[Path] = []
    entries = 0
    for path, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        if entries > limits.MAX_SHARD_ENTRIES:
            raise UsageError(
                f"{folder} has more than {limits.MAX_SHARD_ENTRIES:,} files and folders",
                actions=["Name the folder of each shard."],
            )
        depth = len(Path(path).relative_to(folder).parts)
        wanted = sorted(name for name in folders if name == STATE_FOLDER or not name.startswith("."))
        folders[:] = wanted if depth < limits.MAX_SHARD_DEPTH else []
        if _FILE in files:
            found.append(Path(path))
            folders.clear()
        else:
            reports += [Path(path, name) for name in sorted(files) if name.endswith(".json")]
    return found, reports


def test_of(project: Project, run: Run) -> JsonObject | None:
    """Return what a JSON report says about the content of a shard's test; None if the run is in another org."""
    with open_database(project.store) as database:
        runs = Runs(database)
        stored = runs.get(run.id)
        # Runs of other orgs may have the same id.
        if stored is None or stored.options.origin.suite != run.options.origin.suite:
            return None
        kind, key = runs.content_key(run.id)
    return {"kind": kind.value, **(orjson.loads(key) if kind is ContentKind.FILE else {"sha256": key.hex()})}


def _shards_in_report(project: Project, path: Path, *, is_named: bool) -> list[Shard]:
    """Return the runs of shards in a JSON report; a file that was only found in a folder may be something else."""
    try:
        if not is_named and not _may_be_report(path):
            return []
        documents = read_documents(path)
        runs = [(run_of(path, document), object_at(object_at(document, "evalmeta"), "test")) for document in documents]
    except (OSError, EvalmetaError) as error:
        if not is_named:
            return []
        if isinstance(error, OSError) or path.suffix != ".jsonl":
            raise
        raise UsageError(
            f"{path} is JSON Lines, which has results without their options and the content of the test",
            actions=["Name the store of the shard, or a report of the format json."],
        ) from None
    shards = [_reported(project, path, run, test) for run, test in runs if _is_of_shard(run)]
    if is_named and runs and not shards:
        raise _no_shard(str(path))
    return shards


def _is_of_shard(run: Run) -> bool:
    number, shards = run.options.shard or (0, 0)
    return 1 <= number <= shards <= limits.MAX_SHARDS and run.answers_of is None


def _may_be_report(path: Path) -> bool:
    if not path.is_file() or path.stat().st_size > limits.MAX_JSON_BYTES:
        return False
    with path.open("rb") as file:
        return _MARK in file.read(_BEGINNING)


def _reported(project: Project, path: Path, run: Run, test: JsonObject) -> Shard:
    rows = sorted((case.iteration, case.number, case.verdict.value, encode_case(case)) for case in run.cases)
    digest = text(test, "sha256")
    if text(test, "kind") == ContentKind.FILE.value and test.keys() >= _FILE_KEYS:
        content = RunContent(orjson.dumps({key: test[key] for key in test if key != "kind"}), ContentKind.FILE)
        facts = content_facts(content)
    elif _SHA256.fullmatch(digest):
        content, facts = _content_with(project, run, digest), hash_facts(bytes.fromhex(digest))
    else:
        raise UsageError(
            f"{path} does not say of which content of {run.definition} its results are",
            actions=["Name the store of the shard, or write the report with this version of evalmeta."],
        )
    return Shard(shown(path.absolute()), replace(run, cases=()), content, facts, len(rows), partial(_page, rows))


def _content_with(project: Project, run: Run, digest: str) -> RunContent:
    """Return the definition with a SHA-256 in the org or the project; only the hash if neither has it."""
    kind = type_of_run(run.id) or EVALUATION_DEFINITION
    with open_database(project.store) as database:
        deployed = Components(database).content(kind.name, run.definition)
    components = find_components(project) if deployed is None or hash_of(deployed).hex() != digest else ()
    files = [file.path for file in components if (file.type, file.full_name) == (kind, run.definition)]
    for content in filter(None, [deployed, *map(read_file, files)]):
        if hash_of(content).hex() == digest:
            return RunContent(content)
    return RunContent(orjson.dumps({"sha256": digest}), ContentKind.CASES)


def _page(rows: Sequence[Row], after: tuple[int, int], cases: int, _: int) -> Sequence[Row]:
    start = bisect_right(rows, after, key=itemgetter(0, 1))
    return rows[start : start + cases]
