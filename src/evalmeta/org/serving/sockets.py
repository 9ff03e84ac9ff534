"""Sockets that listen for the servers of this program; without a web framework, which takes long to load."""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

from evalmeta import limits
from evalmeta.errors import UsageError

_OTHER_HOST: Final = "Set --host to the name or an address of this machine."
_OTHER_PORT: Final = "Choose another port with --port; 0 for any free port."
# Connections that wait to be accepted.
QUEUED: Final = 2 * limits.MAX_REQUESTS


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise UsageError if it cannot be opened."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=QUEUED)
        # A socket that knows its protocol: asyncio then sets TCP_NODELAY, without which small replies wait for 40 ms.
        return socket.socket(fileno=listening.detach())
    except socket.gaierror as error:
        raise UsageError(f"the server cannot listen at {host}: {error.strerror}", actions=[_OTHER_HOST]) from None
    except OSError as error:
        # Python's own message repeats the address.
        raise UsageError(
            f"the server cannot listen at {host} port {port}: {os.strerror(error.errno or 0)}",
            actions=[_OTHER_HOST if error.errno == errno.EADDRNOTAVAIL else _OTHER_PORT],
        ) from None
