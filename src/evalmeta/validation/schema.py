"""Structure and simple types, by the schemas in `xsd/`: libxml2 decides, xmlschema explains."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from lxml import etree

from evalmeta.model.problem import Problem, Severity
from evalmeta.xmlio.reader import NAMESPACE, local_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elementpath.protocols import ElementProtocol
    from lxml.etree import _Element as Element
    from xmlschema import XMLSchema, XMLSchemaValidationError

    from evalmeta.xmlio.reader import Document

__all__ = ["check_schema", "schema_dir"]

_HABITS: Final = {
    "testCases": "testCase",
    "contextVariables": "contextVariable",
    "expectations": "expectation",
    "input": "inputs",
    "parameters": "parameter",
    "masterLabel": "name",
}


def schema_dir() -> Path:
    """Finds the folder of the schemas: inside an installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "xsd"
    return installed if installed.is_dir() else package.parent.parent / "xsd"


def check_schema(document: Document, xsd: str) -> list[Problem]:
    """Checks a document against a schema and lists every difference, in document order.

    Args:
        document: what to check; its root element must be the schema's.
        xsd: the schema's file name in `xsd/`.
    """
    schema = _fast_schema(xsd)
    if schema.validate(document.root):
        return []
    problems: list[Problem] = []
    for error in _explaining_schema(xsd).iter_errors(cast("ElementProtocol", document.root)):
        problems.extend(each for each in _explain(document, error) if each not in problems)
    return problems or [_unexplained(document, schema)]


@cache
def _fast_schema(xsd: str) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(schema_dir() / xsd))


@cache
def _explaining_schema(xsd: str) -> XMLSchema:
    from xmlschema import XMLSchema  # noqa: PLC0415 - 180 ms, needed for refused files only

    return XMLSchema(schema_dir() / xsd, allow="local", defuse="always")


def _explain(document: Document, error: XMLSchemaValidationError) -> Iterator[Problem]:
    element = cast("Element", error.elem)
    reason = error.reason or ""
    field = _key_field(reason)
    if reason.startswith("Unexpected child"):
        yield from _unknown_children(document, element, error)
    elif field is not None:
        yield from _wrong_count(document, element, field)
    elif reason.startswith("duplicated value"):
        yield _duplicate_number(document, element)
    elif "attribute" in reason:
        name = reason.split("'")[1] if "'" in reason else ""
        message = f"<{local_name(element)}> has an attribute {name!r}; metadata elements have none"
        yield _problem(document, element, "attribute-unknown", message, f"Remove {name!r}.")
    elif "character data" in reason:
        message = f"text stands between the elements of <{local_name(element)}>"
        yield _problem(document, element, "text-stray", message, "Remove it, or put it into the element it belongs to.")
    elif "simple content" in reason:
        message = f"<{local_name(element)}> holds <{local_name(element[0])}>; it takes text only"
        hint = "Write text; &lt; and &amp; stand for < and & in it."
        yield _problem(document, element[0], "element-unknown", message, hint)
    else:
        yield _wrong_value(document, element)


def _key_field(reason: str) -> str | None:
    """Gives the first step of the field that a key misses or finds twice, None for other errors."""
    if reason.startswith("missing key field") or "selects multiple values" in reason:
        return reason.split("'", maxsplit=2)[1].partition("/")[0].removeprefix("m:")
    return None


def _unknown_children(document: Document, parent: Element, error: XMLSchemaValidationError) -> Iterator[Problem]:
    known = sorted({each.local_name for each in error.validator.iter_elements()})  # type: ignore[union-attr]
    for child in parent:
        if child.tag in {f"{{{NAMESPACE}}}{name}" for name in known}:
            continue
        name = local_name(child)
        if name in known:
            message = f"<{name}> is not in the namespace {NAMESPACE}"
            hint = f'Put xmlns="{NAMESPACE}" on the root element only.'
        else:
            message = f"<{name}> is not known inside <{local_name(parent)}>"
            nearest = [_HABITS[name]] if _HABITS.get(name) in known else get_close_matches(name, known, n=1)
            hint = f"Did you mean <{nearest[0]}>?" if nearest else f"Known here: {', '.join(known)}."
        yield _problem(document, child, "element-unknown", message, hint)


def _wrong_count(document: Document, parent: Element, field: str) -> Iterator[Problem]:
    found = [child for child in parent if local_name(child) == field]
    if not found:
        message = f"<{local_name(parent)}> has no <{field}>"
        yield _problem(document, parent, "element-missing", message, f"Add <{field}>; it is required.")
    for extra in found[1:]:
        message = f"<{field}> stands more than once in <{local_name(parent)}>"
        first = document.location(found[0])
        yield _problem(document, extra, "element-repeated", message, f"Keep one; the first is at line {first.line}.")


def _duplicate_number(document: Document, case: Element) -> Problem:
    number = next(child for child in case if local_name(child) == "number")
    message = f"number {(number.text or '').strip()} is taken by an earlier test case"
    return _problem(document, number, "number-duplicate", message, "Give every test case a number of its own.")


def _wrong_value(document: Document, element: Element) -> Problem:
    name, text = local_name(element), (element.text or "").strip()
    expected = {"subjectType": "AGENT, the only supported type", "isReference": "true or false"}.get(
        name, "a whole number"
    )
    return _problem(document, element, "value-invalid", f"<{name}> is {text!r}", f"Write {expected}.")


def _unexplained(document: Document, schema: etree.XMLSchema) -> Problem:
    entry = schema.error_log[0]
    message = entry.message.replace(f"{{{NAMESPACE}}}", "")
    return _problem(document, document.root, "value-invalid", f"line {entry.line}: {message}", "")


def _problem(document: Document, element: Element, code: str, message: str, hint: str) -> Problem:
    return Problem(code, Severity.ERROR, document.location(element), message, hint)
