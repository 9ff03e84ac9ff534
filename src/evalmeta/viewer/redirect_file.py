"""The file that leads a browser to an address which nobody else may read."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Final

from evalmeta import limits
from evalmeta.errors import StoreError

_PREFIX: Final = "open-view-"
_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>evalmeta</title>
</head>
<body>
<p><a href="{address}">Open the pages of evalmeta</a></p>
</body>
</html>
"""


class RedirectFile:
    """A page on disk that leads to an address with a code.

    Other users of a machine can read the command line of a browser, so that it gets the name of this file, which only
    the owner can read.
    """

    def __init__(self, state_dir: Path, address: str) -> None:
        _delete_old(state_dir)
        try:
            # Not below /tmp: a browser in a snap has a /tmp of its own.
            self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=state_dir))
            self.path = self._folder / "open.html"
            with os.fdopen(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
                file.write(_PAGE.format(address=escape(address)))
        except OSError as error:
            raise StoreError(f"{error.filename or state_dir}: cannot be written: {error.strerror}") from None

    def delete(self) -> None:
        """Delete the file and its folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def _delete_old(state_dir: Path) -> None:
    """Delete files of servers that were killed; their codes are not valid any more."""
    for folder in state_dir.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not folder.is_symlink() and folder.stat().st_mtime < time.time() - limits.FRONTDOOR_SECONDS:
                shutil.rmtree(folder)
