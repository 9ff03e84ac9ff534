"""Structure and simple types, by the schemas in `xsd/`: libxml2 decides, xmlschema explains.

Of a large document libxml2 looks for one fault only, and what xmlschema knows of the
schema explains it instead of xmlschema's walk: no document takes longer than a second.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lxml import etree

from evalmeta import limits
from evalmeta.model.problem import Problem, Severity
from evalmeta.validation.finding import Complaint
from evalmeta.xmlio.reader import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from elementpath.protocols import ElementProtocol
    from lxml.etree import _LogEntry as LogEntry
    from xmlschema import XMLSchema, XMLSchemaValidationError

    from evalmeta.xmlio.document import Document

__all__ = ["check_schema", "schema_dir"]


def schema_dir() -> Path:
    """Finds the folder of the schemas: inside an installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "xsd"
    return installed if installed.is_dir() else package.parent.parent / "xsd"


def check_schema(document: Document, xsd: str) -> list[Complaint]:
    """Checks a document against a schema and lists the differences, each once, in document order; at most 1,000.

    Args:
        document: what to check; its root element must be the schema's.
        xsd: the schema's file name in `xsd/`.
    """
    is_large = _is_large(document.data)
    refusal = _stream_refusal(document, xsd) if is_large else _refusal(document, xsd)
    if not refusal:
        return []
    structure = _survey(document, xsd) if is_large else _explain(document, refusal, xsd)
    complaints = set(islice(_all_complaints(document, structure), limits.MAX_PROBLEMS))
    complaints = complaints or {_unexplained(document, refusal[0], xsd)}
    return sorted(complaints, key=lambda complaint: (complaint.problem.location, complaint.problem.message))


def _is_large(data: bytes) -> bool:
    """Tells whether libxml2's log of all faults, each with its path, and xmlschema's walk could take long."""
    most = limits.MAX_EXPLAINED_ELEMENTS
    # Every element takes four bytes or more.
    return len(data) > 4 * most and (data.count(b"<") > 2 * most or data.count(b"=") > limits.MAX_PROBLEMS)


def _refusal(document: Document, xsd: str) -> Sequence[LogEntry]:
    schema = _fast_schema(xsd)
    return () if schema.validate(document.root) else list(schema.error_log)


def _stream_refusal(document: Document, xsd: str) -> Sequence[LogEntry]:
    from evalmeta.xmlio.stream import find_fault  # noqa: PLC0415 - for large documents only

    fault = find_fault(document, _fast_schema(xsd))
    return [fault] if fault else ()


@cache
def _fast_schema(xsd: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(schema_dir() / xsd))


@cache
def _explaining_schema(xsd: str) -> XMLSchema:
    from xmlschema import XMLSchema  # noqa: PLC0415 - 180 ms, needed for refused files only

    return XMLSchema(schema_dir() / xsd, allow="local", defuse="always")


def _all_complaints(document: Document, structure: Iterable[Complaint]) -> Iterator[Complaint]:
    from evalmeta.validation import explanations  # noqa: PLC0415 - as above

    yield from explanations.explain_attributes(document)
    yield from structure
    yield from explanations.explain_numbers(document)


def _explain(document: Document, refusal: Iterable[LogEntry], xsd: str) -> Iterator[Complaint]:
    from evalmeta.validation import explanations  # noqa: PLC0415 - as above

    for error in _errors(document, xsd):
        yield from explanations.explain_structure(document, error)
    yield from explanations.explain_values(document, refusal)


def _errors(document: Document, xsd: str) -> Iterator[XMLSchemaValidationError]:
    from xmlschema import XMLSchemaException  # noqa: PLC0415 - as above

    try:
        yield from _explaining_schema(xsd).iter_errors(cast("ElementProtocol", document.root))
    except XMLSchemaException:
        # An xsi:type that names no type ends the iteration; the attribute is complained about anyway.
        return


def _survey(document: Document, xsd: str) -> Iterator[Complaint]:
    from evalmeta.validation import survey  # noqa: PLC0415 - as above

    declared = _explaining_schema(xsd).maps.elements.get(str(document.root.tag))
    if declared is not None:
        yield from survey.survey_elements(document, survey.read_declaration(declared))


def _unexplained(document: Document, entry: LogEntry, xsd: str) -> Complaint:
    line = f"line {entry.line}: " if entry.line else ""
    message = line + entry.message.replace(f"{{{NAMESPACE}}}", "")
    problem = Problem("value-invalid", Severity.ERROR, document.location(), message, f"Compare the file with {xsd}.")
    return Complaint(problem)
