"""Appends results until it is killed, again and again; says on stdout what was acknowledged.

python appender.py FOLDER RUN_ID KILLS: every child names each case ("iteration number")
right after `append` has returned, and is killed with SIGKILL at a random moment.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.store import Store, read_store_url
from evalmeta.store.database import open_database
from evalmeta.store.runs import RunJournal

BATCH = 3


def append_without_end(folder: Path, run_id: str, acknowledged: int) -> None:
    url = os.environ.get("EVALMETA_STORE")
    store = Store(folder, read_store_url(url) if url else None)
    journal = RunJournal(open_database(store), run_id, "w")
    iteration = 1 + max((done for done, _ in journal.finished()), default=0)
    while True:
        answer = GeneratedData("x" * random.randint(0, 4_000))  # noqa: S311 - not for secrets
        batch = [CaseResult(n, iteration, "?", Verdict.PASS, 1.0, 2.0, (), answer) for n in range(BATCH)]
        journal.append(batch)
        os.write(1, f"{iteration}\n".encode())
        os.write(acknowledged, b".")
        iteration += 1


def main(folder: str, run_id: str, kills: str) -> None:
    commits, acknowledged = os.pipe()
    for number in range(int(kills)):
        child = os.fork()
        if child == 0:
            append_without_end(Path(folder), run_id, acknowledged)
        # On a busy machine no process might commit anything before it is killed: wait for the first one.
        if number == 0:
            os.read(commits, 1)
        time.sleep(random.uniform(0.005, 0.03))  # noqa: S311
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
