"""Serves the org of the project in FOLDER, leaves its jobs to others, and prints address and token.

python idle_server.py FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvicorn

from evalmeta.model.settings import Settings
from evalmeta.org.app import create_app
from evalmeta.org.organization import Organization
from evalmeta.org.serving.sockets import listen
from evalmeta.store.database import open_database
from stores import store_in


def main(folder: Path) -> None:
    with open_database(store_in(folder / ".evalmeta")) as database, listen("127.0.0.1", 0) as listening:
        org = Organization(database, folder, Settings, lambda _: None)
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]} {org.token}\n")
        sys.stdout.flush()
        asyncio.run(uvicorn.Server(uvicorn.Config(create_app(org), log_config=None, lifespan="off")).serve([listening]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
