"""Rules about bundles: which files are in the folder of one. The rules about its script are those of Agent Script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Location, Problem
from evalmeta.validation.rule import ERROR, WARNING, RuleTable, rule
from evalmeta.xmlio.reader import NAMESPACE
from evalmeta.xmlio.structure import check_structure, read_rooted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.problem import Severity
    from evalmeta.model.registry import MetadataType
    from evalmeta.validation.rule import Rule


class Bundle(NamedTuple):
    """A bundle to check, with its files by their names in its folder."""

    type: MetadataType
    full_name: str
    files: Mapping[str, bytes]


class BundleFinding(NamedTuple):
    """One finding of a rule; the file is empty for the folder."""

    message: str
    file: str
    hint: str


BUNDLES: Final[RuleTable[Bundle, BundleFinding]] = RuleTable()

_IGNORED: Final = ".forceignore"


def check_bundle(bundle: Bundle, *, label: str, severity_of: Callable[[Rule], Severity | None]) -> list[Problem]:
    """Return the problems of the folder of a bundle, whose name in messages is `label`, and of the files in it."""
    problems = [
        Problem(declared.code, severity, Location(_path(label, finding.file)), finding.message, finding.hint)
        for declared, check in BUNDLES.checks()
        if (severity := severity_of(declared))
        for finding in check(bundle)
    ]
    content, metadata = bundle.type.bundle_files(bundle.full_name)
    if content in bundle.files:
        from evalmeta.validation.script_rules import check_script

        problems += check_script(bundle.files[content], label=_path(label, content), severity_of=severity_of)
    if metadata in bundle.files:
        problems += _structure_problems(bundle.type, bundle.files[metadata], label=_path(label, metadata))
    return problems


def _structure_problems(kind: MetadataType, data: bytes, *, label: str) -> Sequence[Problem]:
    try:
        document = read_rooted(data, label, f"{{{NAMESPACE}}}{kind.name}")
    except InvalidMetadata as error:
        return error.problems
    return [found.problem for found in check_structure(document, kind.xsd)]


def _path(label: str, file: str) -> str:
    return f"{label}/{file}" if file else label


@rule("bundle-file-missing", BUNDLES, documented=ERROR, orgs=ERROR)
def find_missing_files(bundle: Bundle) -> Iterator[BundleFinding]:
    """The folder of a bundle has a script and a metadata file with the name of the folder."""
    for name in bundle.type.bundle_files(bundle.full_name):
        if name not in bundle.files:
            suffix = name.removeprefix(bundle.full_name)
            other = next((file for file in bundle.files if file.endswith(suffix)), None)
            hint = f"Rename {other}." if other else f"Add the file, or check that {_IGNORED} does not ignore it."
            yield BundleFinding(f"the bundle {bundle.full_name!r} has no file {name}", "", hint)


@rule("bundle-file-unknown", BUNDLES, documented=ERROR, orgs=WARNING)
def find_unknown_files(bundle: Bundle) -> Iterator[BundleFinding]:
    """The folder of a bundle has no other files than its script and its metadata file."""
    known = bundle.type.bundle_files(bundle.full_name)
    for name in bundle.files:
        if name not in known:
            message = f"{name} is neither the script nor the metadata file of the bundle {bundle.full_name!r}"
            yield BundleFinding(message, name, f"Move the file to another folder, or ignore it in {_IGNORED}.")
