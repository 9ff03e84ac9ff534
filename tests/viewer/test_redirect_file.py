"""The file that leads a browser to an address with a code."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.viewer.redirect_file import RedirectFile

if TYPE_CHECKING:
    from pathlib import Path


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = RedirectFile(tmp_path, "http://127.0.0.1/?code=A").path
    finally:
        os.umask(before)
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_it_leads_to_the_address_and_names_no_referrer(tmp_path: Path) -> None:
    html = RedirectFile(tmp_path, 'http://127.0.0.1/?a=1&b="2').path.read_text()
    assert 'content="0; url=http://127.0.0.1/?a=1&amp;b=&quot;2"' in html
    assert '<meta name="referrer" content="no-referrer">' in html
    assert "<script" not in html


def test_it_is_deleted_with_its_folder(tmp_path: Path) -> None:
    file = RedirectFile(tmp_path, "http://127.0.0.1/")
    file.delete()
    file.delete()
    assert list(tmp_path.iterdir()) == []


def test_files_of_killed_servers_are_deleted_and_no_others(tmp_path: Path) -> None:
    old, young = (RedirectFile(tmp_path, "http://127.0.0.1/").path.parent for _ in range(2))
    victim = tmp_path / "victim"
    victim.mkdir()
    (tmp_path / "open-view-link").symlink_to(victim)
    for folder in (old, victim):
        os.utime(folder, (0, time.time() - limits.FRONTDOOR_SECONDS - 1))

    new = RedirectFile(tmp_path, "http://127.0.0.1/").path.parent

    assert {path.name for path in tmp_path.iterdir()} == {young.name, new.name, "victim", "open-view-link"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"missing/open-view-\w+: cannot be written: No such file or directory"):
        RedirectFile(tmp_path / "missing", "http://127.0.0.1/")
