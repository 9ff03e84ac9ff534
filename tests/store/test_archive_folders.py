from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import NotFound, ProjectError, StoreError, UsageError
from evalmeta.store.archive_folders import archive_folder, is_address

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3://key:secret@bucket/folder", "the address s3://bucket/folder has more than a bucket and a folder"),
        ("s3://bucket/folder?endpoint_override=x", "the address s3://bucket/folder has more than a bucket"),
        ("s3://", "the address s3:// names no bucket"),
        ("s3:///folder", "the address s3:///folder names no bucket"),
        ("nothing://bucket", "nothing:// is not supported"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_its_secrets(address: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")) as caught:
        archive_folder(address)
    assert "secret@" not in f"{caught.value} {caught.value.actions}"


def test_only_a_scheme_makes_an_address() -> None:
    assert is_address("s3://bucket/folder")
    assert not any(map(is_address, ("archives/kept", "/archives", r"C:\archives", "latest:a/b", "")))


def test_a_folder_that_cannot_be_read_or_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = archive_folder(str(tmp_path / "file"))
    for use in (folder.names, lambda: folder.put("name", [b""]), lambda: folder.read("name", max_bytes=1)):
        with pytest.raises(ProjectError, match=r"file.*cannot be (read|written)"):
            use()
    with pytest.raises(NotFound, match="has no file name"):
        archive_folder(str(tmp_path)).read("name", max_bytes=1)
    (tmp_path / "name").write_text("12")
    with pytest.raises(UsageError, match="is larger than 1 bytes"):
        archive_folder(str(tmp_path)).read("name", max_bytes=1)


@pytest.mark.slow
def test_a_server_that_cannot_be_reached_is_an_error_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    # Nothing listens on the port of this service of old.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA1234567890TESTED")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-4f1c9d")
    with pytest.raises(StoreError, match=r"s3://bucket/folder cannot be read: .*connect") as caught:
        archive_folder("s3://bucket/folder").names()
    assert "canary" not in f"{caught.value}"
