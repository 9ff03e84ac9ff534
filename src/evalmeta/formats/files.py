"""Files of every format, read into what the engine runs."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError, NotFound
from evalmeta.formats.document import Document, Reading
from evalmeta.formats.registry import ADK_CONFIG, HEAD_BYTES, recognise
from evalmeta.model.evaluation import evaluation_of
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalmeta.formats.adk.config import AdkConfig
    from evalmeta.formats.registry import SourceFormat
    from evalmeta.model.json_value import JsonValue


_CHUNK_BYTES: Final = 1_000_000
_KNOWN: Final = """\
It can be a definition (XML), a test spec (YAML), a table of the Testing Center (CSV), an eval set of ADK (evalCases) \
or an array from before eval sets (query), an evaluation set of Databricks (request), \
or threads or entries of Ballerina."""
_SHOWN_KEYS: Final = 8
_KEY_CHARS: Final = 40
_MISSPELT: Final = ("test-config.json", "testconfig.json", "testConfig.json", "test_config.jsonc", "config.json")
_ENDINGS: Final = (".test.json", ".evalset.json")


def is_test_file(name: str) -> bool:
    """Says whether a file's name is one that ADK or Ballerina gives to tests."""
    return name.endswith(_ENDINGS)


def looks_like_evaluation(path: Path) -> bool:
    """Tells by a file's content whether it is surely of a known format; any YAML could be a test spec."""
    try:
        head = _bytes_of(path, HEAD_BYTES)
        return recognise(head) not in {None, "testspec"} or b"testCases" in head
    except NotFound:
        return False


def format_of(path: Path, *, label: str) -> SourceFormat:
    """Tells the format of a file by its content.

    Raises:
        NotFound: there is no such file, or it cannot be read.
        FormatError: it is of no known format.
    """
    head = _bytes_of(path, HEAD_BYTES)
    found = recognise(head)
    if not head.strip():
        raise FormatError(f"{label} is empty", actions=[_KNOWN])
    if found is None and len(head) >= HEAD_BYTES:
        found = recognise(_bytes_of(path, limits.MAX_JSON_BYTES))
    if found is None:
        raise _unknown(head, label)
    return found


def _unknown(head: bytes, label: str) -> FormatError:
    """Says what was found in a file of JSON that is of no known format."""
    try:
        value: JsonValue = orjson.loads(head)
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict) and "criteria" in value:
        way_out = f"Name the files beside it, or their folder: it judges those where it is called {ADK_CONFIG}."
        return FormatError(f"{label} is ADK's configuration, not a test", actions=[way_out])
    if value == []:
        return FormatError(f"{label} is an empty list: nothing would be asked", actions=[_KNOWN])
    item = value[0] if isinstance(value, list) else value
    where = "its first item has" if isinstance(value, list) else "it has"
    keys = ", ".join(repr(key[:_KEY_CHARS]) for key in [*item][:_SHOWN_KEYS]) if isinstance(item, dict) else ""
    told = f": {where} the keys {keys}" if keys else ""
    return FormatError(f"{label} is of no format that evalmeta knows{told}", actions=[_KNOWN])


