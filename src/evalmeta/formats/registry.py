"""The formats of test files: how one is declared, which are registered, and how a file's content shows its format.

evalmeta's own formats and those of installed packages are declared in the same way: one object of a subclass of
`Format`, which `model/entry_points.py` or an entry point of the group `evalmeta.formats` names.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

import orjson

from evalmeta import limits
from evalmeta.errors import FormatError, UsageError
from evalmeta.formats.diagnostics import Written
from evalmeta.formats.document import Document, Reading, read_bytes
from evalmeta.formats.sources import titles_of
from evalmeta.model.evaluation import evaluation_of
from evalmeta.plugins import load_all, unusable_plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.model.definition import Definition
    from evalmeta.model.json_value import JsonObject, JsonValue


HEAD_BYTES: Final = 1_000_000
"""The size of a file's beginning that shows its format, unless the file is one longer JSON value."""
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_UTF16: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_KEY: Final = re.compile(rb'"([A-Za-z_]+)"\s*:')
_FIRST_KEYS: Final = 20_000

Content = Literal["yaml", "table", "lines", "json"]
Unclear = Literal["text", "object", "list", "lines"]


class FileHead(NamedTuple):
    """The beginning of a file in a folder, by which a format says whether the file is one of its tests."""

    name: str
    content: Content  # what the name says that the content is
    data: bytes = b""  # its first bytes, without the mark of their encoding
    format: str | None = None  # the name of the format that the content shows; None if it shows none
    value: JsonValue = None  # the value of a JSON file; None if the file is damaged or cut
    keys: Sequence[str] = ()  # the keys of a JSON object; of a damaged file all its keys
    rows: Sequence[Collection[str]] = ()  # the first objects of a list, `rows` or JSON Lines, or the titles of a table


class FileKind(NamedTuple):
    """What a file is by its name and content."""

    format: str | None = None  # in which it is read; None if its reader finds it out, or if no reader knows it
    why_not: str = ""  # why it is not a test; empty for a test, also for one with mistakes
    is_baseline: bool = False  # commands read baselines by their names only

    @property
    def is_test(self) -> bool:
        """Return whether it is a test, also one with mistakes."""
        return not self.why_not


class Format:
    """A format of test files; a subclass states what differs from these defaults.

    Attributes:
        name: the name in messages and of `evalmeta convert --to`.
        description: what the list of known formats says of it.
        endings: ends of file names that show the format, whatever the content.
        begin: bytes with which all its files begin; empty if they have none.
        keys: keys of a JSON object that show the format.
        item_keys: keys of the objects in a JSON list that show the format.
        shared_item_keys: further ones, which show it only if no `item_keys` of any format do.
        inner_keys: keys at any depth that show the format of an object in a damaged file.
        columns: columns of a table that show the format.
        defaults: the kinds of content that have this format if nothing shows one; a damaged `object` or `list`.
        similar_keys: keys that make a file in a folder a test, also with a spelling mistake.
        other_files: what is said of files in folders that are not tests, declared with the keys that show it.
        named_only: why files in folders are listed and not run, although they have the format; empty if they are run.
        settings_file: the name of the file beside its files that has their settings; empty if there is none.
        is_written: whether definitions can be written in this format.
        kept_checks: checks that definitions cannot hold and that are written in this format.
        takes_names: whether a file that has the format already can be converted to it with another name or agent.
    """

    name: str
    description: str = ""
    endings: tuple[str, ...] = ()
    begin: bytes = b""
    keys: tuple[str, ...] = ()
    item_keys: tuple[str, ...] = ()
    shared_item_keys: tuple[str, ...] = ()
    inner_keys: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    defaults: tuple[Unclear, ...] = ()
    similar_keys: tuple[str, ...] = ()
    other_files: tuple[tuple[str, tuple[str, ...]], ...] = ()
    named_only: str = ""
    settings_file: str = ""
    is_written: bool = False
    kept_checks: tuple[str, ...] = ()
    takes_names: bool = True

    def recognises(self, value: JsonValue) -> bool:
        """Return whether the value of a JSON or YAML file, or its first row, certainly has this format.

        It is asked before keys are compared. In YAML, all scalars are texts.
        """
        return False

    def has_columns(self, titles: Collection[str]) -> bool:
        """Return whether a table with these columns has this format."""
        return not set(self.columns).isdisjoint(titles)

    def is_test(self, head: FileHead) -> bool:
        """Return whether a file in a folder is a test of this format, also one with mistakes."""
        return head.format == self.name

    def refusal(self, value: JsonObject, label: str) -> FormatError | None:
        """Return the error for a JSON object that belongs to the format, but is not a test; None for others."""

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        """Read a file as `files.read_document` does; raise FormatError if it is not valid."""
        raise NotImplementedError

    def files_of(self, path: Path) -> Sequence[Path]:
        """Return the other files that a file of this format names with `file://`, and that decide what is judged."""
        return ()

    def read_kept(self, content: bytes, *, name: str) -> Document | None:
        """Read what a run has kept of a test that an org received in this format; None if orgs receive none."""

    def write(self, definition: Definition) -> Written:
        """Write a definition, and report what the format cannot express."""
        raise NotImplementedError

    def rewrite(self, path: Path, *, label: str) -> Written | None:
        """Write a file of this format again, with what definitions cannot hold; None if it is converted as others."""

    def write_spec(self, path: Path, *, label: str, subject: str | None) -> Written | None:
        """Write a file of this format as a test spec, with what definitions cannot hold; None if they hold all.

        `subject` is the agent under test; None if it is not named.
        """

    def in_dialect(self, dialect: str) -> Self:
        """Return the format that writes a dialect."""
        return self


