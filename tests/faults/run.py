"""Runs 12,000 cases on a shared store while its server or the network fails, and prints what came of it.

python -m faults.run TIMES [CASES [SECONDS]]: each fault so many times, at random moments; the network is away for so
many seconds. Exits with 1 if a result was lost or doubled, or more was asked twice than was in flight.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.model.store import STORE_VARIABLE, Store, read_store_url
from evalmeta.store.database import open_database
from postgres_servers import postgres_servers
from relay import relay

if TYPE_CHECKING:
    from collections.abc import Callable

    from postgres_servers import PostgresServers, PostgresStore
    from relay import Relay

IN_FLIGHT, LONGEST, MOST_COMMANDS = 50, 900, 5
AGENT = """
import asyncio, os
FILE = os.open("asked", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
async def answer(utterance):
    os.write(FILE, f"{utterance}\\n".encode())
    await asyncio.sleep(0.05)
    return "The answer is " + utterance
"""
SETTINGS = f"[run]\nconcurrency = {IN_FLIGHT}\n"
EVALMETA = [str(Path(sys.executable).parent / "evalmeta")]


class Outcome(NamedTuple):
    """What one run with a fault has left."""

    commands: int
    lost: int
    doubled: int
    again: int
    seconds: float

    @property
    def is_right(self) -> bool:
        """Return whether every case has one result, and nothing was asked again that was not in flight."""
        return not (self.lost or self.doubled) and self.again <= IN_FLIGHT * self.commands


class Scene(NamedTuple):
    """A project, the servers, and the relay between them."""

    root: Path
    servers: PostgresServers
    relay: Relay
    environment: dict[str, str]
    away: float

    def command(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command."""
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen([*EVALMETA, *words], cwd=self.root, env=self.environment, stdout=log, stderr=log)

    def asked(self) -> list[str]:
        """Return what the agent was asked."""
        file = self.root / "asked"
        return file.read_text().split() if file.exists() else []


def kill_postgres(scene: Scene, _: subprocess.Popen[bytes]) -> None:
    """Kill Postgres and start it again."""
    scene.servers.postgres.kill()
    time.sleep(1)
    scene.servers.postgres.start()


def cut_network(scene: Scene, _: subprocess.Popen[bytes]) -> None:
    """Cut all connections for a while."""
    scene.relay.cut()
    time.sleep(scene.away)
    scene.relay.mend()


def kill_command(_: Scene, process: subprocess.Popen[bytes]) -> None:
    """Kill the command."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def kill_command_without_network(scene: Scene, process: subprocess.Popen[bytes]) -> None:
    """Kill the command while the network is away."""
    scene.relay.cut()
    time.sleep(1)
    kill_command(scene, process)
    scene.relay.mend()


FAULTS: dict[str, Callable[[Scene, subprocess.Popen[bytes]], None]] = {
    "Postgres killed": kill_postgres,
    "network away": cut_network,
    "command killed": kill_command,
    "command killed without network": kill_command_without_network,
}


def once(name: str, servers: PostgresServers, *, cases: int, away: float, chance: random.Random) -> Outcome:
    """Run cases with a fault at a random moment, and resume the run until it has ended by itself."""
    spec = "subject: desk:answer\ncases:\n" + "".join(f"- {{input: q{n}, contains: q{n}}}\n" for n in range(cases))
    server = chance.choice(list(servers))
    with tempfile.TemporaryDirectory() as folder, servers.store() as store, relay(server.port) as passing:
        root = Path(folder)
        for file, text in {"evalmeta.toml": SETTINGS, "desk.py": AGENT, "cases.yaml": spec}.items():
            (root / file).write_text(text)
        url = store.direct.replace(f":{servers.postgres.port}/", f":{passing.port}/")
        scene = Scene(root, servers, passing, os.environ | {STORE_VARIABLE: url}, away)
        outcome = _suffer(name, store, scene, cases=cases, chance=chance)
        if not outcome.is_right:
            say(f"{name}: {outcome}\n{(root / 'log').read_text()[-2000:]}")
        return outcome


def _suffer(name: str, store: PostgresStore, scene: Scene, *, cases: int, chance: random.Random) -> Outcome:
    begun = time.monotonic()
    process = scene.command("run", "cases.yaml")
    moment = chance.randrange(cases // 20, cases * 9 // 10)
    while len(scene.asked()) < moment and process.poll() is None:
        time.sleep(0.01)
    FAULTS[name](scene, process)
    commands = 1
    while process.wait(LONGEST) != 0 and commands < MOST_COMMANDS:
        commands += 1
        process = scene.command("test", "resume", "--job-id", "latest")
    with open_database(Store(scene.root / "check", read_store_url(store.direct))) as database:
        results = Counter(number for (number,) in database.query("SELECT number FROM case_result"))
    asked = Counter(scene.asked())
    doubled = sum(count - 1 for count in results.values())
    return Outcome(commands, cases - len(results), doubled, asked.total() - len(asked), time.monotonic() - begun)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def summary(outcomes: list[Outcome]) -> str:
    """Return what runs with one kind of fault have left."""
    lost, doubled = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("lost", "doubled"))
    commands, again, seconds = (
        max(getattr(outcome, name) for outcome in outcomes) for name in ("commands", "again", "seconds")
    )
    return (
        f"{len(outcomes)} times; lost {lost}, doubled {doubled}, asked again at most {again}; "
        f"at most {commands} commands and {seconds:.0f} s"
    )


def main(times: str, cases: str = "12000", seconds: str = "60") -> int:
    """Let each fault happen so many times; return the exit code."""
    chance, outcomes = random.Random(1), list[Outcome]()  # noqa: S311 - moments, not secrets
    with postgres_servers(durable=True) as servers:
        for name in FAULTS:
            of_fault = [
                once(name, servers, cases=int(cases), away=float(seconds), chance=chance) for _ in range(int(times))
            ]
            say(f"{name}: {summary(of_fault)}")
            outcomes += of_fault
    return int(not all(outcome.is_right for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
