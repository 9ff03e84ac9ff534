"""Structure and simple types, by the schemas in `xsd/`: libxml2 decides, xmlschema explains."""

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
    from collections.abc import Iterator

    from elementpath.protocols import ElementProtocol
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
    schema = _fast_schema(xsd)
    if schema.validate(document.root):
        return []
    explained = islice(_explain(document, schema, xsd), limits.MAX_PROBLEMS)
    complaints = set(explained) or {_unexplained(document, schema, xsd)}
    return sorted(complaints, key=lambda complaint: (complaint.problem.location, complaint.problem.message))


@cache
def _fast_schema(xsd: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(schema_dir() / xsd))


@cache
def _explaining_schema(xsd: str) -> XMLSchema:
    from xmlschema import XMLSchema  # noqa: PLC0415 - 180 ms, needed for refused files only

    return XMLSchema(schema_dir() / xsd, allow="local", defuse="always")


def _explain(document: Document, schema: etree.XMLSchema, xsd: str) -> Iterator[Complaint]:
    from evalmeta.validation import explanations  # noqa: PLC0415 - as above

    yield from explanations.explain_attributes(document)
    for error in _errors(document, xsd):
        yield from explanations.explain_structure(document, error)
    yield from explanations.explain_values(document, schema.error_log)


def _errors(document: Document, xsd: str) -> Iterator[XMLSchemaValidationError]:
    from xmlschema import XMLSchemaException  # noqa: PLC0415 - as above

    try:
        yield from _explaining_schema(xsd).iter_errors(cast("ElementProtocol", document.root))
    except XMLSchemaException:
        # An xsi:type that names no type ends the iteration; the attribute is complained about anyway.
        return


def _unexplained(document: Document, schema: etree.XMLSchema, xsd: str) -> Complaint:
    entry = schema.error_log[0]
    message = f"line {entry.line}: {entry.message.replace(f'{{{NAMESPACE}}}', '')}"
    problem = Problem("value-invalid", Severity.ERROR, document.location(), message, f"Compare the file with {xsd}.")
    return Complaint(problem)
