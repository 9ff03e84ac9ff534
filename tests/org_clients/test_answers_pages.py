from __future__ import annotations

import base64
import zlib

import pytest

from evalmeta.errors import OrgFault
from evalmeta.org_clients.answers import Page, read_locator, read_page_size
from evalmeta.org_clients.soql import MAX_CHARS

PAGE = Page("SELECT Name FROM User WHERE Name = 'Zoë'", 2_000, 200)


def locator_of(content: bytes) -> str:
    return base64.urlsafe_b64encode(zlib.compress(content)).decode() + "-2000"


def test_a_locator_contains_all_of_a_page() -> None:
    assert read_locator(PAGE.locator) == PAGE
    assert PAGE.locator.endswith("-2000")


@pytest.mark.parametrize(
    "locator",
    [
        "",
        "-2000",
        "01gRO0000016PIAYA2-2000",
        PAGE.locator.removesuffix("-2000"),
        PAGE.locator.replace("-2000", "-x"),
        PAGE.locator[4:],
        PAGE.locator[:20] + "-2000",
        locator_of(b"SELECT Id FROM User"),
        locator_of(b"\xff"),
        locator_of(b"200 " + b" " * 5 * MAX_CHARS),
    ],
)
def test_an_unknown_locator_has_salesforces_error(locator: str) -> None:
    with pytest.raises(OrgFault, match="invalid query locator") as raised:
        read_locator(locator)
    assert raised.value.code == "INVALID_QUERY_LOCATOR"


@pytest.mark.parametrize(
    ("options", "size"),
    [("", 2_000), ("batchSize=500", 500), ("batchSize = 1000", 1_000), ("batchSize=5", 200), ("batchSize=9999", 2_000)],
)
def test_a_page_has_the_batch_size_or_the_nearest_that_is_allowed(options: str, size: int) -> None:
    assert read_page_size(options) == size
