"""The pages of the reply to a query: how many records each has, and the locator of the next one.

Sources: REST API Developer Guide, "Query Options Header" and "Query More Results". A locator contains the query: the
org does not have to remember it.
"""

from __future__ import annotations

import base64
import binascii
import re
import sys
import zlib
from typing import Final, NamedTuple

from evalmeta.errors import OrgFault
from evalmeta.org_clients.soql import MAX_CHARS

MIN_PAGE_RECORDS: Final = 200
MAX_PAGE_RECORDS: Final = 2_000
_BATCH_SIZE: Final = re.compile(r"batchSize\s*=\s*([0-9]{1,9})\b", re.IGNORECASE)
_CONTENT: Final = re.compile(r"(\d{1,4}) (.*)", re.DOTALL | re.ASCII)
_START: Final = re.compile(r"\d{1,9}", re.ASCII)


class Page(NamedTuple):
    """A page of a query: its first record, and the greatest number of records in it."""

    query: str
    start: int = 0
    size: int = MAX_PAGE_RECORDS

    @property
    def locator(self) -> str:
        """Return the locator, which `read_locator` reads."""
        content = zlib.compress(f"{self.size} {self.query}".encode(), level=9)
        return f"{base64.urlsafe_b64encode(content).decode().rstrip('=')}-{self.start}"


ALL_RECORDS: Final = Page("", size=sys.maxsize)


def read_locator(locator: str) -> Page:
    """Return the page of a locator; raise OrgFault (INVALID_QUERY_LOCATOR)."""
    content, _, start = locator.rpartition("-")
    found = _CONTENT.fullmatch(_inflated(content))
    if not found or not _START.fullmatch(start):
        raise invalid_locator()
    return Page(found[2], int(start), int(found[1]))


def invalid_locator() -> OrgFault:
    """Return Salesforce's error for a locator that it does not know."""
    return OrgFault("invalid query locator", code="INVALID_QUERY_LOCATOR")


def read_page_size(options: str, *, otherwise: int = MAX_PAGE_RECORDS) -> int:
    """Return the batch size of a Sforce-Query-Options header, or the nearest one that is allowed."""
    found = _BATCH_SIZE.search(options)
    return min(max(int(found[1]), MIN_PAGE_RECORDS), MAX_PAGE_RECORDS) if found else otherwise


def _inflated(content: str) -> str:
    """Return the content of a locator; empty if it is not valid or too long."""
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)), 4 * MAX_CHARS)
        return found.decode() if reader.eof else ""
    except (binascii.Error, zlib.error, ValueError):
        return ""
