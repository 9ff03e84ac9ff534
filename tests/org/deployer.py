"""Deploys until it is killed, again and again; says on stdout what each kill left behind.

python deployer.py FOLDER KILLS: every child deploys an old and a new version of the same
components in turn and is killed with SIGKILL at a random moment. `old` and `new` mean
that all components are of one version, `torn` that they are not.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from org.parts import KIND, definition, deploy, opened, package

NAMES = [f"N{number}" for number in range(40)]
VERSIONS = {word: {name: definition(name, subject=word) for name in NAMES} for word in ("old", "new")}
ZIPS = [package(files) for files in VERSIONS.values()]


def deploy_without_end(folder: Path) -> None:
    with opened(folder) as org:
        while True:
            for zip_file in ZIPS:
                deploy(org, zip_file)


def state(folder: Path) -> str:
    with opened(folder) as org:
        found = {name: org.components.content(KIND.name, name) for name in NAMES}
    return next((word for word, files in VERSIONS.items() if files == found), "torn")


def main(folder: str, kills: str) -> None:
    with opened(Path(folder)) as org:
        deploy(org, ZIPS[0])
    for _ in range(int(kills)):
        child = os.fork()
        if child == 0:
            deploy_without_end(Path(folder))
        time.sleep(random.uniform(0.005, 0.05))  # noqa: S311 - not for secrets
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        sys.stdout.write(state(Path(folder)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
