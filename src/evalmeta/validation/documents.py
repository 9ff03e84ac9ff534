"""What every check of a file begins with: its root and its extent; and how many of its problems are told."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Problem, Severity
from evalmeta.xmlio.document import local_name
from evalmeta.xmlio.reader import NAMESPACE, read_xml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.xmlio.document import Document

__all__ = ["first_problems", "read_rooted"]


def read_rooted(data: bytes, label: str, root: str) -> Document:
    """Reads a file whose root element is known.

    Raises:
        InvalidMetadata: it is no XML, has another root, or an element with too many others in it.
    """
    document = read_xml(data, label=label)
    _check_root(document, root)
    # Every element has its tag: nothing needs counting where there are few.
    if data.count(b"<") > limits.MAX_XML_CHILDREN:
        _check_extent(document)
    return document


def _check_root(document: Document, expected: str) -> None:
    if document.root.tag == expected:
        return
    name = expected.rpartition("}")[2]
    found = local_name(document.root)
    if found == name:
        message = f"<{name}> is not in the namespace {NAMESPACE}"
    else:
        message = f"the root element is <{found}>; <{name}> is due"
    hint = f'Begin the file with <{name} xmlns="{NAMESPACE}">.'
    problem = Problem("xml-root", Severity.ERROR, document.location(), message, hint)
    raise InvalidMetadata(str(problem), problems=[problem], actions=[hint])


def _check_extent(document: Document) -> None:
    widest = max(document.root.iter(), key=len)
    if len(widest) <= limits.MAX_XML_CHILDREN:
        return
    message = f"<{local_name(widest)}> holds {len(widest):,} elements; at most {limits.MAX_XML_CHILDREN:,} are read"
    hint = "Split the file into several."
    problem = Problem("xml-too-large", Severity.ERROR, document.location(widest), message, hint)
    raise InvalidMetadata(str(problem), problems=[problem], actions=[hint])


def first_problems(found: Iterable[Problem]) -> list[Problem]:
    """Takes as many problems as are told of one file, in its order; the last of them says when there are more."""
    found = iter(found)
    problems = sorted(islice(found, limits.MAX_PROBLEMS), key=lambda each: each.location)
    if next(found, None):
        more = f"There are more problems: {limits.MAX_PROBLEMS:,} are told of a file at a time."
        problems[-1] = replace(problems[-1], hint=f"{problems[-1].hint} {more}".lstrip())
    return problems
