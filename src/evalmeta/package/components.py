"""The files of components: their names in a zip and in the folders of a project, and their content as one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalmeta.model.bundle_content import join_files, split_files
from evalmeta.model.registry import BUNDLE_TYPES, Component, MetadataType
from evalmeta.package.files import is_safe_full_name, parse_safe_file_name, read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path


def content_of(component: Component, *, read: Callable[[Path], bytes] = read_file) -> bytes:
    """Return the content of a component of a project: the bytes of its file, or those of all files of a bundle.

    By default, ProjectError is raised if a file cannot be read or is too large.
    """
    if not component.type.is_bundle:
        return read(component.path)
    return join_files({file.relative_to(component.path).as_posix(): read(file) for file in component.files})


def entry_name(kind: MetadataType, full_name: str) -> str:
    """Return the name of a component in a zip: `aiEvaluationDefinitions/X.aiEvaluationDefinition`, or a folder."""
    name = f"{kind.directory}/{full_name}"
    return name if kind.is_bundle else f"{name}.{kind.suffix}"


def entries_of(component: Component) -> Iterator[tuple[str, Path]]:
    """Yield the files of a component of a project with their names in a zip."""
    name = entry_name(component.type, component.full_name)
    if component.type.is_bundle:
        yield from ((f"{name}/{file.relative_to(component.path).as_posix()}", file) for file in component.files)
    else:
        yield name, component.path


def files_at(path: Path, kind: MetadataType, content: bytes) -> dict[Path, bytes]:
    """Return the files to write for the content of a component whose path is that of a file, or a folder."""
    if not kind.is_bundle:
        return {path: content}
    return {path / name: data for name, data in split_files(content).items()}


def entries_in(kind: MetadataType, full_name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files in the content of a component with their names in a zip."""
    name = entry_name(kind, full_name)
    if kind.is_bundle:
        yield from ((f"{name}/{file}", data) for file, data in split_files(content).items())
    else:
        yield name, content


class EntryName(NamedTuple):
    """The component that an entry of a zip belongs to, and for a bundle the name of the file in its folder."""

    type: MetadataType
    full_name: str
    file: str = ""


def parse_entry(entry: str) -> EntryName | None:
    """Return what the name of an entry says, in any folder of a zip; None if it is not the file of a component."""
    *folders, file = entry.split("/")
    for place, folder in enumerate(folders[:-1]):
        if folder in BUNDLE_TYPES:
            name = folders[place + 1]
            in_folder = "/".join((*folders[place + 2 :], file))
            return EntryName(BUNDLE_TYPES[folder], name, in_folder) if is_safe_full_name(name) else None
    named = parse_safe_file_name(file)
    return EntryName(*named) if named else None


def gather_contents(entries: Iterable[tuple[EntryName, bytes]]) -> dict[tuple[MetadataType, str], bytes]:
    """Return the contents of components by type and full name, in the order of their first entries."""
    files: dict[tuple[MetadataType, str], dict[str, bytes]] = {}
    for entry, content in entries:
        files.setdefault((entry.type, entry.full_name), {})[entry.file] = content
    return {key: join_files(parts) if key[0].is_bundle else parts[""] for key, parts in files.items()}


def contents_in(entries: Mapping[str, bytes]) -> dict[tuple[MetadataType, str], bytes]:
    """Return the contents of all components in a zip by type and full name, in the order of the names of entries."""
    return gather_contents((entry, entries[name]) for name in sorted(entries) if (entry := parse_entry(name)))
