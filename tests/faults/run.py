"""Runs 12,000 cases on a shared store while its server, the network or a node of Ray fails; prints what came of it.

python -m faults.run TIMES [CASES [SECONDS [WORDS...]]]: each fault whose name contains one of the words so many times,
at random moments; the network is away for so many seconds. Exits with 1 if a result was lost or doubled, more was
asked twice than was in flight, or a run that ended by itself does not say how many cases it asked twice.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.model.store import STORE_VARIABLE, Store, read_store_url
from evalmeta.store.database import open_database
from postgres_servers import postgres_servers
from ray_nodes import BIN, ray_nodes
from relay import relay

if TYPE_CHECKING:
    from collections.abc import Callable

    from postgres_servers import PostgresServers, PostgresStore
    from ray_nodes import Nodes
    from relay import Relay

IN_FLIGHT, LONGEST, MOST_COMMANDS = 50, 900, 5
AGENT = """
import asyncio, os
FILE = os.open({asked!r}, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
async def answer(utterance):
    os.write(FILE, (utterance + "\\n").encode())
    await asyncio.sleep(0.05)
    return "The answer is " + utterance
"""
SETTINGS = f"[run]\nconcurrency = {IN_FLIGHT}\n"
HERE = Path(sys.executable).parent
ADDRESSES = ("127.0.0.2", "127.0.0.3", "127.0.0.4")  # of the nodes; the first is the head


class Outcome(NamedTuple):
    """What one run with a fault has left."""

    commands: int
    lost: int
    doubled: int
    again: int
    counted: int
    seconds: float

    @property
    def is_right(self) -> bool:
        """Return whether each case has one result, and what was asked again was in flight, and is counted."""
        is_counted = self.commands > 1 or self.again <= self.counted
        return not (self.lost or self.doubled) and self.again <= IN_FLIGHT * self.commands and is_counted


class Scene(NamedTuple):
    """A project, the servers, the relay between them, and the nodes that ask the cases, if it is not this machine."""

    root: Path
    servers: PostgresServers
    relay: Relay
    environment: dict[str, str]
    away: float
    nodes: Nodes | None

    def command(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command."""
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen(
                [(BIN if self.nodes else HERE) / "evalmeta", *words],
                cwd=self.root,
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def asked(self) -> list[str]:
        """Return what the agent was asked."""
        file = self.root / "asked"
        return file.read_text().split() if file.exists() else []

    def counted(self) -> int:
        """Return how many cases the commands said they asked twice."""
        told = re.findall(r"asked twice: ([\d,]+) case", (self.root / "log").read_text())
        return sum(int(number.replace(",", "")) for number in told)


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


def kill_node(scene: Scene, _: subprocess.Popen[bytes]) -> None:
    """Kill all processes of a node that is not the head."""
    assert scene.nodes is not None
    scene.nodes.kill(ADDRESSES[-1])


FAULTS: dict[str, Callable[[Scene, subprocess.Popen[bytes]], None]] = {
    "Postgres killed": kill_postgres,
    "network away": cut_network,
    "command killed": kill_command,
    "command killed without network": kill_command_without_network,
    "Postgres killed, on Ray": kill_postgres,
    "network away, on Ray": cut_network,
    "command killed, on Ray": kill_command,
    "node killed, on Ray": kill_node,
}
ON_RAY = " on Ray"


def once(
    name: str, servers: PostgresServers, nodes: Nodes | None, *, cases: int, away: float, chance: random.Random
) -> Outcome:
    """Run cases with a fault at a random moment, on nodes if there are some; resume the run until it ends by itself."""
    spec = "subject: desk:answer\ncases:\n" + "".join(f"- {{input: q{n}, contains: q{n}}}\n" for n in range(cases))
    server = chance.choice(list(servers))
    with tempfile.TemporaryDirectory() as folder, servers.store() as store, relay(server.port) as passing:
        root = Path(folder)
        agent = AGENT.format(asked=str(root / "asked"))
        for file, text in {"evalmeta.toml": SETTINGS, "desk.py": agent, "cases.yaml": spec}.items():
            (root / file).write_text(text)
        url = store.direct.replace(f":{servers.postgres.port}/", f":{passing.port}/")
        environment = os.environ | {STORE_VARIABLE: url}
        if nodes:
            nodes.start(*ADDRESSES)
            environment |= nodes.environment | {"EVALMETA_ON": "ray"}
        scene = Scene(root, servers, passing, environment, away, nodes)
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
    again, seconds = asked.total() - len(asked), time.monotonic() - begun
    return Outcome(commands, cases - len(results), doubled, again, scene.counted(), seconds)


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


def main(times: str, cases: str = "12000", seconds: str = "60", *words: str) -> int:
    """Let each fault happen so many times; return the exit code."""
    chance, outcomes = random.Random(1), list[Outcome]()  # noqa: S311 - moments, not secrets
    names = [name for name in FAULTS if not words or any(word in name for word in words)]
    with ExitStack() as stack:
        servers = stack.enter_context(postgres_servers(durable=True))
        needs_nodes = any(name.endswith(ON_RAY) for name in names)
        cluster = stack.enter_context(ray_nodes(*ADDRESSES)) if needs_nodes else None
        for name in names:
            nodes = cluster if name.endswith(ON_RAY) else None
            of_fault = [
                once(name, servers, nodes, cases=int(cases), away=float(seconds), chance=chance)
                for _ in range(int(times))
            ]
            say(f"{name}: {summary(of_fault)}")
            outcomes += of_fault
    return int(not all(outcome.is_right for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