@cache
def all_formats() -> Mapping[str, Format]:
    """Return the formats by name, in the order in which they are recognised."""
    return {name: _checked(name, loaded) for name, loaded in load_all("formats").items()}


def _checked(name: str, loaded: object) -> Format:
    if not isinstance(loaded, Format):
        action = "Name an object of a subclass of evalmeta.formats.registry.Format."
        raise unusable_plugin("formats", name, f"is {type(loaded).__name__}, not a format", action=action)
    if loaded.name != name:
        raise unusable_plugin("formats", name, f"is called {loaded.name!r}", action="Use one name in both places.")
    return loaded


def listed_formats() -> list[Format]:
    """Return the formats in the order of lists for people: evalmeta's own files, then formats that are written."""
    own = [all_formats()[name] for name in ("definition", "testspec", "csv")]
    others = (declared for declared in all_formats().values() if declared not in own)
    return [*own, *sorted(others, key=lambda declared: (not declared.is_written, declared.name))]


def written_formats() -> list[str]:
    """Return the names of the formats in which definitions can be written."""
    return [declared.name for declared in listed_formats() if declared.is_written]


def format_to_write(name: str) -> Format:
    """Return the format with a name; raise UsageError if definitions cannot be written in it."""
    if name not in written_formats():
        raise UsageError(f"{name!r} is not a format that evalmeta writes", actions=[", ".join(written_formats())])
    return all_formats()[name]


def settings_files() -> set[str]:
    """Return the names of the files that have settings for the test files beside them."""
    return {declared.settings_file for declared in all_formats().values() if declared.settings_file}


def first_format(has_it: Callable[[Format], bool]) -> str | None:
    """Return the name of the first format of which a condition is true."""
    return next((name for name, declared in all_formats().items() if has_it(declared)), None)


def recognise(data: bytes) -> str | None:
    """Detect the format of a file from its first `HEAD_BYTES`; None if it is unknown.

    XML is a definition, JSON is detected from its keys, a table from its columns, and anything else is a test spec.
    UTF-16 is detected in the same way; the reader decides whether it is allowed.
    """
    begin = without_mark(data).lstrip()
    if by_bytes := first_format(lambda declared: bool(declared.begin) and begin.startswith(declared.begin)):
        return by_bytes
    if begin.startswith((b"{", b"[")):
        return _of_json(begin)
    titles = {title.strip() for titles in titles_of(begin.decode("utf-8", "replace")) for title in titles}
    return first_format(lambda declared: declared.has_columns(titles)) or _default("text")


def without_mark(data: bytes) -> bytes:
    """Return the beginning of a file in UTF-8, also of one in UTF-16, without the mark of its encoding."""
    if encoding := _UTF16.get(data[:2]):
        data = data[2:].decode(encoding, "replace").encode()
    return data.removeprefix(_UTF8_MARK)


