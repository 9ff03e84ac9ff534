"""Kills `evalmeta test run` of 100 definitions with SIGKILL in its first two seconds; says as JSON what that did.

python killed_suites.py FOLDER KILLS SEED: each suite is killed once, and then `test resume --unfinished` completes it.
`kills`: those after the suite was saved; `early`: those before, which must not have asked a question (`unsaved`).
`partial`: kills after which tests had no run yet. `lost`: results that were there after the kill, and then gone or
changed. `repeated`: questions asked again although their answers were saved. `missing`: results that are not there at
the end, and tests that are not in the report. `failed`: resumptions whose exit code was not 0. `again`: the most
questions of one kill that were asked again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

# What a command imports late is imported here, once for all that are killed.
import evalmeta.api.runs.reruns
import evalmeta.cli.commands.agent_test.jobs
import evalmeta.cli.commands.agent_test.run
import evalmeta.engine.runner
import evalmeta.engine.subjects.objects
import evalmeta.org.app
import evalmeta.report.human
from evalmeta.cli.main import main as evalmeta
from evalmeta.store.database import open_database
from evalmeta.store.suites import Suites
from stores import store_in
from suites import Suite, make_suite

TESTS, CASES, SECONDS = 100, 2, 2.0


def begin(suite: Suite, *words: str) -> int:
    """Start a command in a process of its own, whose output is a file."""
    child = os.fork()
    if child == 0:
        os.chdir(suite.root)
        for stream, name in ((1, "out.txt"), (2, "err.txt")):
            os.dup2(os.open(suite.root / name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), stream)
        evalmeta(words)
    return child


def results(suite: Suite) -> dict[tuple[str, int], bytes]:
    sql = "SELECT definition, number, body FROM case_result JOIN run ON run.id = run_id"
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        return {(name, number): body for name, number, body in database.query(sql)}


def is_saved(suite: Suite) -> bool:
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        return Suites(database).latest() is not None


def is_partial(suite: Suite) -> bool:
    with open_database(store_in(suite.root / ".evalmeta")) as database:
        return bool(Suites(database).unfinished())


def utterance(place: tuple[str, int]) -> str:
    return f"Question {place[0].removeprefix('Test_')} {place[1]:02}"


def kill(suite: Suite, chance: random.Random) -> Counter[str]:
    child = begin(suite, "test", "run", ".", "--wait")
    time.sleep(chance.uniform(0, SECONDS))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] in {signal.SIGKILL, 0}, (suite.root / "err.txt").read_text()
    seen, asked = results(suite), suite.asked()
    if not is_saved(suite):
        return Counter(early=1, unsaved=bool(asked))
    found = Counter(kills=1, partial=is_partial(suite))
    _, status = os.waitpid(begin(suite, "test", "resume", "--unfinished", "--json"), 0)
    found["failed"] = os.waitstatus_to_exitcode(status) != 0
    after, again = results(suite), Counter(suite.asked()[len(asked) :])
    found["lost"] = sum(after.get(place) != body for place, body in seen.items())
    found["repeated"] = sum(again[utterance(place)] for place in seen)
    reported = json.loads((suite.root / "out.txt").read_text())["result"] if seen.keys() != after.keys() else []
    names = [run["evalmeta"]["definition"] for run in reported if len(run["testCases"]) == CASES]
    whole = [f"Test_{number:02}" for number in range(TESTS)]
    found["missing"] = TESTS * CASES - len(after) + (len(set(whole) - set(names)) if reported else 0)
    found["again"] = (Counter(asked) + again).total() - TESTS * CASES
    return found


def main(folder: str, kills: str, seed: str) -> None:
    chance, totals, most = random.Random(seed), Counter(), 0  # noqa: S311 - not for secrets
    while totals["kills"] < int(kills):
        suite = make_suite(Path(folder) / f"suite{totals.total()}", tests=TESTS, cases=CASES, wanted=0, concurrency=4)
        found = kill(suite, chance)
        most = max(most, found.pop("again", 0))
        totals.update(found)
    said = dict.fromkeys(("early", "unsaved", "partial", "failed", "lost", "repeated", "missing"), 0)
    sys.stdout.write(json.dumps({**said, **totals, "again": most}))


if __name__ == "__main__":
    main(*sys.argv[1:])
