"""Applications of the libraries' servers on the loopback interface."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def serving(make: Callable[[str], object], *, lifespan: str = "auto") -> Iterator[str]:
    """Serve the application that `make` returns for its address, and yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(make(url), log_level="error", lifespan=lifespan, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield url
        finally:
            server.should_exit = True
            thread.join()
