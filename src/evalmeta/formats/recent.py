"""The documents that this process has read lately, so that the steps of a run do not parse the same content again."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from evalmeta.formats.document import Document


_DOCUMENTS: Final[OrderedDict[Hashable, Document]] = OrderedDict()
_LOCK: Final = Lock()


def document_once(key: Hashable, read: Callable[[], Document]) -> Document:
    """Return the document with a key, which must identify its content; it is read if it was not read lately."""
    return recent_document(key) or remember(key, read())


def recent_document(key: Hashable) -> Document | None:
    """Return the document with a key if it was read lately."""
    with _LOCK:
        return _DOCUMENTS.get(key)


def remember(key: Hashable, document: Document) -> Document:
    """Return a document and keep it if its cases are in memory; forget the oldest ones if there are many cases."""
    if isinstance(document.evaluation.cases, tuple):
        with _LOCK:
            _DOCUMENTS[key] = document
            _DOCUMENTS.move_to_end(key)
            while sum(map(_size, _DOCUMENTS.values())) > limits.MAX_REMEMBERED_CASES:
                _DOCUMENTS.popitem(last=False)
    return document


def _size(document: Document) -> int:
    cases = document.evaluation.cases
    return len(cases) if isinstance(cases, tuple) else 0