def _default(content: Unclear) -> str | None:
    return first_format(lambda declared: content in declared.defaults)


def _of_json(begin: bytes) -> str | None:
    try:
        return _of_value(orjson.loads(begin))
    except orjson.JSONDecodeError:
        pass
    line, _, rest = begin.partition(b"\n")
    if rest:
        try:
            # Several values, one a line, are JSON Lines.
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            return _of_damaged(begin)
        return (_of_value(value) or _default("lines")) if isinstance(value, dict) else _of_value(value)
    return _of_damaged(begin)


def _of_value(value: JsonValue) -> str | None:
    if certain := first_format(lambda declared: declared.recognises(value)):
        return certain
    of_key = _names_by_key(is_object=isinstance(value, dict))
    item = value[0] if isinstance(value, list) and value else value
    # The first format of which it has a key, not the first of its keys.
    return next((name for key, name in of_key.items() if key in item), None) if isinstance(item, dict) else None


@cache
def _names_by_key(*, is_object: bool) -> Mapping[str, str]:
    """Return the keys of objects, or of the objects in lists, each with the format that it shows."""
    formats = all_formats().values()
    if is_object:
        return _first_names((key, declared.name) for declared in formats for key in declared.keys)
    sure = ((key, declared.name) for declared in formats for key in declared.item_keys)
    return _first_names([*sure, *((key, declared.name) for declared in formats for key in declared.shared_item_keys)])


def _first_names(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    names: dict[str, str] = {}
    for key, name in pairs:
        names.setdefault(key, name)
    return names


def _of_damaged(begin: bytes) -> str | None:
    """Detect the format of a damaged or cut file from its first keys; its reader reports what is wrong."""
    is_object = begin.startswith(b"{")
    of_key = _names_by_key(is_object=is_object)
    if is_object:
        inner = ((key, declared.name) for declared in all_formats().values() for key in declared.inner_keys)
        of_key = {**of_key, **dict(inner)}
    keys = (match[1].decode() for match in _KEY.finditer(begin[:_FIRST_KEYS]))
    # YAML has braces too, so that a test spec may begin like JSON.
    return next((of_key[key] for key in keys if key in of_key), _default("object" if is_object else "list"))


class _OwnFormat(Format):
    is_written = True

    def is_test(self, head: FileHead) -> bool:
        return False


class _Definitions(_OwnFormat):
    name = "definition"
    description = "a definition (XML)"
    begin = b"<"

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.xmlio.definitions import read_definition
        from evalmeta.xmlio.reader import read_xml

        definition = read_definition(read_xml(read_bytes(path, limits.MAX_XML_BYTES), label=label))
        return Document(evaluation_of(definition, name=name))

    def write(self, definition: Definition) -> Written:
        from evalmeta.xmlio.definitions import write_definition

        return Written(write_definition(definition))


class _TestSpecs(_OwnFormat):
    name = "testspec"
    description = "a test spec (YAML), test cases in JSON Lines or a table (input)"
    keys = ("testCases", "subjectName", "cases", "input")
    defaults = ("text", "object")

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.formats.testspec import read_spec_file

        return read_spec_file(path, label=label, needs_cases=True, columns=reading.columns).document(name)

    def write(self, definition: Definition) -> Written:
        from evalmeta.formats.testspec_writer import write_testspec

        return write_testspec(definition)


class _Tables(_OwnFormat):
    name = "csv"
    description = "a table of the Testing Center (CSV)"

    def has_columns(self, titles: Collection[str]) -> bool:
        return "utterance" in {title.lower() for title in titles}

    def read(self, path: Path, *, label: str, name: str, reading: Reading) -> Document:
        from evalmeta.formats.testing_center_csv import read_table_file

        return read_table_file(path, label=label, name=name)

    def write(self, definition: Definition) -> Written:
        from evalmeta.formats.testing_center_csv import write_testing_center_csv

        return write_testing_center_csv(definition)


DEFINITION: Final = _Definitions()
TESTSPEC: Final = _TestSpecs()
CSV: Final = _Tables()
