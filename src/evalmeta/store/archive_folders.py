"""Where archives are: folders of this machine, and addresses such as s3://bucket/folder, by fsspec."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import NotFound, ProjectError, StoreError, UsageError
from evalmeta.model.redaction import address_in_words, error_text
from evalmeta.package.files import put_pieces, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsspec import AbstractFileSystem

_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]+)://(.*)", re.ASCII | re.DOTALL)
_PIECE_BYTES: Final = 1 << 20
_INSTALL: Final = "Run: pip install 'evalmeta[archive]'"


def is_address(text: str) -> bool:
    """Return whether a text is an address such as s3://bucket/folder, not the path of a folder."""
    return _SCHEME.match(text) is not None


class ArchiveFolder:
    """A folder with the files of an archive; errors say what cannot be read or written, without secrets."""

    def __init__(self, name: str, path: str, files: AbstractFileSystem | None = None) -> None:
        self.name = name
        self._path = path
        self._files = files

    def names(self) -> set[str]:
        """Return the names of the files and folders in it; none if it does not exist."""
        with self._errors("read"):
            if self._files is None:
                folder = Path(self._path)
                return {path.name for path in folder.iterdir()} if folder.exists() else set()
            try:
                entries = self._files.ls(self._path, detail=False)
            except FileNotFoundError:
                return set()
            return {entry.rstrip("/").rpartition("/")[2] for entry in entries} - {""}

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write a file from pieces; a file with this name is there as a whole or not at all."""
        if self._files is None:
            with self._errors("written"):
                Path(self._path).mkdir(parents=True, exist_ok=True)
            put_pieces(Path(self._path) / name, pieces)
            return
        # An address has the object when it is closed. What is left of one that is interrupted has no manifest.
        with self._errors("written"), self._files.open(f"{self._path}/{name}", "wb") as file:
            for piece in pieces:
                file.write(piece)

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file in pieces of at most a megabyte; raise NotFound if it does not exist."""
        path = f"{self._path}/{name}"
        with self._errors("read"):
            try:
                file = Path(path).open("rb") if self._files is None else self._files.open(path, "rb")  # noqa: SIM115 - closed below
            except FileNotFoundError:
                raise NotFound(f"{self.name} has no file {name}") from None
            with file:
                while piece := file.read(_PIECE_BYTES):
                    yield piece

    def read(self, name: str, *, max_bytes: int) -> bytes:
        """Return a small file."""
        content = bytearray()
        for piece in self.pieces(name):
            content += piece
            if len(content) > max_bytes:
                raise UsageError(f"{self.name}/{name} is larger than {max_bytes:,} bytes")
        return bytes(content)

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._files is None:
                raise ProjectError(f"{self.name}: cannot be {verb}: {error.strerror or error}") from None
            raise StoreError(
                f"{self.name} cannot be {verb}: {error_text(error)}",
                actions=["Check the address, the network, and AWS_ACCESS_KEY_ID, AWS_REGION and AWS_ENDPOINT_URL."],
            ) from None


def archive_folder(text: str) -> ArchiveFolder:
    """Return the folder that a path or an address names; addresses other than s3:// need their fsspec package."""
    match = _SCHEME.match(text)
    if match is None:
        folder = Path(text).absolute()
        return ArchiveFolder(shown(folder), str(folder))
    scheme, rest = match.groups()
    if "@" in rest.partition("/")[0] or "?" in rest:
        raise UsageError(
            f"the address {address_in_words(text)} has more than a bucket and a folder",
            actions=["Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL, and leave them out of it."],
        )
    path = rest.strip("/")
    if not rest.partition("/")[0]:
        raise UsageError(f"the address {text} names no bucket", actions=[f"Write {scheme}://BUCKET/FOLDER."])
    return ArchiveFolder(f"{scheme}://{path}", path, _file_system(scheme))


def _file_system(scheme: str) -> AbstractFileSystem:
    try:
        import fsspec

        return _s3() if scheme == "s3" else fsspec.filesystem(scheme)
    except ImportError as error:
        raise UsageError(f"{scheme}:// needs a package that is not installed: {error}", actions=[_INSTALL]) from None
    except ValueError:
        raise UsageError(f"{scheme}:// is not supported", actions=["Write s3://BUCKET/FOLDER, or a path."]) from None


def _s3() -> AbstractFileSystem:
    """Return S3 as pyarrow speaks it: that needs no other package, and knows the usual variables and files."""
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import S3FileSystem

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    files = S3FileSystem(
        endpoint_override=endpoint,
        # Without one, the SDK asks the network which region this machine is in.
        region=region or ("us-east-1" if endpoint else None),
        connect_timeout=limits.ARCHIVE_CONNECT_SECONDS,
        request_timeout=limits.ARCHIVE_REQUEST_SECONDS,
    )
    return ArrowFSWrapper(files)