def read_document(path: Path, *, label: str, name: str, reading: Reading = Reading()) -> Document:  # noqa: B008
    """Reads a file of any format; what beside it belongs to it is read too.

    Args:
        path: the file.
        label: its path, for messages.
        name: what the evaluation is called.
        reading: what the project says of such files.

    Raises:
        NotFound: there is no such file, or it cannot be read.
        FormatError: it is of no known format, or does not fit it; `problems` says why and where.
        InvalidMetadata: it is a definition that cannot be read.
    """
    # A format is loaded when a file needs it.
    match format_of(path, label=label):
        case "definition":
            definition = read_definition(read_xml(_bytes_of(path, limits.MAX_XML_BYTES), label=label))
            return Document(evaluation_of(definition, name=name))
        case "testspec":
            from evalmeta.formats.testspec import read_testspec  # noqa: PLC0415

            spec = read_testspec(_bytes_of(path, limits.MAX_SPEC_BYTES), label=label)
            return Document(evaluation_of(spec, name=name))
        case "csv":
            from evalmeta.formats.testing_center_csv import read_testing_center_csv  # noqa: PLC0415

            data = _bytes_of(path, limits.MAX_SPEC_BYTES)
            table = read_testing_center_csv(data, label=label, name=path.stem, subject_name="")
            return Document(evaluation_of(table, name=name))
        case "adk":
            from evalmeta.formats.adk.reader import read_adk  # noqa: PLC0415

            data = _bytes_of(path, limits.MAX_JSON_BYTES)
            config = _adk_config(path, label)
            if reading.missing:
                config = replace(config, missing=reading.missing)
            return read_adk(data, label=label, name=name, config=config, dialect=reading.dialect)
        case "ballerina":
            from evalmeta.formats.ballerina.reader import read_ballerina  # noqa: PLC0415

            return read_ballerina(_bytes_of(path, limits.MAX_JSON_BYTES), label=label, name=name)
        case "databricks":
            from evalmeta.formats.databricks.reader import read_databricks_file  # noqa: PLC0415

            return read_databricks_file(
                path,
                label=label,
                name=name,
                global_guidelines=reading.global_guidelines or None,
                metrics=reading.metrics,
                is_asked=reading.is_asked,
            )


def json_of(path: Path) -> bytes:
    """Gives the bytes of a file with JSON, of one that is too long so many that its readers refuse it.

    Raises:
        NotFound: there is no such file, or it cannot be read.
    """
    return _bytes_of(path, limits.MAX_JSON_BYTES)


def digest_of(path: Path) -> str:
    """Gives a hash of a file and of what beside it belongs to it: as long as it is the same, so are the cases.

    Raises:
        NotFound: there is no such file, or it cannot be read.
    """
    digest = sha256()
    for each in _chunks(path):
        digest.update(each)
    config = path.with_name(ADK_CONFIG)
    if config.is_file():
        digest.update(_bytes_of(config, limits.MAX_JSON_BYTES))
    return digest.hexdigest()


def _adk_config(path: Path, label: str) -> AdkConfig:
    from evalmeta.formats.adk.config import DEFAULT_CONFIG, read_test_config  # noqa: PLC0415 - as above

    config = path.with_name(ADK_CONFIG)
    if not config.exists():
        return replace(DEFAULT_CONFIG, notes=tuple(_strays(path, label)))
    beside = os.path.join(os.path.dirname(label), ADK_CONFIG)  # noqa: PTH118, PTH120 - a label is no path
    return read_test_config(_bytes_of(config, limits.MAX_JSON_BYTES), label=beside)


def _strays(path: Path, label: str) -> Iterator[Problem]:
    """Yields a warning of a file that was perhaps meant to judge a file of ADK's, and stands elsewhere."""
    beside = [path.with_name(name) for name in _MISSPELT]
    found = next((each for each in (*beside, path.parent.parent / ADK_CONFIG) if each.is_file()), None)
    found = found or next(iter(sorted(path.parent.glob(f"*/{ADK_CONFIG}"))), None)
    if found:
        where = os.path.relpath(found, path.parent)
        message = f"there is no {ADK_CONFIG} beside the file, so ADK's default criteria hold; {where!r} is not read"
        hint = f"Criteria stand in {ADK_CONFIG} in the folder of the file."
        yield Problem("adk-config", Severity.WARNING, Location(label), message, hint)


def _bytes_of(path: Path, most: int) -> bytes:
    """Reads a file as far as `most` bytes and one more."""
    return b"".join(_chunks(path, most + 1))


def _chunks(path: Path, most: int | None = None) -> Iterator[bytes]:
    left = most
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise NotFound(f"{str(path)!r} is a pipe", actions=["Write it to a file first, and name that."])
        with path.open("rb") as file:
            while left is None or left > 0:
                chunk = file.read(_CHUNK_BYTES if left is None else min(_CHUNK_BYTES, left))
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk
    except FileNotFoundError:
        raise NotFound(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise NotFound(f"{str(path)!r} cannot be read: {error.strerror}") from None
