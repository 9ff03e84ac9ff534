from __future__ import annotations

import zipfile

from evalmeta.package.zip_reader import CENTRAL, DEFLATED, END, LOCAL, STORED


def test_records_have_the_sizes_of_the_specification() -> None:
    assert (LOCAL.size, CENTRAL.size, END.size) == (30, 46, 22)


def test_methods_are_the_standard_librarys() -> None:
    assert (STORED, DEFLATED) == (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
