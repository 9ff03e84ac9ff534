"""Files and ports that nothing in a document may make evalmeta touch."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "the canary's own words"  # noqa: S105 - a text to look for


@dataclass(frozen=True)
class Bait:
    """What hostile documents point to: a file with a text to look for, a pipe that would hang, an open port."""

    file: str
    pipe: str
    port: str


@pytest.fixture
def bait(tmp_path: Path) -> Iterator[Bait]:
    canary, pipe = tmp_path / "canary.txt", tmp_path / "pipe"
    canary.write_text(SECRET)
    os.mkfifo(pipe)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield Bait(canary.as_uri(), pipe.as_uri(), f"http://127.0.0.1:{server.getsockname()[1]}/x")
        with pytest.raises(BlockingIOError):
            server.accept()
