"""Large documents held against a schema as a stream, up to the first fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from lxml import etree

if TYPE_CHECKING:
    from lxml.etree import ParserTarget
    from lxml.etree import _LogEntry as LogEntry

    from evalmeta.xmlio.document import Document

__all__ = ["find_fault"]

_SLICE_BYTES: Final = 2_048


class _Nothing:
    """What a parser makes of a document that is only to be judged."""

    def close(self) -> None:
        """Ends the document."""


def find_fault(document: Document, schema: etree.XMLSchema) -> LogEntry | None:
    """Finds one thing that a schema has against a document that was read; None when it fits.

    Validating its tree would log every fault with its path: for 100,000 of them that is
    quadratic in time, and hundreds of megabytes. A stream can stop.
    """
    target = cast("ParserTarget[None]", _Nothing())
    parser = etree.XMLParser(target=target, schema=schema, resolve_entities=False, no_network=True, load_dtd=False)
    for start in range(0, len(document.data), _SLICE_BYTES):
        parser.feed(document.data[start : start + _SLICE_BYTES])
        for fault in parser.feed_error_log:
            return fault
    parser.close()
    return next(iter(parser.feed_error_log), None)
